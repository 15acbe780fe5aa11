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
	// DataDir contains the streams, the lock and run.json. Embed makes a missing directory. Only one
	// server at a time can run on a directory.
	DataDir string
	// Host is the listening address. Only this machine can reach the default, 127.0.0.1. The server
	// speaks TLS if other machines can reach the address, or if another machine was invited (see Invite).
	Host string
	// Port is the listening port. If it is 0 or taken, the server listens on any free port.
	Port int
	// SyncInterval is the longest time between the acknowledgement of a write and its sync to disk, or
	// one of the two values SyncGroup and SyncAlways. With SyncGroup, engines of other processes cannot
	// use the stores. Without Users the server could not refuse such engines, so SyncGroup then has the
	// effect of SyncAlways.
	SyncInterval time.Duration
	// BeforeSync is for tests. If it is set, it is called before each sync of a stream with SyncGroup. If
	// BeforeSync returns an error, the sync fails.
	BeforeSync func(stream string) error
	// Users are the users that may connect, each with its key. Without users, every client may
	// do everything.
	Users []roles.User
	// Prepare, if set, returns the Users. Embed calls it after it has locked the data directory and
	// before the server reads the directory. If Prepare fails, the server does not start.
	Prepare func(context.Context) ([]roles.User, error)
	// Version is written to run.json.
	Version string
	// Log receives the server's warnings and errors; nil means slog.Default.
	Log *slog.Logger

	// ServerName is "nod" by default. Members of a cluster have different names.
	ServerName string
	// ClusterName makes the server a member of a cluster, for tests alone. The members listen on
	// ClusterPort, on this machine and without authentication, and find each other through Routes.
	// Outside tests, a cluster consists of separate nats-server processes.
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
	syncs *streamSyncs // nil unless the server groups syncs (SyncGroup)
	room  *diskRoom

	// The options and the TLS configuration are those of the server's start. SetUsers changes users.
	started    EmbedOptions
	tls        *tls.Config
	tlsTimeout float64
	usersMu    sync.Mutex
	users      []roles.User
}

// Embed starts a server and returns it once it accepts connections. The context bounds only the
// start. The error has one line, which says, for example, that the data directory is in use or not
// writable. After an error, there is neither a server nor a lock.
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
	// Without a reference to the lock, the garbage collector would close the lock's file and so release
	// it. This goroutine keeps a reference while the server runs, even if the caller drops s.
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

// groupsSyncs reports whether one sync serves several writes. It returns false in a cluster, because
// streams may have replicas. It returns false without users, because the server could not refuse the
// engines of other processes.
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

// listening waits until a started server accepts connections. If the server cannot listen, the reason
// is only in the server's log. natsLog passes the reason to the channel fatal.
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

// serverOptions returns the server's options. The parameter admitting lists the users whom the server
// asks about clients without a key.
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
	if err := opts.ProcessConfigString(text); err != nil { // the server's error may have several lines, one for each fault
		return nil, errors.New(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	}
	if _, total, err := diskSpace(o.DataDir); err == nil {
		opts.JetStreamMaxStore = int64(total) // the server's default limit is a share of the room that is free at its start, and so would stay too low after a start on a full disk
	}
	return opts, nil
}

// freePort returns the given port if it is free. If the port is taken or 0, freePort returns the
// value that makes the server take any free port. It fails if the address to listen on is not this
// machine's, or if this user may not use the port. If another process takes the port before the
// server listens, the start fails.
func freePort(host string, port int) (int, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return server.RANDOM_PORT, nil
	}
	if err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause // keep only the operating system's error, because the message below contains the address already
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

// InProcess returns an option for nats.Connect that connects without a socket and ignores the URL.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.nats) }

// Failed returns a channel that gets an error if a write or a sync to disk has failed. The server then
// stores nothing more in that stream, even if the disk works again. The caller closes the server and ends
// the process.
func (s *Server) Failed() <-chan error { return s.disk.failed }

// closeTimeout bounds Close, because a disk that does not respond could stop Close for ever.
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
