package web

import (
	"context"
	"encoding/json"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// asked is the payload of every request; each action reads its own part.
type asked struct {
	SessionID string `json:"session_id"`
	Agent     string `json:"agent"`
	PendingID string `json:"pending_id"`
	OptionID  string `json:"option_id"`
	Cancelled bool   `json:"cancelled"`
	Digest    string `json:"digest"`
	Waiters   int    `json:"waiters"`
	Message   string `json:"message"`
	After     string `json:"after"`
	Limit     int    `json:"limit"`
	GrantID   string `json:"grant_id"`

	// An answer beyond a plain yes or no; see schemas.Answer.
	UpdatedInput json.RawMessage `json:"updated_input"`
	Scope        schemas.Scope   `json:"scope"`
	Reach        int             `json:"reach"`
	ForSeconds   int             `json:"for_seconds"`
	CodeWord     string          `json:"code_word"`

	Subscription webpush.Subscription `json:"subscription"`
}

// listLimit is how many requests a page of permissions.list holds at most.
const listLimit = 100

// handle does what one message asks. Subscriptions happen in the order of
// their messages; what has to ask nod does not keep others waiting.
func (c *client) handle(ctx context.Context, data []byte) {
	var m received
	if err := json.Unmarshal(data, &m); err != nil {
		c.fail(received{}, failed(schemas.Errorf(schemas.CodeBadRequest, "the message is not JSON, or not of the form {id, type, action, payload}")))
		return
	}
	if m.Type != typeRequest {
		c.fail(m, failed(schemas.Errorf(schemas.CodeBadRequest, "type is %q: clients send %q", m.Type, typeRequest)))
		return
	}
	var a asked
	if len(m.Payload) > 0 {
		if err := json.Unmarshal(m.Payload, &a); err != nil {
			c.fail(m, failed(schemas.Errorf(schemas.CodeBadRequest, "the payload is not of the form that %q takes", m.Action)))
			return
		}
	}
	if err := c.do(ctx, m, a); err != nil {
		c.fail(m, failed(err))
	}
}

// do starts one action. Its error is what keeps it from starting.
func (c *client) do(ctx context.Context, m received, a asked) error {
	if a.SessionID != "" && !schemas.ValidID(a.SessionID) {
		return noID("session_id")
	}
	if a.Agent != "" && !schemas.ValidID(a.Agent) {
		return noID("agent")
	}
	switch m.Action {
	case "inbox.subscribe":
		c.board.subscribe(c, m, "")
		return nil
	case "permissions.list":
		if a.Limit <= 0 || a.Limit > listLimit {
			a.Limit = listLimit
		}
		c.answer(m, c.board.list(a.SessionID, a.After, a.Limit, c.clock.now()))
		return nil
	case "permissions.history":
		return c.call(ctx, func(ctx context.Context) { c.history(ctx, m, a) })
	case "grants.list":
		return c.call(ctx, func(ctx context.Context) { c.grants(ctx, m, a) })
	case "grants.revoke":
		if a.GrantID == "" {
			return required("grant_id is required")
		}
		return c.call(ctx, func(ctx context.Context) { c.revoke(ctx, m, a) })
	case "brake.show", "brake.freeze", "brake.thaw":
		return c.call(ctx, func(ctx context.Context) { c.brake(ctx, m, a) })
	case "push.show", "push.subscribe", "push.unsubscribe":
		return c.call(ctx, func(context.Context) { c.device(m, a) })
	case "session.subscribe", "session.unsubscribe", "session.lock.acquire", "session.lock.release", "permission.respond":
	default:
		return schemas.Errorf(schemas.CodeUnknownAction, "unknown action: %s", people.Line(m.Action))
	}
	if a.SessionID == "" {
		return required("session_id is required")
	}
	switch m.Action {
	case "session.subscribe":
		c.board.subscribe(c, m, a.SessionID)
	case "session.unsubscribe":
		c.board.unsubscribe(c, m, a.SessionID)
	case "session.lock.acquire":
		return c.call(ctx, func(ctx context.Context) { c.hold(ctx, m, a.SessionID, schemas.PresenceLock) })
	case "session.lock.release":
		return c.call(ctx, func(ctx context.Context) { c.hold(ctx, m, a.SessionID, schemas.PresenceUnlock) })
	case "permission.respond":
		return c.respond(ctx, m, a)
	}
	return nil
}

func required(message string) error { return schemas.Errorf(schemas.CodeValidation, "%s", message) }

func noID(field string) error {
	return schemas.Errorf(schemas.CodeValidation, "%s is no id: expected 1 to 128 letters, digits, _ or -", field)
}

// call runs what asks nod, a few at a time.
func (c *client) call(ctx context.Context, f func(context.Context)) error {
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	go func() {
		defer func() { <-c.calls }()
		// What a person has said is recorded though they close the page.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
		defer cancel()
		f(ctx)
	}()
	return nil
}

// respond brings what a person said. Success is said only when it counts.
func (c *client) respond(ctx context.Context, m received, a asked) error {
	switch {
	case a.PendingID == "":
		return required("pending_id is required")
	case !schemas.ValidID(a.PendingID):
		return noID("pending_id")
	case a.OptionID == "" && !a.Cancelled:
		return required("option_id is required when not cancelled")
	}
	if a.Cancelled {
		a.OptionID = ""
	}
	return c.call(ctx, func(ctx context.Context) {
		d, prompt, err := c.say(ctx, a)
		if err != nil {
			c.fail(m, refused(err, c.clock.now()))
			return
		}
		c.answer(m, responded{Success: true, Decision: d, Text: people.Recorded(&d, &prompt)})
	})
}

// say answers what is pending. A client that names no digest means what it was
// sent, which is what is pending under the id; one that counts no calls means the
// one that asked first.
func (c *client) say(ctx context.Context, a asked) (schemas.Decision, schemas.Prompt, error) {
	p, _, err := c.opts.Desk.Show(ctx, a.SessionID, a.PendingID)
	if err != nil {
		return schemas.Decision{}, p, err
	}
	if p.SessionID != a.SessionID || p.PendingID != a.PendingID { // a prefix of another's id names nothing
		return schemas.Decision{}, p, schemas.Errorf(schemas.CodeNotFound, "no request %s is known", a.PendingID)
	}
	if a.Digest == "" {
		a.Digest = p.Digest
	}
	p = people.AsShown(p, a.Waiters)
	d, err := c.opts.Desk.Answer(ctx, schemas.Answer{
		SessionID: a.SessionID, PendingID: a.PendingID, Digest: a.Digest, Waiters: p.Waiters, OptionID: a.OptionID,
		Cancelled: a.Cancelled, Message: a.Message, From: schemas.From{UserID: c.user},
		UpdatedInput: a.UpdatedInput, Scope: a.Scope, Reach: a.Reach, ForSeconds: a.ForSeconds, CodeWord: a.CodeWord,
	})
	return d, p, err
}

// hold asks for a session's input lock, or gives it back. Who asks again in
// time keeps it.
func (c *client) hold(ctx context.Context, m received, session string, op schemas.PresenceOp) {
	c.mu.Lock()
	c.locked[session] = true
	over := len(c.locked) > maxSessions
	c.mu.Unlock()
	if over {
		c.fail(m, failed(schemas.Errorf(schemas.CodeValidation, "session_id: too many sessions for one connection")))
		return
	}
	lock, err := c.opts.Desk.Hold(ctx, c.presence(session, op))
	if err != nil {
		c.fail(m, failed(err))
		return
	}
	if op == schemas.PresenceUnlock { // its lease ends by itself
		c.mu.Lock()
		delete(c.locked, session)
		c.mu.Unlock()
	}
	c.answer(m, lock)
}

func (c *client) presence(session string, op schemas.PresenceOp) schemas.Presence {
	return schemas.Presence{Op: op, SessionID: session, ClientID: c.id, Kind: Name, From: schemas.From{UserID: c.user}}
}

// unlockAll lets go of every session that the client held.
func (c *client) unlockAll() {
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	for session := range c.locked {
		if _, err := c.opts.Desk.Hold(ctx, c.presence(session, schemas.PresenceLeave)); err != nil {
			c.log.Info("web: a lock was not given back; its lease ends by itself", "error", err)
		}
	}
}

// brake shows what is frozen, freezes everything, an agent or a session with a
// message as the reason, or thaws it.
func (c *client) brake(ctx context.Context, m received, a asked) {
	desk, ok := c.opts.Desk.(people.Freezer)
	if !ok {
		c.fail(m, failed(schemas.Errorf(schemas.CodeUnknownAction, "this inbox cannot freeze")))
		return
	}
	if a.Agent != "" && a.SessionID != "" {
		c.fail(m, failed(schemas.Errorf(schemas.CodeValidation, "agent, session_id: name one of them, or neither")))
		return
	}
	b := schemas.FreezeRequest{Agent: a.Agent, SessionID: a.SessionID, Reason: a.Message, From: schemas.From{UserID: c.user}}
	var frozen schemas.FreezeState
	var err error
	switch m.Action {
	case "brake.freeze":
		frozen, err = desk.Freeze(ctx, b)
	case "brake.thaw":
		b.CodeWord = a.CodeWord
		frozen, err = desk.Thaw(ctx, b)
	default:
		frozen.Freezes, err = c.opts.Registry.Freezes(ctx)
	}
	if err != nil {
		c.fail(m, failed(err))
		return
	}
	c.answer(m, braked{brakes(frozen.Freezes), frozen.Denied, people.Laggards(&frozen)})
}
