package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// turns contains the turns of the agent's sessions, for Options.Turns. When a turn is over, the sidecar
// asks people for the session's next prompt, and sends their reply to the agent. While a reply's turn
// runs, the editor gets the agent's updates, and the editor's own prompts wait. The editor never gets the
// response to a reply.
type turns struct {
	mu      sync.Mutex
	said    map[string]string   // the agent's last message in each session
	open    map[string]*ask     // the unanswered questions for a next prompt, by session
	running map[string]string   // the sessions that run the turn of a person's reply, by the id key of the reply's prompt
	held    map[string][][]byte // the editor's prompts that wait for the end of a reply's turn, by session
	gone    bool
}

func newTurns() *turns {
	return &turns{said: map[string]string{}, open: map[string]*ask{}, running: map[string]string{}, held: map[string][][]byte{}}
}

// maxSaid is the largest size, in bytes, of the end of an agent's message that turns stores.
const maxSaid = 8 << 10

var errPrompted = errors.New("the agent has its next prompt")

// record stores the text of an update of the agent. A tool call begins a new message.
func (t *turns) record(m message) {
	params := object(m.params)
	update := object(params["update"])
	session, piece := text(params["sessionId"]), text(object(update["content"])["text"])
	t.mu.Lock()
	defer t.mu.Unlock()
	switch said := t.said[session]; text(update["sessionUpdate"]) {
	case "tool_call":
		delete(t.said, session)
	case "agent_message_chunk":
		agents.PutBounded(t.said, session, said[min(len(said), max(0, len(said)+len(piece)-maxSaid)):]+piece)
	}
}

// prompted handles a prompt of the editor, and ends the session's question for its next prompt. held
// reports that the prompt must wait, because the turn of a person's reply still runs.
func (t *turns) prompted(session string, line []byte) (held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.said, session)
	t.end(session, errPrompted)
	for _, of := range t.running {
		if of == session {
			t.held[session] = append(t.held[session], append([]byte(nil), line...))
			return true
		}
	}
	return false
}

// end ends the session's open question about its turn. The caller must hold t.mu.
func (t *turns) end(session string, why error) {
	if a := t.open[session]; a != nil {
		delete(t.open, session)
		a.stop(why)
	}
}

// cancelled ends a session's question for its next prompt, because the editor has cancelled the turn. It
// returns the editor's prompts that were waiting.
func (t *turns) cancelled(session string) (held [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(session, errCancelled)
	held = t.held[session]
	delete(t.held, session)
	return held
}

// replied marks the start of the turn of a person's reply to the question a. It returns false if the
// question has ended already.
func (t *turns) replied(a *ask, key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[a.session] != a || t.gone {
		return false
	}
	delete(t.open, a.session)
	delete(t.said, a.session)
	t.running[key] = a.session
	return true
}

// over ends a turn. own reports that a person's reply started the turn, so that the editor must not get
// the response. waiting reports that prompts of the editor wait. The caller must then call next until
// next returns nil.
func (t *turns) over(key string) (own, waiting bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	session, own := t.running[key]
	if waiting = own && len(t.held[session]) > 0; !waiting {
		delete(t.running, key)
	}
	return own, waiting
}

// next returns the first of the editor's prompts that wait for the end of a reply's turn. It returns nil
// if none waits. After nil, new prompts of the editor do not wait.
func (t *turns) next(key string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	session := t.running[key]
	held := t.held[session]
	if len(held) == 0 {
		delete(t.running, key)
		delete(t.held, session)
		return nil
	}
	t.held[session] = held[1:]
	return held[0]
}

// ask returns a new question for the session's next prompt, and the agent's last message. If the agent
// or the editor is gone, the question is nil.
func (t *turns) ask(session string) (a *ask, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return nil, ""
	}
	t.end(session, errPrompted)
	a = &ask{permission: permission{session: session}}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	t.open[session] = a
	return a, t.said[session]
}

// endAll ends all questions. ask then makes no more questions.
func (t *turns) endAll(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	for session := range t.open {
		t.end(session, why)
	}
}

