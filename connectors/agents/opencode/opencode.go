// Package opencode is the way in for OpenCode: it follows the events of an
// OpenCode server, puts the permissions that it asks for to nod, and replies
// what was decided. OpenCode's own prompt stays open all the while; whichever
// answers first counts, and the other one ends.
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

// Options say which OpenCode to follow, and how.
type Options struct {
	URL string // of its server; empty is DefaultURL
	// Directory is the project to follow on a server that has several; empty is
	// the one that the server was started in.
	Directory string
	// Username and Password are the server's, where it has a password.
	Username, Password string
	// DenyUnavailable rejects what nod cannot be asked. Otherwise nothing is
	// replied then, and OpenCode's own prompt is what remains.
	DenyUnavailable bool
	Host, User      string // shown to people
	// GoneAfter is how long OpenCode may be out of reach before what it asked is
	// withdrawn; 0 is half a minute.
	GoneAfter time.Duration
	// Connected is called each time that OpenCode is followed from then on; may be
	// nil.
	Connected func()
	Log       *slog.Logger // of what goes wrong, never of what was asked; nil is nowhere
}

// DefaultURL is where `opencode serve --port 4096` listens.
const DefaultURL = "http://127.0.0.1:4096"

const (
	goneAfter      = 30 * time.Second
	silentFor      = time.Minute // OpenCode gives a sign of life every 10 s
	retryMin       = 500 * time.Millisecond
	retryMax       = 30 * time.Second
	withdrawWithin = 5 * time.Second
)

var (
	errStopped  = errors.New("nod opencode was stopped")
	errReplied  = errors.New("answered in OpenCode")
	errMissed   = errors.New("answered in OpenCode while nod could not see it")
	errSession  = errors.New("the session in OpenCode went on or ended")
	errHostGone = errors.New("OpenCode is gone")
	errSilent   = errors.New("OpenCode gave no sign of life")
)

// Run follows OpenCode until ctx ends, through restarts of either side; what is
// open then is withdrawn. An allow is replied only where nod allowed that very
// call. The error is for options that cannot be meant.
func Run(ctx context.Context, nod agents.Asker, o Options) error {
	o.GoneAfter = cmp.Or(o.GoneAfter, goneAfter)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	host, err := newServer(o)
	if err != nil {
		return err
	}
	// A permission's own end says why; Run's must not be faster.
	f := &follower{ctx: context.WithoutCancel(ctx), host: host, nod: nod, opts: o, open: map[string]*openPermission{}}
	f.run(ctx)
	f.endAll(errStopped)
	f.all.Wait()
	return nil
}

// follower is what Run keeps.
type follower struct {
	ctx  context.Context
	host *server
	nod  agents.Asker
	opts Options
	all  sync.WaitGroup

	mu   sync.Mutex
	open map[string]*openPermission // by OpenCode's id
}

// waiting is one permission that OpenCode waits for.
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
		f.opts.Log.Warn("OpenCode cannot be followed; trying again", "url", f.host.shown(), "after", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, retryMax)
	}
}

// follow does one connection's work. It reads what is pending only after the
// events have begun, so that nothing falls between the two.
func (f *follower) follow(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silentFor, func() { cancel(errSilent) })
	defer quiet.Stop()
	stream, err := f.host.events(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	defer func() { _ = stream.Close() }() // it was read as far as it goes
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

// catchUp compares what is open with what OpenCode says is pending.
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

// hear does what an event asks for; most are about something else.
func (f *follower) handle(e event) {
	switch e.Type {
	case "permission.asked", "permission.updated":
		p, err := parsePermission(e)
		if err != nil {
			f.opts.Log.Warn("a permission that OpenCode asks for cannot be read; it is left to OpenCode's own prompt", "error", err)
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

// begin asks nod about p, unless that is going on.
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
			f.opts.Log.Warn("a permission is left to OpenCode's own prompt", "permission", p.ID, "error", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, p.ID)
	})
}

// endWhere ends the waiting for those that match.
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

// retry does something until it succeeds, fails for good, or ctx ends.
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
