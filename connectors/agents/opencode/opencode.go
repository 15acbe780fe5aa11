// Package opencode connects OpenCode. It follows the events of an OpenCode server, sends
// nod a request for each permission that the server asks its user for, and replies with
// nod's decision. OpenCode's own prompt is open at the same time: the first answer counts,
// and the other prompt is closed.
package opencode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/agents"
)

// Options describe the OpenCode server to follow.
type Options struct {
	URL string // address of the server; empty means DefaultURL
	// Directory is the directory of the project to follow; empty means the directory that the
	// server was started in. A server may have several projects.
	Directory string
	// Username and Password log in to the server if it has a password. An empty Username
	// means "opencode".
	Username, Password string
	// DenyUnavailable makes the connector reject a permission if nod is unavailable. If
	// it is false, the connector sends no reply and tries nod again, and OpenCode's own
	// prompt stays open.
	DenyUnavailable bool
	Host, User      string // the names of the machine and its user, shown to people
	// GoneAfter is how long OpenCode may be unreachable before the connector withdraws
	// its requests; 0 means 30 s.
	GoneAfter time.Duration
	// Connected is called after each successful connection to OpenCode; may be nil.
	Connected func()
	Log       *slog.Logger // the log of failures, which never gets the content of a request; nil discards it
}

// DefaultURL is the address of `opencode serve --port 4096`.
const DefaultURL = "http://127.0.0.1:4096"

const (
	goneAfter      = 30 * time.Second
	silentFor      = time.Minute // the time without an event after which the connection counts as lost: OpenCode sends a heartbeat every 10 s
	retryMin       = 500 * time.Millisecond
	retryMax       = 30 * time.Second
	withdrawWithin = 5 * time.Second
)

var (
	errStopped  = errors.New("nod opencode was stopped")
	errReplied  = errors.New("answered in OpenCode")
	errMissed   = errors.New("answered in OpenCode while nod was disconnected")
	errSession  = errors.New("the session in OpenCode moved on or ended")
	errHostGone = errors.New("OpenCode is gone")
	errSilent   = errors.New("OpenCode sent no heartbeat for a minute")
)

// Run follows OpenCode until ctx ends, and then withdraws all pending requests. It
// continues after a restart of nod or OpenCode. It replies with an allow only if nod
// allowed that very call. It returns an error only if the options are invalid.
func Run(ctx context.Context, nod agents.Asker, o Options) error {
	o.GoneAfter = cmp.Or(o.GoneAfter, goneAfter)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	host, err := newServer(o)
	if err != nil {
		return err
	}
	// The permissions' contexts must not end with ctx: endAll ends them with a cause,
	// which becomes the reason of the withdrawal.
	f := &follower{ctx: context.WithoutCancel(ctx), host: host, nod: nod, opts: o, open: map[string]*openPermission{}}
	f.run(ctx)
	f.endAll(errStopped)
	f.all.Wait()
	return nil
}

type follower struct {
	ctx  context.Context
	host *server
	nod  agents.Asker
	opts Options
	all  sync.WaitGroup

	mu   sync.Mutex
	open map[string]*openPermission // the open permissions, by OpenCode's permission id
}

// openPermission is a permission that OpenCode waits for.
type openPermission struct {
	permission permission
	end        context.CancelCauseFunc
}

func (f *follower) run(ctx context.Context) {
	lost, pause := time.Now(), retryMin
	for {
		connected := false
		err := f.follow(ctx, func() { connected = true })
		if ctx.Err() != nil {
			return
		}
		if connected {
			lost, pause = time.Now(), retryMin
		}
		if time.Since(lost) >= f.opts.GoneAfter {
			f.endAll(errHostGone)
		}
		f.opts.Log.Warn("OpenCode cannot be reached; trying again", "url", f.host.displayURL(), "after", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, retryMax)
	}
}

// follow serves one connection until it fails. It opens the event stream before it reads the
// list of pending permissions, so that it misses no permission that OpenCode adds meanwhile.
func (f *follower) follow(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silentFor, func() { cancel(errSilent) })
	defer quiet.Stop()
	stream, err := f.host.events(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	defer func() { _ = stream.Close() }() // nothing more is read from the stream
	if err := f.catchUp(ctx); err != nil {
		return cause(ctx, err)
	}
	connected()
	if f.opts.Connected != nil {
		f.opts.Connected()
	}
	err = readEvents(stream, func(e event) {
		quiet.Reset(silentFor)
		f.handle(e)
	})
	return cause(ctx, err)
}

func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// catchUp compares OpenCode's list of pending permissions with f.open. It starts a request for
// each new permission, and withdraws the requests for permissions that are no longer pending.
// If OpenCode cannot list them, it changes nothing.
func (f *follower) catchUp(ctx context.Context) error {
	pending, known, err := f.host.pending(ctx)
	if err != nil || !known {
		return err
	}
	still := map[string]bool{}
	for _, p := range pending {
		still[p.ID] = true
		f.begin(p)
	}
	f.endMatching(errMissed, func(p permission) bool { return !still[p.ID] })
	return nil
}

func (f *follower) handle(e event) {
	switch e.Type {
	case "permission.asked", "permission.updated":
		p, err := parsePermission(e)
		if err != nil {
			f.opts.Log.Warn("a permission request of OpenCode cannot be parsed; it is left to OpenCode's own prompt", "error", err)
			return
		}
		f.begin(p)
	case "permission.replied":
		id := e.references().permission()
		f.endMatching(errReplied, func(p permission) bool { return p.ID == id })
	case "session.idle", "session.deleted":
		session := e.references().session()
		f.endMatching(errSession, func(p permission) bool { return p.SessionID == session })
	case "server.instance.disposed", "global.disposed":
		f.endAll(errHostGone)
	}
}

// begin starts a request to nod about p, unless one was started already.
func (f *follower) begin(p permission) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[p.ID] != nil {
		return
	}
	ctx, end := context.WithCancelCause(f.ctx)
	w := &openPermission{permission: p, end: end}
	f.open[p.ID] = w
	f.all.Go(func() {
		defer end(nil)
		if err := f.askAndReply(ctx, p); err != nil && ctx.Err() == nil {
			f.opts.Log.Warn("nod could not handle a permission; it is left to OpenCode's own prompt", "permission", p.ID, "error", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, p.ID)
	})
}

// endMatching withdraws the requests about the open permissions for which match returns true.
// why becomes the reason of the withdrawals.
func (f *follower) endMatching(why error, match func(permission) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.open {
		if match(w.permission) {
			w.end(why)
		}
	}
}

func (f *follower) endAll(why error) {
	f.endMatching(why, func(permission) bool { return true })
}

// retry calls do until do succeeds or returns false for again. The pause between calls
// doubles each time. If ctx ends, the error wraps ctx's cause and do's last error.
func retry(ctx context.Context, do func() (again bool, err error)) error {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		again, err := do()
		if !again || err == nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