// endTurn handles the response to a session's prompt. The editor gets the response, unless the prompt was
// a person's reply. endTurn then asks people for the next prompt, except after a turn that the editor
// cancelled.
func (s *sidecar) endTurn(session string, line []byte, m message) {
	own, waiting := s.turns.over(m.key)
	if !own {
		s.tellEditor(line)
	}
	if waiting { // in a goroutine, because the agent may read no input until the sidecar reads its output
		s.asks.Go(func() {
			for prompt := s.turns.next(m.key); prompt != nil; prompt = s.turns.next(m.key) {
				s.pass(prompt, parseMessage(prompt))
			}
		})
	}
	reason := text(object(m.result)["stopReason"])
	if !s.opts.Turns || waiting || reason == "cancelled" || s.cache.prompting(session) {
		return
	}
	failure := ""
	if m.failed {
		failure = "the agent reported an error"
	} else if reason != "end_turn" {
		failure = reason
	}
	if a, said := s.turns.ask(session); a != nil {
		s.asks.Go(func() { s.askForPrompt(a, agents.Turn{Message: said, Failure: failure}) })
	}
}

// askForPrompt asks people for the next prompt of the session of a. If that fails, only the editor can
// send the next prompt.
func (s *sidecar) askForPrompt(a *ask, turn agents.Turn) {
	defer a.stop(nil)
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("acp: internal error; nobody was asked for the agent's next prompt", "error", p)
		}
	}()
	var err error
	if a.request, err = agents.TurnRequest(s.sessionRequest(a.session), turn); err != nil {
		s.opts.Log.Warn("acp: nobody was asked for the agent's next prompt", "reason", err)
		return
	}
	unregister := s.registerWait(a)
	defer unregister()
	nod, w, err := s.submit(a)
	var d schemas.Decision
	if err == nil {
		d, err = w.Await(a.ctx)
	}
	if err != nil {
		s.opts.Log.Info("acp: nobody replied to the end of a turn", "reason", err)
		if nod != nil && agents.MayBeOpen(err) {
			s.leave(nod.Withdraw, a, err)
		}
		return
	}
	unregister() // before the prompt: if this process is killed later, nod does not claim that the reply was lost
	prompt, ok := agents.Reply(a.request, d)
	if !ok {
		return
	}
	if err := s.prompt(a, prompt); err != nil {
		s.opts.Log.Warn("acp: a reply did not reach the agent", "reason", err)
		s.leave(nod.Abandon, a, err)
	}
}

// prompt sends a person's reply to the agent as the next prompt, and shows it in the editor.
func (s *sidecar) prompt(a *ask, text string) error {
	id := "nod-" + agents.NewID()
	words := map[string]string{"type": "text", "text": text}
	line, err := encodeLine(call{Version: "2.0", ID: id, Method: methodPrompt, Params: map[string]any{"sessionId": a.session, "prompt": []any{words}}})
	shown, showErr := encodeLine(call{Version: "2.0", Method: methodUpdate, Params: map[string]any{
		"sessionId": a.session, "update": map[string]any{"sessionUpdate": "user_message_chunk", "content": words},
	}})
	if err := errors.Join(err, showErr); err != nil {
		return err
	}
	m := parseMessage(line)
	if !s.turns.replied(a, m.key) {
		return errPrompted
	}
	s.tellEditor(shown)
	s.cache.recordRequest(m)
	return s.toAgent.WriteLine(line)
}

// call is a JSON-RPC request of the sidecar. If ID is empty, it is a notification.
type call struct {
	Version string         `json:"jsonrpc"`
	ID      string         `json:"id,omitempty"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
}

// cancelHeld tells the editor that those prompts of a session that wait are cancelled.
func (s *sidecar) cancelHeld(session string) {
	for _, held := range s.turns.cancelled(session) {
		line, err := encodeLine(struct {
			Version string            `json:"jsonrpc"`
			ID      json.RawMessage   `json:"id"`
			Result  map[string]string `json:"result"`
		}{"2.0", parseMessage(held).id, map[string]string{"stopReason": "cancelled"}})
		if err == nil {
			s.tellEditor(line)
		}
	}
}
