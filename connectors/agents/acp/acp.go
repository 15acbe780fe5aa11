// Package acp is the way in for agents that speak the Agent Client Protocol: a
// sidecar between the editor and the agent. Every line passes as it is, but for
// session/request_permission: nod is asked that, in the editor's place or beside
// it.
//
// An agent hears that it may act only where nod's decision, or the editor's own
// answer, allowed that very request. Whatever goes wrong becomes the editor's
// own prompt or a refusal.
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

// Nod is what the sidecar may do with nod.
type Nod interface {
	// Submit hands r in, which has an id of its own, and returns once r is stored
	// or decided. Nod's own refusals are a *schemas.Error, of code UNAVAILABLE
	// where nod cannot be reached before ctx ends. After any other error r may
	// have arrived all the same.
	Submit(ctx context.Context, r schemas.Request) (Waiting, error)
	// Withdraw takes a request back that nobody waits for any more, whether or
	// not it has reached nod.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// Waiting is a request that was handed in.
type Waiting interface {
	// Open reports whether a person is asked: false means that the decision is
	// there.
	Open() bool
	// Await blocks until the one decision is there or ctx ends, and is called
	// once.
	Await(ctx context.Context) (schemas.Decision, error)
}

// Connect makes the way to nod. Its error is of code UNAVAILABLE where nod is
// not running. It is called again for the next request after an error; its ctx
// bounds the connecting alone.
type Connect func(ctx context.Context) (Nod, error)

// Options of a sidecar.
type Options struct {
	// Race shows what nod asks a person to the editor as well; the first answer
	// counts.
	Race bool
	// Deny refuses what nod cannot be asked, where otherwise the editor asks its
	// own user.
	Deny bool
	// AgentName, Host and User are shown to people. An empty AgentName is the
	// agent's own word.
	AgentName, Host, User string
	// Stream, where there is one, is told of what waits for a person.
	Stream *Stream
	Log    *slog.Logger // nothing is logged of what was asked
}

// Streams are the two ways to a peer. In may be an io.Closer.
type Streams struct {
	In  io.Writer // what the peer reads
	Out io.Reader // what it writes
}

const (
	reachWithin    = 10 * time.Second // to connect to nod and hand a request in
	withdrawWithin = 5 * time.Second
)

// Why a request is no longer waited for, as people read it.
var (
	errAgentGone  = errors.New("the agent is gone")
	errEditorGone = errors.New("the editor is gone")
	errInEditor   = errors.New("it was answered in the editor")
	errCancelled  = errors.New("it was cancelled in the editor")
	errDropped    = errors.New("the agent no longer asks")
	errReused     = errors.New("the agent asked something else under the same id")
)

// sidecar is one editor and one agent.
type sidecar struct {
	opts     Options
	nod      link
	cache    *sessionCache
	toEditor lineWriter
	toAgent  lineWriter
	agent    io.Writer
	asks     sync.WaitGroup

	mu   sync.Mutex
	open map[string]*ask // by the id's key
	late map[string]bool // ids whose answer from the editor is still to come, and counts no more
	gone bool            // there is nobody to be told any more
}

// Run stands between editor and agent until the agent has said its last line.
// When the editor is gone, or ctx ends, the agent's input is closed. What is
// then still asked is withdrawn. A read of the editor's lines may outlive Run.
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
		_ = eachLine(editor.Out, s.fromEditor) // however it ended, there is no more
		s.editorGone(errEditorGone)
	}()
	err := eachLine(agent.Out, s.fromAgent)
	s.endAll(errAgentGone)
	s.closeAgent()
	s.asks.Wait()
	return err
}

// fromAgent takes a line that the agent wrote.
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

// fromEditor takes a line that the editor wrote.
func (s *sidecar) fromEditor(line []byte) error {
	m := parseMessage(line)
	if m.response() && !s.editorAnswered(m) {
		return nil
	}
	s.cache.recordRequest(m)
	if err := s.toAgent.write(line); err != nil { // its end is told by its output
		s.opts.Log.Debug("acp: the agent does not read any more", "error", err)
	}
	if m.method == methodCancel || m.method == methodClose {
		s.cancelSession(text(object(m.params)["sessionId"]))
	}
	return nil
}

// tellEditor writes a line to the editor. An editor that does not read any more
// is gone; what the agent still says is read all the same, so that it can end.
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
	if err != nil { // its end is told by its output
		s.opts.Log.Debug("acp: the agent was not told a decision", "error", err)
	}
}

// editorGone ends what the agent is asked and told: it reads its end.
func (s *sidecar) editorGone(why error) {
	s.endAll(why)
	s.closeAgent()
}

func (s *sidecar) closeAgent() {
	if c, ok := s.agent.(io.Closer); ok {
		_ = c.Close() // it may be closed already
	}
}

// end takes everything back that is still asked, once there is nobody to tell.
func (s *sidecar) endAll(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for key, a := range s.open {
		delete(s.open, key)
		a.stop(why)
	}
}
