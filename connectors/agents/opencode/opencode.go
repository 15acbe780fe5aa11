// Package opencode connects OpenCode to nod. It reads the events of an OpenCode server. For each permission
// for which OpenCode prompts its user, it sends nod a request, and replies to OpenCode with nod's decision.
// OpenCode's user can answer at the same time. The first answer counts, and the other prompt closes.
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

// Options name the OpenCode server and determine how the connector handles its permissions.
type Options struct {
	// Agent is the agent's name in requests. Empty means "OpenCode". Kilo, which has the same server,
	// needs another name.
	Agent string
	URL   string // the address of the server; empty means DefaultURL
	// Directory is the project's directory. The connector needs it if a server has several projects.
	// Empty means the directory in which the server was started.
	Directory string
	// Username and Password are the login for a server that has a password. An empty Username means
	// "opencode".
	Username, Password string
	// DenyUnavailable makes the connector reject a permission if nod is unavailable. If it is false,
	// the connector sends no reply and tries nod again, and OpenCode's own prompt stays open.
	DenyUnavailable bool
	// Turns makes the connector ask people for the agent's next prompt when a turn is over. It sends
	// their reply to OpenCode.
	Turns bool
	// Waits records that this process waits for a decision or a reply.
	Waits agents.Waits
	// Claim claims a person's reply about a turn for this process, because several processes may follow
	// one server and only one may send the reply. This process calls done after it has sent the reply.
	// If another process has the claim, Claim returns ErrClaimTaken or ErrClaimLost. If Claim is nil,
	// this process sends every reply.
	Claim      func(ctx context.Context, sessionID, pendingID string) (done func(), err error)
	Host, User string // the names of this machine and its user, which people see
	// GoneAfter is the time for which OpenCode may be unreachable until the connector withdraws its
	// requests. 0 means 30 s.
	GoneAfter time.Duration
	// Connected is called after each successful connection to OpenCode. It may be nil.
	Connected func()
	Log       *slog.Logger // the log of failures, without the content of requests; nil discards it
}

// DefaultURL is the address of `opencode serve --port 4096`.
const DefaultURL = "http://127.0.0.1:4096"

const (
	goneAfter      = 30 * time.Second
	silentFor      = time.Minute // a connection without an event for this time is dead, because OpenCode sends a heartbeat every 10 s
	retryMin       = 500 * time.Millisecond
	retryMax       = 30 * time.Second
	withdrawWithin = 5 * time.Second
	// storedWithin is the longest time to wait until OpenCode has stored a call's input.
	storedWithin = time.Second
	// repliedWithin is the longest time to wait until OpenCode reports the answer to a permission.
	repliedWithin = 5 * time.Second
)

var (
	errStopped  = errors.New("nod opencode was stopped")
	errReplied  = errors.New("answered at the agent's own prompt")
	errRejected = errors.New("rejected at the agent's own prompt, which also drops the other open calls of a session after a denial")
	errMissed   = errors.New("answered at the agent's own prompt while nod was disconnected")
	errSession  = errors.New("the agent's session moved on or ended")
	errPrompted = errors.New("the agent has its next prompt")
	errHostGone = errors.New("the agent is gone")
	errSilent   = errors.New("the agent sent no heartbeat for a minute")
)

// Run handles the permissions of an OpenCode server until ctx ends, and then withdraws all pending
// requests. It survives a restart of nod or OpenCode. It allows a permission only if nod allowed
// exactly the call that needs the permission. It returns an error only if the options are invalid.
func Run(ctx context.Context, nod agents.CallAsker, o Options) error {
	o.Agent = cmp.Or(o.Agent, "OpenCode")
	o.GoneAfter = cmp.Or(o.GoneAfter, goneAfter)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	host, err := newServer(o)
	if err != nil {
		return err
	}
	// The contexts of the permissions must not end with ctx. Only endAll ends them, with a cause that
	// becomes the reason of the withdrawals.
	f := &follower{ctx: context.WithoutCancel(ctx), host: host, nod: nod, opts: o, open: map[string]*openPermission{}, turns: map[string]*turnQuestion{}, failures: map[string]string{}}
	f.run(ctx)
	f.endAll(errStopped)
	f.all.Wait()
	return nil
}

type follower struct {
	ctx  context.Context
	host *server
	nod  agents.CallAsker
	opts Options
	all  sync.WaitGroup

	mu    sync.Mutex
	open  map[string]*openPermission // permissions without an answer, by OpenCode's id
	turns map[string]*turnQuestion   // unanswered questions for a next prompt, by session
	// failures contains each session whose turn is not over, with the error of this turn or with "".
	// Only the goroutine that reads the events uses failures.
	failures map[string]string
}

// openPermission is a permission for which OpenCode waits.
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

// follow opens one connection to OpenCode and uses it until it fails. It opens the event stream before
// it reads the list of pending permissions, because it could otherwise miss a permission that OpenCode
// adds between the two.
func (f *follower) follow(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silentFor, func() { cancel(errSilent) })
	defer quiet.Stop()
	stream, err := f.host.events(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	defer func() { _ = stream.Close() }() // the error does not matter, because nobody reads the stream any more
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

// catchUp reads OpenCode's list of pending permissions. It sends nod a request for each permission that
// is not in f.open, and withdraws the requests for permissions that are not in the list. If OpenCode
// cannot list its permissions, catchUp does nothing.
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
	return f.catchUpTurns(ctx)
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
		id, why := e.references().permission(), errReplied
		if cmp.Or(e.references().Reply, e.references().Response) == reject {
			why = errRejected
		}
		f.endMatching(why, func(p permission) bool { return p.ID == id })
	case "session.idle", "session.deleted":
		session := e.references().session()
		f.endMatching(errSession, func(p permission) bool { return p.SessionID == session })
		if e.Type == "session.idle" {
			f.turnOver(session)
		} else {
			f.endTurn(session, errSession)
		}
	case "session.error", "session.status":
		f.followTurn(e)
	case "server.instance.disposed", "global.disposed":
		f.endAll(errHostGone)
	}
}

// begin sends nod a request about the permission p, unless p is in f.open already.
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

// endMatching withdraws the requests about all open permissions for which the function match returns
// true. why becomes the reason of the withdrawals.
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
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.turns {
		q.end(why)
	}
}

// retry calls the function do until do succeeds or returns again = false. The pause between two calls
// doubles each time, up to retryMax. If ctx ends, the error wraps both the cause of ctx and the last
// error of do.
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
