package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
)

// EmbedOptions configure a NATS server in this process.
type EmbedOptions struct {
	// DataDir contains the streams, the lock and run.json. Embed makes a missing directory.
	// One server at a time can run on a directory.
	DataDir string
	// Host is the listening address. The default, 127.0.0.1, is reachable from this machine
	// alone. The server speaks TLS if other machines can reach this address, or if another
	// machine was invited (see Invite).
	Host string
	// Port is the listening port. If it is 0 or taken, the server listens on any free port.
	Port int
	// SyncInterval is the longest time between the acknowledgement of a write and its sync to
	// disk, or SyncGroup, or SyncAlways. With SyncGroup, engines of other processes cannot use
	// the stores. Without Users the server could not refuse such engines, so SyncGroup then
	// means SyncAlways.
	SyncInterval time.Duration
	// BeforeSync, if set, is called before each sync of a stream with SyncGroup; an error of
	// BeforeSync makes the sync fail. It is for tests.
	BeforeSync func(stream string) error
	// Users are the users that may connect, each with its key. Without users, every client may
	// do everything.
	Users []roles.User
	// Prepare, if set, returns the Users. It is called while the data directory is locked and
	// before the server reads it. If Prepare fails, the server does not start.
	Prepare func(context.Context) ([]roles.User, error)
	// Version is written to run.json.
	Version string
	// Log receives the server's warnings and errors; nil means slog.Default.
	Log *slog.Logger

	// ServerName is "nod" by default. Members of a cluster have different names.
	ServerName string
	// ClusterName makes the server a member of a test's cluster. The members listen on
	// ClusterPort, without authentication and on this machine alone, and find each other
	// through Routes. Outside tests, a cluster consists of separate nats-server processes.
	ClusterName string
	ClusterPort int
	Routes      []string
}

// storeName is the name of the directory of the streams.
const storeName = "nats"

// Server is a NATS server in this process.
type Server struct {
	nats  *server.Server
	url   string
	lock  *dirLock
	dir   string
	disk  *diskFailure
	syncs *streamSyncs // nil without SyncGroup
	room  *diskRoom

	// The options with which the server was started, and the users, which SetUsers changes.
	started    EmbedOptions
	tls        *tls.Config
	tlsTimeout float64
	usersMu    sync.Mutex
	users      []roles.User
}

// Embed starts a server and returns it ready for connections. ctx bounds the start only. It
// returns a one-line error if the data directory is in use or not writable, or if the server
// cannot start. After an error, neither server nor lock is left.
func Embed(ctx context.Context, o EmbedOptions) (*Server, error) {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	if i, err := readInvitation(o.DataDir); err != nil {
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
			return nil, JoinErrors(err, lock.release())
		}
	}
	storeDir := filepath.Join(o.DataDir, storeName)
	if err := syncTree(storeDir); err != nil {
		return nil, JoinErrors(fmt.Errorf("sync the stores to disk: %w", err), lock.release())
	}
	if o.ClusterName == "" {
		if err := repairStores(storeDir, cmp.Or(o.Log, slog.Default())); err != nil {
			return nil, JoinErrors(err, lock.release())
		}
	}
	room := newDiskRoom(o.DataDir, cmp.Or(o.Log, slog.Default()))
	disk := newDiskFailure(storeDir, room, o)
	ns, opts, err := startEmbedded(ctx, o, disk)
	if err != nil {
		return nil, JoinErrors(err, lock.release())
	}
	s := &Server{nats: ns, url: dialURL(ns.Addr().(*net.TCPAddr)), lock: lock, dir: o.DataDir, disk: disk, room: room}
	room.start()
	s.remember(o, opts)
	if o.groupsSyncs() {
		s.syncs = newStreamSyncs(ns, storeDir, disk, o)
	}
	// The garbage collector closes and frees a lock without references. This goroutine
	// references the lock as long as the server runs, even if the caller drops s.
	go func() {
		ns.WaitForShutdown()
		runtime.KeepAlive(lock)
	}()
	run := Run{URL: s.url, PID: os.Getpid(), Started: time.Now().UTC(), Version: o.Version}
	if err := run.write(o.DataDir); err != nil {
		return nil, JoinErrors(err, s.Close())
	}
	return s, nil
}

