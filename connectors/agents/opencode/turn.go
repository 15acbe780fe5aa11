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

// turnQuestion asks people for the next prompt of a session whose turn is over.
type turnQuestion struct {
	session, failure string // failure is why the turn failed, or ""
	end              context.CancelCauseFunc
	last             string // the id of the session's last message, or "" before the message is read; guarded by follower.mu
}

// maxTurns is the largest number of open questions about turns. Above it, the connector does not ask
// about another turn.
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

// aborted is the name of the error after which a turn ends because its user has stopped it.
const aborted = "MessageAbortedError"

// turnOver asks people for the next prompt of a session whose turn is over. If the user has stopped the
// turn, turnOver asks nobody, because the user is at the agent. The second report of the same end has
// no effect, because OpenCode may report an end twice.
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

// endTurn ends the session's open question about its turn, if there is one.
func (f *follower) endTurn(session string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.turns[session]; q != nil {
		q.end(why)
	}
}

// catchUpTurns ends the questions about the turns of sessions that have continued while the connector
// was not connected to OpenCode.
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
	if f.turns[q.session] == q { // if another question has replaced q, a later turn is over too, and that question stays
		delete(f.turns, q.session)
	}
}

// followTurn handles an event about a turn. If the event says that a session works again, followTurn
// ends the session's open question.
func (f *follower) followTurn(e event) {
	var t turnEvent
	if json.Unmarshal(e.Properties, &t) != nil {
		return // another version of OpenCode may use another format
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

// askForPrompt asks people for the next prompt of q's session, and sends their reply to OpenCode. It
// does not send the reply if the session has got another message.
func (f *follower) askForPrompt(ctx context.Context, q *turnQuestion) error {
	own, root, err := f.host.sessions(ctx, q.session)
	if err != nil || own.ID != root.ID { // the next prompt of a sub-agent comes from another agent, not from a person
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
		return nil // the process that was killed had already sent the reply
	}
	if err != nil {
		f.opts.Log.Warn("a reply did not reach the agent", "request", r.PendingID, "error", err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
		defer cancel()
		return f.nod.Abandon(ctx, r.SessionID, r.PendingID, err.Error())
	}
	return nil
}

// maxRounds is how often this process asks about one turn, if other processes withdraw the question.
const maxRounds = 8

// askOnce asks people about the end of a turn. All processes that follow the session share one question,
// because they use the same id. A process withdraws the question when it ends. askOnce then asks again,
// unless the session has got another message.
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

// The errors that Options.Claim may return.
var (
	// ErrClaimTaken means that another process has handled the reply.
	ErrClaimTaken = errors.New("another process has handled the reply")
	// ErrClaimLost means that another process was killed while it sent the reply. Only one process gets
	// this error, and tells people.
	ErrClaimLost = errors.New("the process that was to send the reply was killed; the agent may not have it")
)

// claim claims the reply to the request r for this process.
func (f *follower) claim(ctx context.Context, r *schemas.Request) (done func(), err error) {
	if f.opts.Claim == nil {
		return func() {}, nil
	}
	return f.opts.Claim(ctx, r.SessionID, r.PendingID)
}

// sendReply sends a person's reply to the session of q. It returns an error if the session has a message
// after the message last, or if q has ended.
func (f *follower) sendReply(ctx context.Context, q *turnQuestion, last message, prompt string) error {
	now, err := f.host.lastMessage(ctx, q.session)
	if err != nil {
		return err
	}
	f.takeTurn(q) // remove q before sending, because the prompt makes the session work again, which would end q and this call
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

// message is a message of a session. Its field agent is the mode in which OpenCode works, such as build
// or plan.
type message struct {
	id, text, agent string
	model           *model
}

type model struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

// lastMessage returns the last message of a session, or an empty message if there is none.
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

// prompt sends a session its next prompt. It also sends the agent and the model of the last message,
// because OpenCode would otherwise leave a mode such as plan.
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
