package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
)

// EmbedOptions say how to run a NATS server in this process.
type EmbedOptions struct {
	// DataDir holds the streams, the lock and run.json. It is made if absent,
	// and one server at a time may run on it.
	DataDir string
	// Host is where clients connect: this machine alone unless it is given. The
	// server speaks TLS where others could reach it, or were invited.
	Host string
	// Port is tried first, then any free one; 0 is any.
	Port int
	// SyncInterval is how long an acknowledged write may wait for the disk;
	// 0 is not at all.
	SyncInterval time.Duration
	// Users may connect, each with its key. With none, whoever reaches the
	// server may do everything.
	Users []roles.User
	// Prepare, where it is given, is called once the data directory is this
	// server's alone, before anything in it is read, and says who the Users are.
	// Its error keeps the server from starting.
	Prepare func(context.Context) ([]roles.User, error)
	// Version is told in run.json.
	Version string
	// Log hears the server's warnings and errors; nil is slog.Default.
	Log *slog.Logger

	// ServerName is "nod" unless it is given. Members of a cluster differ in it.
	ServerName string
	// ClusterName makes the server a member of a cluster whose members listen
	// on ClusterPort, without authentication and on this machine alone, and
	// find each other through Routes. It serves tests: a cluster that is meant
	// to last is made of servers of its own.
	ClusterName string
	ClusterPort int
	Routes      []string
}

// Server is a NATS server in this process.
type Server struct {
	nats *server.Server
	url  string
	lock *dirLock
	dir  string
}

// Embed starts a server and returns it ready for connections. A data directory
// that is in use, or cannot be written, and whatever else keeps the server from
// starting is one line, and nothing is left running then. ctx ends the start, not
// the server.
func Embed(ctx context.Context, o EmbedOptions) (*Server, error) {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	if i, err := joined(o.DataDir); err != nil {
		return nil, err
	} else if i != nil {
		return nil, fmt.Errorf("%s has joined the nod at %s: name another directory with --data or NOD_DATA", o.DataDir, i.URL)
	}
	lock, err := lockDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	if o.Prepare != nil {
		if o.Users, err = o.Prepare(ctx); err != nil {
			return nil, errors.Join(err, lock.release())
		}
	}
	ns, err := startEmbedded(ctx, o)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	s := &Server{nats: ns, url: dialURL(ns.Addr().(*net.TCPAddr)), lock: lock, dir: o.DataDir}
	// A lock that nobody refers to is closed by the garbage collector, and free:
	// it is held for as long as the server runs, whatever the caller keeps.
	go func() {
		ns.WaitForShutdown()
		runtime.KeepAlive(lock)
	}()
	run := Run{URL: s.url, PID: os.Getpid(), Started: time.Now().UTC(), Version: o.Version}
	if err := run.write(o.DataDir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func startEmbedded(ctx context.Context, o EmbedOptions) (*server.Server, error) {
	var err error
	if o.Port, err = freePort(o.Host, o.Port); err != nil {
		return nil, err
	}
	opts, err := o.serverOptions()
	if err != nil {
		return nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	bridge := &natsLog{log: cmp.Or(o.Log, slog.Default()), fatal: make(chan error, 1)}
	ns.SetLoggerV2(bridge, false, false, false)

	ns.Start() // cannot be interrupted
	err = listening(ctx, ns, bridge.fatal)
	if err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, fmt.Errorf("start the embedded NATS server: %w", err)
	}
	bridge.started.Store(true)
	return ns, nil
}

// listening waits until the server that was started accepts connections. One
// that cannot listen says so through its log alone.
func listening(ctx context.Context, ns *server.Server, fatal <-chan error) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-fatal:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if ns.Addr() != nil {
			return nil
		}
	}
}

func (o EmbedOptions) serverOptions() (*server.Options, error) {
	dir, err := filepath.Abs(filepath.Join(o.DataDir, "nats"))
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName: cmp.Or(o.ServerName, "nod"),
		Host:       o.Host,
		Port:       o.Port,
		JetStream:  true,
		NoSigs:     true,

		DisableJetStreamBanner: true,
	}
	if o.ClusterName != "" {
		opts.Cluster = server.ClusterOpts{Name: o.ClusterName, Host: "127.0.0.1", Port: o.ClusterPort}
		opts.Routes = server.RoutesFromStr(strings.Join(o.Routes, ","))
	}
	if speaksTLS(o.DataDir, o.Host) {
		if opts.TLSConfig, err = serverTLS(o.DataDir); err != nil {
			return nil, err
		}
		opts.TLSTimeout = tlsWithin.Seconds()
	}
	text := roles.Config{Users: o.Users, StoreDir: dir, SyncInterval: o.SyncInterval}.String()
	if err := opts.ProcessConfigString(text); err != nil { // a line for each fault
		return nil, errors.New(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	}
	return opts, nil
}

// freePort is port if it is free, else the server's word for "any". That
// somebody takes it in between makes the start fail with a line that says so.
// An address that is not this machine's, or a port that is not for this user, is
// an error: no other port would be what was meant.
func freePort(host string, port int) (int, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return server.RANDOM_PORT, nil
	}
	if err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause // the rest says the address once more
		}
		return 0, fmt.Errorf("nothing can listen on %s: %w: name another address with --listen", addr, err)
	}
	_ = l.Close()
	if port == 0 {
		return server.RANDOM_PORT, nil
	}
	return port, nil
}

// URL is where clients on this machine connect.
func (s *Server) URL() string { return s.url }

func dialURL(at *net.TCPAddr) string {
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
}

// RouteURL is where other members of its cluster find the server; empty where
// there is none.
func (s *Server) RouteURL() string {
	if at := s.nats.ClusterAddr(); at != nil {
		return "nats://" + at.String()
	}
	return ""
}

// InProcess connects to the server without a socket: give it to nats.Connect
// beside any URL.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.nats) }

// Close stops the server, waits until it has stopped, and frees the data
// directory. Clients see a broken connection: close them first.
func (s *Server) Close() error {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	return errors.Join(removeRun(s.dir), s.lock.release())
}