// groupsSyncs reports whether one sync serves several writes. In a cluster it does not,
// because streams may have replicas. Without users it does not, because the server cannot
// refuse the engines of other processes.
func (o EmbedOptions) groupsSyncs() bool {
	return o.SyncInterval == SyncGroup && o.ClusterName == "" && len(o.Users) > 0
}

func startEmbedded(ctx context.Context, o EmbedOptions, disk *diskFailure) (*server.Server, *server.Options, error) {
	var err error
	if o.Port, err = freePort(o.Host, o.Port); err != nil {
		return nil, nil, err
	}
	opts, err := o.serverOptions(roles.TokenServices(o.Users))
	if err != nil {
		return nil, nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	bridge := &natsLog{log: cmp.Or(o.Log, slog.Default()), fatal: make(chan error, 1), disk: disk}
	ns.SetLoggerV2(bridge, false, false, false)

	ns.Start()
	err = listening(ctx, ns, bridge.fatal)
	if err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, nil, fmt.Errorf("start the embedded NATS server: %w", err)
	}
	bridge.started.Store(true)
	return ns, opts, nil
}

// listening waits until a started server accepts connections. A server that cannot listen
// reports the reason only in its log.
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

// serverOptions returns the options of a server that asks the users admitting about clients without a key.
func (o EmbedOptions) serverOptions(admitting []roles.User) (*server.Options, error) {
	dir, err := filepath.Abs(filepath.Join(o.DataDir, storeName))
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
	text := roles.Config{Users: o.Users, Admitting: admitting, StoreDir: dir, SyncInterval: max(o.SyncInterval, 0), EngineInProcess: o.groupsSyncs()}.String()
	if err := opts.ProcessConfigString(text); err != nil { // the server's error has one line for each fault
		return nil, errors.New(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	}
	if _, total, err := diskSpace(o.DataDir); err == nil {
		opts.JetStreamMaxStore = int64(total) // by default the limit is a share of what is free at the start, and would stay too low after a start on a full disk
	}
	return opts, nil
}

// freePort returns port if it is free, and else the value that makes the server take any free
// port. It fails for an address of another machine, and for a port that this user may not use.
// If another process takes the port before the server does, the start fails with an error that
// says so.
func freePort(host string, port int) (int, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return server.RANDOM_PORT, nil
	}
	if err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause // take the operating system's error alone, because the message below contains the address too
		}
		return 0, fmt.Errorf("nothing can listen on %s: %w: name another address with --listen", addr, err)
	}
	_ = l.Close()
	if port == 0 {
		return server.RANDOM_PORT, nil
	}
	return port, nil
}

// URL returns the address for clients on this machine.
func (s *Server) URL() string { return s.url }

func dialURL(at *net.TCPAddr) string {
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
}

// InProcess returns an option for nats.Connect that connects without a socket, whatever the
// URL.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.nats) }

// Failed returns a channel that gets an error if a write or a sync to disk has failed. The
// server stores nothing more in the stream that failed, even after the fault has gone: close
// the server and end the process.
func (s *Server) Failed() <-chan error { return s.disk.failed }

// closeTimeout bounds Close, because a disk that does not reply could stop it for ever.
const closeTimeout = 15 * time.Second

// Close stops the server and releases the data directory. Open connections break. If the server
// does not stop within closeTimeout, Close returns an error and the directory stays locked.
func (s *Server) Close() error {
	s.syncs.close()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}()
	select {
	case <-stopped:
	case <-time.After(closeTimeout):
		return fmt.Errorf("the NATS server in this process does not stop: the disk under %s may hang", s.dir)
	}
	s.room.close()
	return JoinErrors(removeRun(s.dir), s.lock.release())
}
