// Package acp connects agents that speak the Agent Client Protocol. It is a sidecar
// between the editor and the agent: it passes every line unchanged except
// session/request_permission, which nod decides instead of the editor or in
// parallel with it.
//
// An agent is told that it may act only if nod's decision, or the editor's own
// answer, allowed that very request. After any failure the editor shows its own
// prompt, or the request is refused.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Nod is the interface to nod that the sidecar needs.
type Nod interface {
	// Submit sends r, whose id must be new, and returns once r is stored or decided.
	// Nod's own refusals are a *schemas.Error; its code is UNAVAILABLE if nod cannot be
	// reached before ctx ends. After any other error r may be stored all the same.
	Submit(ctx context.Context, r schemas.Request) (Waiting, error)
	// Withdraw ends a request that its agent no longer waits for, even one that has
	// not reached nod yet.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// Waiting is a submitted request.
type Waiting interface {
	// Open reports whether the request is pending, waiting for a person. If false,
	// the decision exists already.
	Open() bool
	// Await blocks until the decision exists or ctx ends. It may be called only once.
	Await(ctx context.Context) (schemas.Decision, error)
}

// Connect connects to nod. Its error has code UNAVAILABLE if nod is not running. After
// an error it is called again for the next request. ctx limits only the connecting.
type Connect func(ctx context.Context) (Nod, error)

// Options configure a sidecar.
type Options struct {
	// Race also shows each request that waits for a person in the editor; the first
	// answer counts.
	Race bool
	// Deny refuses a request if nod is unavailable. Without it the editor asks its own
	// user then.
	Deny bool
	// AgentName, Host and User are shown to people. AgentName defaults to the name
	// that the agent reports.
	AgentName, Host, User string
	// Stream, if not nil, gets each request that waits for a person.
	Stream *Stream
	Log    *slog.Logger // never gets the content of a request
}

// Streams are the input and output of a peer, the editor or the agent. If the agent's
// In is an io.Closer, Run closes it once the editor is gone.
type Streams struct {
	In  io.Writer // the peer's input
	Out io.Reader // the peer's output
}

const (
	reachWithin    = 10 * time.Second // to connect to nod and submit a request
	withdrawWithin = 5 * time.Second
)

// The reasons for a withdrawal, as people read them.
var (
	errAgentGone  = errors.New("the agent is gone")
	errEditorGone = errors.New("the editor is gone")
	errInEditor   = errors.New("it was answered in the editor")
	errCancelled  = errors.New("it was cancelled in the editor")
	errDropped    = errors.New("the agent cancelled it")
	errReused     = errors.New("the agent sent another request with the same id")
)

type sidecar struct {
	opts     Options
	nod      link
	cache    *sessionCache
	toEditor lineWriter
	toAgent  lineWriter
	agent    io.Writer
	asks     sync.WaitGroup

	mu   sync.Mutex
	open map[string]*ask // by id key (see idKey)
	late map[string]bool // ids of taken requests whose answer by the editor is still to come, and will be dropped
	gone bool            // the agent or the editor is gone: no answer can be delivered
}

// Run passes lines between editor and agent until the agent's output ends. When the
// editor is gone or ctx ends, Run closes the agent's input. It withdraws all
// requests still pending at the end. A read of the editor's output may outlive Run.
func Run(ctx context.Context, editor, agent Streams, connect Connect, o Options) error {
	s := &sidecar{
		opts: o, nod: newLink(connect), cache: newSessionCache(), agent: agent.In,
		toEditor: lineWriter{w: editor.In}, toAgent: lineWriter{w: agent.In},
		open: map[string]*ask{}, late: map[string]bool{},
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	stop := context.AfterFunc(ctx, func() { s.editorGone(context.Cause(ctx)) })
	defer stop()
	go func() {
		_ = eachLine(editor.Out, s.fromEditor) // an error ends the output, too
		s.editorGone(errEditorGone)
	}()
	err := eachLine(agent.Out, s.fromAgent)
	s.endAll(errAgentGone)
	s.closeAgent()
	s.asks.Wait()
	return err
}

func (s *sidecar) fromAgent(line []byte) error {
	m := parseMessage(line)
	switch {
	case m.method == methodPermission && m.key != "":
		if s.intercept(line, m) {
			return nil
		}
	case m.method == methodUpdate:
		s.cache.recordUpdate(m)
	case m.method == methodCancelCall:
		s.dropRequest(idKey(object(m.params)["requestId"]))
	case m.response():
		s.cache.recordResponse(m)
	}
	s.tellEditor(line)
	return nil
}

func (s *sidecar) fromEditor(line []byte) error {
	m := parseMessage(line)
	if m.response() && !s.editorAnswered(m) {
		return nil
	}
	s.cache.recordRequest(m)
	if err := s.toAgent.write(line); err != nil { // only logged: if a peer is gone, its output ends, too
		s.opts.Log.Debug("acp: the agent does not read any more", "error", err)
	}
	if m.method == methodCancel || m.method == methodClose {
		s.cancelSession(text(object(m.params)["sessionId"]))
	}
	return nil
}

// tellEditor writes a line to the editor. If that fails, the editor counts as gone; the
// agent's output is still read, so that the agent can end.
func (s *sidecar) tellEditor(line []byte) {
	if err := s.toEditor.write(line); err != nil {
		s.editorGone(errEditorGone)
	}
}

func (s *sidecar) tellAgent(id json.RawMessage, o outcome) {
	line, err := reply(id, o)
	if err == nil {
		err = s.toAgent.write(line)
	}
	if err != nil { // only logged: if a peer is gone, its output ends, too
		s.opts.Log.Debug("acp: a decision could not be sent to the agent", "error", err)
	}
}

// editorGone withdraws the pending requests and closes the agent's input.
func (s *sidecar) editorGone(why error) {
	s.endAll(why)
	s.closeAgent()
}

func (s *sidecar) closeAgent() {
	if c, ok := s.agent.(io.Closer); ok {
		_ = c.Close() // it may be closed already
	}
}

// endAll withdraws all pending requests. It is called once no answer can be delivered
// any more.
func (s *sidecar) endAll(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for key, a := range s.open {
		delete(s.open, key)
		a.stop(why)
	}
}
