package opencode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// turnQuestion is a question to people for the next prompt of a session whose turn is over.
type turnQuestion struct {
	session, failure string // failure is why the turn failed, or ""
	end              context.CancelCauseFunc
	last             string // the id of the session's last message, or "" before the message is read; guarded by follower.mu
}

// maxTurns is the largest number of open questions for a next prompt. If there are as many, the connector
// does not ask about another turn.
const maxTurns = 50

// turnEvent is an event about a session's turn.
type turnEvent struct {
	Status struct {
		Type string `json:"type"`
	} `json:"status"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
}

// aborted is the error of a turn that its user has stopped.
const aborted = "MessageAbortedError"

// turnOver asks people for the next prompt of a session whose turn is over. If the user has stopped the
// turn, turnOver asks nobody, because the user is at the agent. OpenCode may report the end of a turn
// twice.
func (f *follower) turnOver(session string) {
	failure, working := f.failures[session]
	delete(f.failures, session)
	if f.opts.Turns && working && failure != aborted {
		f.beginTurn(session, failure)
	}
}

// beginTurn asks people for the next prompt of a session.
func (f *follower) beginTurn(session, failure string) {
	f.endTurn(session, errPrompted)
	ctx, end := context.WithCancelCause(f.ctx)
	q := &turnQuestion{session: session, failure: failure, end: end}
	f.mu.Lock()
	full := len(f.turns) >= maxTurns && f.turns[session] == nil
	if !full {
		f.turns[session] = q
	}
	f.mu.Unlock()
	if full {
		end(nil)
		f.opts.Log.Warn("too many turns wait for a prompt; nobody is asked about this one", "session", session)
		return
	}
	f.all.Go(func() {
		defer end(nil)
		if err := f.askForPrompt(ctx, q); err != nil && ctx.Err() == nil {
			f.opts.Log.Warn("nod could not ask people for the agent's next prompt", "session", session, "error", err)
		}
		f.takeTurn(q)
	})
}

// endTurn ends the session's question for its next prompt, if there is one.
func (f *follower) endTurn(session string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.turns[session]; q != nil {
		q.end(why)
	}
}

// catchUpTurns ends the questions of sessions that went on while the connector was disconnected from
// OpenCode.
func (f *follower) catchUpTurns(ctx context.Context) error {
	f.mu.Lock()
	was := map[string]string{}
	for session, q := range f.turns {
		if q.last != "" {
			was[session] = q.last
		}
	}
	f.mu.Unlock()
	for session, last := range was {
		now, err := f.host.lastMessage(ctx, session)
		if err != nil {
			return err
		}
		if now.id != last {
			f.endTurn(session, errPrompted)
		}
	}
	return nil
}

// takeTurn removes q from the open questions.
func (f *follower) takeTurn(q *turnQuestion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns[q.session] == q { // if the session has another question, its next turn is already over, so keep that question
		delete(f.turns, q.session)
	}
}

// followTurn handles an event about a session's turn. When a session works again, followTurn ends its
// question for the next prompt.
func (f *follower) followTurn(e event) {
	var t turnEvent
	if json.Unmarshal(e.Properties, &t) != nil {
		return // another version of OpenCode may report turns in another format
	}
	session := e.references().session()
	switch {
	case session == "":
	case e.Type == "session.error":
		if _, working := f.failures[session]; !working {
			return // OpenCode has already reported the end of this turn
		}
		failure := strings.TrimSpace(strings.TrimPrefix(t.Error.Name+": "+t.Error.Data.Message, ": "))
		if t.Error.Name == aborted {
			failure = aborted
		}
		agents.PutBounded(f.failures, session, failure)
	case t.Status.Type != "" && t.Status.Type != "idle":
		if _, working := f.failures[session]; !working {
			agents.PutBounded(f.failures, session, "")
		}
		f.endTurn(session, errPrompted)
	}
}

// askForPrompt asks people for the next prompt of q's session, and sends a reply to OpenCode. If the
// session has a new message, it does not send the reply.
func (f *follower) askForPrompt(ctx context.Context, q *turnQuestion) error {
	own, root, err := f.host.sessions(ctx, q.session)
	if err != nil || own.ID != root.ID { // an agent, not a person, prompts a sub-agent's session
		return err
	}
	last, err := f.host.lastMessage(ctx, q.session)
	if err != nil {
		return err
	}
	f.mu.Lock()
	q.last = last.id
	f.mu.Unlock()
	r, err := agents.TurnRequest(schemas.Request{
		Type: schemas.TypeRequest, SessionID: agents.ID(root.ID), AgentName: f.opts.Agent, Host: f.opts.Host, User: f.opts.User,
		Project: root.Directory, SessionLabel: agents.Cut(root.Title, agents.MaxLabel), CreatedAt: time.Now().UTC(),
	}, agents.Turn{Message: last.text, Failure: q.failure})
	if err != nil {
		return err
	}
	r.Rejoin = true
	d, err := f.askOnce(ctx, q, &r, last)
	if err != nil {
		return err
	}
	prompt, ok := agents.Reply(r, d)
	if !ok {
		return nil
	}
	done, err := f.claim(ctx, &r)
	if errors.Is(err, ErrClaimTaken) || err != nil && ctx.Err() != nil {
		return nil
	}
	if err == nil {
		defer done()
		err = f.sendReply(ctx, q, last, prompt)
	} else if now, failure := f.host.lastMessage(ctx, q.session); failure == nil && now.id != last.id {
		return nil // the process that was killed had sent the reply
	}
	if err != nil {
		f.opts.Log.Warn("a reply did not reach the agent", "request", r.PendingID, "error", err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
		defer cancel()
		return f.nod.Abandon(ctx, r.SessionID, r.PendingID, err.Error())
	}
	return nil
}

// maxRounds is how often this process asks the question about one turn if other processes withdraw it.
const maxRounds = 8

// askOnce asks the question about a turn. All processes that follow the session use the same id for this
// question. When one of these processes ends, it withdraws the question. askOnce then asks again if the
// session has no new message.
func (f *follower) askOnce(ctx context.Context, q *turnQuestion, r *schemas.Request, last message) (d schemas.Decision, err error) {
	for round := range maxRounds {
		r.PendingID = agents.TurnID(r.SessionID, last.id, round)
		if d, err = f.askTurn(ctx, r); err != nil || d.Outcome != schemas.Withdrawn || ctx.Err() != nil {
			return d, err
		}
		now, err := f.host.lastMessage(ctx, q.session)
		if err != nil || now.id != last.id {
			return d, err
		}
	}
	return d, nil
}

func (f *follower) askTurn(ctx context.Context, r *schemas.Request) (schemas.Decision, error) {
	d, err := f.ask(ctx, r)
	if err != nil && agents.MayBeOpen(err) {
		f.leave(ctx, r)
	}
	return d, err
}

// The errors of Options.Claim.
var (
	// ErrClaimTaken means that another process has handled the reply.
	ErrClaimTaken = errors.New("another process has handled the reply")
	// ErrClaimLost means that another process was killed while it sent the reply. Claim returns ErrClaimLost to
	// one process, which tells people.
	ErrClaimLost = errors.New("the process that was to send the reply was killed; the agent may not have it")
)

// claim claims the reply to a question for this process.
func (f *follower) claim(ctx context.Context, r *schemas.Request) (done func(), err error) {
	if f.opts.Claim == nil {
		return func() {}, nil
	}
	return f.opts.Claim(ctx, r.SessionID, r.PendingID)
}

// sendReply sends a person's reply to q's session. It returns an error if the session has a message after
// last, or if q was ended.
func (f *follower) sendReply(ctx context.Context, q *turnQuestion, last message, prompt string) error {
	now, err := f.host.lastMessage(ctx, q.session)
	if err != nil {
		return err
	}
	f.takeTurn(q) // take q first, because the prompt makes the session work again, which would end q and so this call
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case now.id != last.id:
		return errors.New("the session has gone on")
	case last.agent == "":
		return errors.New("OpenCode does not say which of its agents wrote the last message")
	}
	return f.host.prompt(context.WithoutCancel(ctx), q.session, last, prompt)
}

// message is a message of a session. agent is the mode in which OpenCode works, such as build or plan.
type message struct {
	id, text, agent string
	model           *model
}

type model struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

// lastMessage returns a session's last message with its texts. The message is empty if the session has
// none.
func (s *server) lastMessage(ctx context.Context, session string) (last message, err error) {
	var all []struct {
		Info struct {
			ID    string `json:"id"`
			Role  string `json:"role"`
			Agent string `json:"agent"`
			Mode  string `json:"mode"` // the agent, in older versions
			model
		} `json:"info"`
		Parts []struct {
			Type      string `json:"type"`
			Text      string `json:"text"`
			Synthetic bool   `json:"synthetic"`
		} `json:"parts"`
	}
	if err := s.query(ctx, &all, url.Values{"limit": {"1"}}, "session", session, "message"); err != nil {
		return last, fmt.Errorf("read the last message: %w", err)
	}
	if len(all) == 0 {
		return last, nil
	}
	at := all[len(all)-1]
	var texts []string
	for _, part := range at.Parts {
		if part.Type == "text" && !part.Synthetic && at.Info.Role == "assistant" {
			texts = append(texts, part.Text)
		}
	}
	last = message{id: at.Info.ID, text: strings.Join(texts, "\n\n"), agent: cmp.Or(at.Info.Agent, at.Info.Mode)}
	if at.Info.ModelID != "" {
		last.model = &at.Info.model
	}
	return last, nil
}

// prompt sends a session its next prompt, with the agent and the model of the message last. Without them,
// OpenCode would leave a mode such as plan.
func (s *server) prompt(ctx context.Context, session string, last message, text string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	body := map[string]any{"agent": last.agent, "parts": []any{map[string]string{"type": "text", "text": text}}}
	if last.model != nil {
		body["model"] = last.model
	}
	resp, err := s.do(ctx, http.MethodPost, body, nil, "session", session, "prompt_async")
	if err != nil {
		return fmt.Errorf("send the reply as the next prompt: %w", err)
	}
	return resp.Body.Close()
}
