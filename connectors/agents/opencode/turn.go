package opencode

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// turnPrefix begins the ids of the ends of turns in follower.open. No permission has it: OpenCode's ids
// begin with "per".
const turnPrefix = "turn "

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

// turnOver asks people for the next prompt of a session whose turn is over. After an abort it asks
// nobody: the user is at the agent.
func (f *follower) turnOver(session string) {
	failure := f.failures[session]
	delete(f.failures, session)
	if f.opts.Turns && session != "" && failure != aborted {
		f.begin(permission{ID: turnPrefix + session, SessionID: session, Name: failure, Turn: true})
	}
}

// followTurn handles an event about a session's turn. A session that works again ends the question about
// the turn before.
func (f *follower) followTurn(e event) {
	var t turnEvent
	if json.Unmarshal(e.Properties, &t) != nil {
		return // of a version that reports turns in another way
	}
	session := e.references().session()
	switch {
	case e.Type == "session.error":
		failure := strings.TrimSpace(strings.TrimPrefix(t.Error.Name+": "+t.Error.Data.Message, ": "))
		if t.Error.Name == aborted {
			failure = aborted
		}
		agents.PutBounded(f.failures, session, failure)
	case t.Status.Type != "" && t.Status.Type != "idle":
		f.endMatching(errPrompted, func(p permission) bool { return p.Turn && p.SessionID == session })
	}
}

// askForPrompt asks people for the next prompt of p's session, and sends a reply to OpenCode. It sends
// none if the session has a new message meanwhile.
func (f *follower) askForPrompt(ctx context.Context, p permission) error {
	own, root, err := f.host.sessions(ctx, p.SessionID)
	if err != nil || own.ID != root.ID { // a sub-agent's session gets its prompts from an agent
		return err
	}
	last, err := f.host.lastMessage(ctx, p.SessionID)
	if err != nil {
		return err
	}
	r, err := agents.TurnRequest(schemas.Request{
		Type: schemas.TypeRequest, SessionID: agents.ID(root.ID), AgentName: f.opts.Agent, Host: f.opts.Host, User: f.opts.User,
		Project: root.Directory, SessionLabel: root.Title, CreatedAt: time.Now().UTC(),
	}, agents.Turn{Message: last.text, Failure: p.Name})
	if err != nil {
		return err
	}
	d, err := f.nod.Ask(ctx, r)
	if err != nil {
		if agents.MayBeOpen(err) {
			f.leave(ctx, &r)
		}
		return err
	}
	prompt, ok := agents.Reply(r, d)
	if !ok {
		return nil
	}
	now, err := f.host.lastMessage(ctx, p.SessionID)
	switch {
	case err != nil:
		return fmt.Errorf("the reply was not sent: %w", err)
	case now.id != last.id:
		return fmt.Errorf("the reply was not sent: the session has gone on")
	}
	return f.host.prompt(ctx, p.SessionID, prompt)
}

// message is a message of a session.
type message struct{ id, text string }

// lastMessage returns a session's last message with the texts in it. It is empty if there is none.
func (s *server) lastMessage(ctx context.Context, session string) (last message, err error) {
	var all []struct {
		Info struct {
			ID string `json:"id"`
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
		if part.Type == "text" && !part.Synthetic {
			texts = append(texts, part.Text)
		}
	}
	return message{at.Info.ID, strings.Join(texts, "\n\n")}, nil
}

// prompt sends a session its next prompt.
func (s *server) prompt(ctx context.Context, session, text string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	body := map[string]any{"parts": []any{map[string]string{"type": "text", "text": text}}}
	resp, err := s.do(ctx, http.MethodPost, body, nil, "session", session, "prompt_async")
	if err != nil {
		return fmt.Errorf("send the reply as the next prompt: %w", err)
	}
	return resp.Body.Close()
}

const (
	// maxLeftover is how many sessions withdrawLeftover looks at, the most recently used ones first.
	maxLeftover = 50
	// leftoverFor is how long a question about a turn may stay pending.
	leftoverFor = schemas.MaxTimeout
)

// withdrawLeftover withdraws the questions about turns that an earlier process of this connector left
// pending when it was killed: no reply to them would reach OpenCode. An error is only logged, and such
// questions then end at their deadlines.
func (f *follower) withdrawLeftover(ctx context.Context) {
	if !f.opts.Turns || f.leftover {
		return
	}
	f.leftover = true
	ctx, cancel := context.WithTimeout(ctx, withdrawWithin)
	defer cancel()
	var all []struct {
		ID   string `json:"id"`
		Time struct {
			Updated int64 `json:"updated"` // in milliseconds
		} `json:"time"`
	}
	err := f.host.get(ctx, &all, "session")
	for _, s := range all[:min(len(all), maxLeftover)] {
		if err == nil && time.Since(time.UnixMilli(s.Time.Updated)) < leftoverFor {
			err = f.nod.HostResolved(ctx, schemas.HostResolved{
				SessionID: agents.ID(s.ID), ToolName: agents.TurnTool, Reason: "nod's connector was started again",
			})
		}
	}
	if err != nil {
		f.opts.Log.Info("questions about earlier turns were not withdrawn; their deadlines end them", "error", err)
	}
}
