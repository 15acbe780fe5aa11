// Package acp connects agents that speak the Agent Client Protocol (ACP). It is a sidecar between an
// editor and its agent. It passes every line unchanged, except for the agent's
// session/request_permission requests, which nod decides instead of the editor. With Options.Race, the
// editor shows its own prompt too, and the first answer counts.
//
// The sidecar sends an agent an allow only if nod's decision, or the editor's own answer, allowed
// exactly that request. If nod cannot decide, either the editor shows its own prompt, or the sidecar
// refuses the request. Options determine which.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// Nod is the interface to nod that the sidecar needs.
type Nod interface {
	// Submit sends the request r, whose id must be new, and returns as soon as nod has stored or
	// decided r. If nod refuses r, the error is a *schemas.Error. If nod is not available before ctx
	// ends, the code of this error is UNAVAILABLE. After UNAVAILABLE, and after an error of another
	// type, nod may have stored r.
	Submit(ctx context.Context, r schemas.Request) (Waiting, error)
	// Withdraw ends a request that its agent no longer waits for. It works even if the request reaches
	// nod only later.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
	// Abandon withdraws the request of a call that never runs. If nod has allowed the request already,
	// its record then says that the call never ran.
	Abandon(ctx context.Context, sessionID, pendingID, reason string) error
	// Notices calls the function heard for each notice of a session until ctx ends. The calls come one
	// after another.
	Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error
}

// Waiting is a submitted request.
type Waiting interface {
	// Open reports whether the request is pending, because a person must decide it. It returns false if
	// nod has decided the request at once.
	Open() bool
	// Await blocks until the request is decided or ctx ends. The caller must call it only once.
	Await(ctx context.Context) (schemas.Decision, error)
}

// Connect connects to nod. If nod is not running, the error is a *schemas.Error with the code UNAVAILABLE.
// After any error, the sidecar calls Connect again for the next request. The connection must outlive ctx.
type Connect func(ctx context.Context) (Nod, error)

// Options configure a sidecar.
type Options struct {
	// Race makes the editor also show each request that waits for a person. The first answer counts.
	Race bool
	// Deny makes the sidecar refuse a request whenever nod fails to decide it. If Deny is false, the
	// editor asks its own user if nod is unavailable. With Race, the editor asks its own user after
	// other failures too. Without Race, the sidecar refuses the request after other failures.
	Deny bool
	// Turns makes the sidecar ask people for a session's next prompt when a turn of the agent is over.
	Turns bool
	// Waits records that this process waits for a decision or a reply.
	Waits agents.Waits
	// People see AgentName, Host and User. If AgentName is empty, it is the name that the agent reports.
	AgentName, Host, User string
	// Stream sends the requests that wait for a person to its subscribers, who may answer them. It may
	// be nil.
	Stream *Stream
	Log    *slog.Logger // the log of failures, without the content of requests; nil discards it
}

const (
	reachWithin    = 10 * time.Second // the time limit to connect to nod and to submit a request
	withdrawWithin = 5 * time.Second
)

// The reasons for which the sidecar withdraws a request. People read them.
var (
	errAgentGone  = errors.New("the agent is gone")
	errEditorGone = errors.New("the editor is gone")
	errInEditor   = errors.New("it was answered in the editor")
	errCancelled  = errors.New("it was cancelled in the editor")
	errDropped    = errors.New("the agent cancelled it")
	errReused     = errors.New("the agent sent another request with the same id")
	errEnded      = errors.New("the agent ended the call")
	errTurnOver   = errors.New("the agent's turn is over")
	errDenied     = errors.New("after a denial the agent drops its other open calls")
)

type sidecar struct {
	opts     Options
	nod      link
	cache    *sessionCache
	toEditor *relay.LineWriter
	toAgent  *relay.LineWriter
	agent    io.Writer
	asks     sync.WaitGroup
	turns    *turns

	mu   sync.Mutex
	open map[string]*ask // requests without an answer, by id key (see relay.IDKey)
	// late contains the id keys of answered requests that the editor has shown and not answered. When
	// the editor answers such a request, the sidecar drops the answer.
	late map[string]bool
	gone bool // the agent or the editor is gone, so the sidecar cannot deliver an answer
}

// Run passes lines between the editor and the agent until the agent's output ends. If the editor is
// gone or ctx ends, Run closes the agent's input if it is an io.Closer, and withdraws all pending
// requests. It does the same when the agent's output ends. After Run has returned, a goroutine may
// still read the editor's output.
func Run(ctx context.Context, editor, agent relay.Peer, connect Connect, o Options) error {
	s := &sidecar{
		opts: o, nod: newLink(connect), cache: newSessionCache(), agent: agent.In, turns: newTurns(),
		toEditor: relay.NewLineWriter(editor.In), toAgent: relay.NewLineWriter(agent.In),
		open: map[string]*ask{}, late: map[string]bool{},
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	stop := context.AfterFunc(ctx, func() { s.editorGone(context.Cause(ctx)) })
	defer stop()
	go func() {
		_ = relay.EachLine(editor.Out, s.fromEditor) // an error means that the output has ended
		s.editorGone(errEditorGone)
	}()
	err := relay.EachLine(agent.Out, s.fromAgent)
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
		if s.opts.Turns {
			s.turns.record(m)
		}
		if session, call, ended := s.cache.recordUpdate(m); ended {
			s.cancelMatching(errEnded, func(a *ask) bool { return a.session == session && a.call == call })
		}
	case m.method == methodCancelCall:
		s.dropRequest(relay.IDKey(object(m.params)["requestId"]))
	case m.response():
		if session := s.cache.recordResponse(m); session != "" {
			s.cancelMatching(errTurnOver, func(a *ask) bool { return a.session == session })
			s.endTurn(session, line, m)
			return nil
		}
	}
	s.tellEditor(line)
	return nil
}

func (s *sidecar) fromEditor(line []byte) error {
	m := parseMessage(line)
	if m.response() && !s.editorAnswered(m) {
		return nil
	}
	if m.method == methodPrompt && s.turns.prompted(text(object(m.params)["sessionId"]), line) {
		return nil
	}
	s.pass(line, m)
	if m.method == methodCancel || m.method == methodClose {
		session := text(object(m.params)["sessionId"])
		s.cancelMatching(errCancelled, func(a *ask) bool { return a.session == session })
		s.cancelHeld(session)
	}
	return nil
}

// pass passes a line of the editor on to the agent.
func (s *sidecar) pass(line []byte, m message) {
	s.cache.recordRequest(m)
	if err := s.toAgent.WriteLine(line); err != nil { // log the error only, because Run ends when the output of the agent ends
		s.opts.Log.Debug("acp: the agent does not read any more", "error", err)
	}
}

// tellEditor writes a line to the editor. If that fails, the sidecar treats the editor as gone. The
// sidecar still reads the agent's output, because the agent could not end while a pipe is full.
func (s *sidecar) tellEditor(line []byte) {
	if err := s.toEditor.WriteLine(line); err != nil {
		s.editorGone(errEditorGone)
	}
}

func (s *sidecar) tellAgent(id json.RawMessage, o outcome) {
	line, err := reply(id, o)
	if err == nil {
		err = s.toAgent.WriteLine(line)
	}
	if err != nil { // log the error only, because Run ends when the output of the agent ends
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
		_ = c.Close() // Close fails if the input is closed already
	}
}

// endAll withdraws all pending requests, and makes the sidecar ignore later requests. The sidecar calls
// it when it can no longer deliver answers.
func (s *sidecar) endAll(why error) {
	s.turns.endAll(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for key, a := range s.open {
		delete(s.open, key)
		a.stop(why)
	}
}
