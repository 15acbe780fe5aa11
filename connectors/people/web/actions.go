package web

import (
	"context"
	"encoding/json"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// actionPayload is the payload of a client's message. It contains the fields of all actions, and each
// action uses some of them.
type actionPayload struct {
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

	// Fields of permissions.history: the field Next of the previous page, and filters.
	Before  string          `json:"before"`
	Query   string          `json:"query"`
	Outcome schemas.Outcome `json:"outcome"`

	// Fields of an answer that says more than allow once or deny once; see schemas.Answer. The
	// action permission.compare also uses UpdatedInput.
	UpdatedInput json.RawMessage `json:"updated_input"`
	Scope        schemas.Scope   `json:"scope"`
	Reach        int             `json:"reach"`
	ForSeconds   int             `json:"for_seconds"`
	CodeWord     string          `json:"code_word"`

	Subscription webpush.Subscription `json:"subscription"`
}

const listLimit = 100 // the largest number of requests in one page of permissions.list

// handle executes the action of one message. It executes subscriptions in the order of their messages.
// Actions that call nod run concurrently. If maxCalls actions are running, handle waits, and later
// messages wait too.
func (c *client) handle(ctx context.Context, data []byte) {
	var m clientMessage
	if err := json.Unmarshal(data, &m); err != nil {
		c.fail(clientMessage{}, failureOf(schemas.Errorf(schemas.CodeBadRequest, "the message is not JSON, or not of the form {id, type, action, payload}")))
		return
	}
	if m.Type != typeRequest {
		c.fail(m, failureOf(schemas.Errorf(schemas.CodeBadRequest, "type is %q: clients send %q", m.Type, typeRequest)))
		return
	}
	var a actionPayload
	if len(m.Payload) > 0 {
		if err := json.Unmarshal(m.Payload, &a); err != nil {
			c.fail(m, failureOf(schemas.Errorf(schemas.CodeBadRequest, "the payload is not of the form that %q takes", m.Action)))
			return
		}
	}
	if err := c.dispatch(ctx, m, a); err != nil {
		c.fail(m, failureOf(err))
	}
}

// dispatch starts an action, which then sends its reply. If dispatch cannot start the action, it returns
// an error and sends no reply.
func (c *client) dispatch(ctx context.Context, m clientMessage, a actionPayload) error {
	if a.SessionID != "" && !schemas.ValidID(a.SessionID) {
		return noID("session_id")
	}
	if a.Agent != "" && !schemas.ValidID(a.Agent) {
		return noID("agent")
	}
	if err := c.checkLapsed(); err != nil {
		return err
	}
	switch m.Action {
	case "inbox.subscribe":
		c.hub.subscribe(c, m, "", max(0, a.Limit))
		return nil
	case "permissions.list":
		if a.Limit <= 0 || a.Limit > listLimit {
			a.Limit = listLimit
		}
		return c.call(ctx, func(ctx context.Context) { c.listPending(ctx, m, a) })
	case "permissions.history":
		return c.call(ctx, func(ctx context.Context) { c.listHistory(ctx, m, a) })
	case "sessions.list":
		return c.call(ctx, func(ctx context.Context) { c.listSessions(ctx, m, a) })
	case "grants.list":
		return c.call(ctx, func(ctx context.Context) { c.listGrants(ctx, m, a) })
	case "grants.revoke":
		if a.GrantID == "" {
			return required("grant_id is required")
		}
		return c.call(ctx, func(ctx context.Context) { c.revokeGrant(ctx, m, a) })
	case "brake.show", "brake.freeze", "brake.thaw":
		return c.call(ctx, func(ctx context.Context) { c.freeze(ctx, m, a) })
	case "push.show", "push.subscribe", "push.unsubscribe":
		return c.call(ctx, func(context.Context) { c.handlePush(m, a) })
	case "session.subscribe", "session.unsubscribe", "session.lock.acquire", "session.lock.release", "permission.respond", "permission.compare":
	default:
		return schemas.Errorf(schemas.CodeUnknownAction, "unknown action: %s", people.Line(m.Action))
	}
	if a.SessionID == "" {
		return required("session_id is required")
	}
	switch m.Action {
	case "session.subscribe":
		c.hub.subscribe(c, m, a.SessionID, 0)
	case "session.unsubscribe":
		c.hub.unsubscribe(c, m, a.SessionID)
	case "session.lock.acquire":
		return c.call(ctx, func(ctx context.Context) { c.changeLock(ctx, m, a.SessionID, schemas.PresenceLock) })
	case "session.lock.release":
		return c.call(ctx, func(ctx context.Context) { c.changeLock(ctx, m, a.SessionID, schemas.PresenceUnlock) })
	case "permission.respond":
		return c.respond(ctx, m, a)
	case "permission.compare":
		return c.call(ctx, func(ctx context.Context) { c.compareEdit(ctx, m, a) })
	}
	return nil
}

func required(message string) error { return schemas.Errorf(schemas.CodeValidation, "%s", message) }

func noID(field string) error {
	return schemas.Errorf(schemas.CodeValidation, "%s is not an id: expected 1 to 128 letters, digits, _ or -", field)
}

// call runs f, which calls nod, in a goroutine. If maxCalls goroutines are running, call first waits
// until one of them ends. It returns an error if ctx ends before f starts.
func (c *client) call(ctx context.Context, f func(context.Context)) error {
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	go func() {
		defer func() { <-c.calls }()
		// f does not get the context of the connection, so that nod stores an answer even if the user
		// closes the page.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
		defer cancel()
		f(ctx)
	}()
	return nil
}

// respond sends an answer to nod. It replies with success only after nod has stored the decision.
func (c *client) respond(ctx context.Context, m clientMessage, a actionPayload) error {
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
		d, prompt, err := c.answerPending(ctx, a)
		if err != nil {
			c.fail(m, answerFailureOf(err, c.clock.now()))
			return
		}
		c.reply(m, respondReply{Success: true, Decision: d, Text: people.Recorded(&d, &prompt)})
	})
}

// compareEdit replies with the difference between a request's input and the input that a person has
// edited.
func (c *client) compareEdit(ctx context.Context, m clientMessage, a actionPayload) {
	p, _, err := c.opts.Desk.Show(ctx, a.SessionID, a.PendingID)
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	c.reply(m, compareReply{partsIn(people.Difference(p.Request.ActionDetails, a.UpdatedInput))})
}

// answerPending answers a pending request. An answer without a digest gets the digest of the
// pending request. An answer without a number of waiters covers only the first call.
func (c *client) answerPending(ctx context.Context, a actionPayload) (schemas.Decision, schemas.Prompt, error) {
	p, _, err := c.opts.Desk.Show(ctx, a.SessionID, a.PendingID)
	if err != nil {
		return schemas.Decision{}, p, err
	}
	if p.SessionID != a.SessionID || p.PendingID != a.PendingID { // the call has joined a question, and a person can answer only the question
		return schemas.Decision{}, p, schemas.Errorf(schemas.CodeNotFound, "no request %s is known", a.PendingID)
	}
	if a.Digest == "" {
		a.Digest = p.Digest
	}
	p = people.AsShown(p, a.Waiters)
	from, err := c.person(ctx, c.session)
	if err != nil {
		return schemas.Decision{}, p, err
	}
	d, err := c.opts.Desk.Answer(ctx, schemas.Answer{
		SessionID: a.SessionID, PendingID: a.PendingID, Digest: a.Digest, Waiters: p.Waiters, OptionID: a.OptionID,
		Cancelled: a.Cancelled, Message: a.Message, From: from,
		UpdatedInput: a.UpdatedInput, Scope: a.Scope, Reach: a.Reach, ForSeconds: a.ForSeconds, CodeWord: a.CodeWord,
	})
	return d, p, err
}

// changeLock acquires or releases the input lock of a session. A client renews its lock by acquiring
// it again.
func (c *client) changeLock(ctx context.Context, m clientMessage, session string, op schemas.PresenceOp) {
	c.mu.Lock()
	tooMany := !c.locked[session] && len(c.locked) >= maxSessions
	if !tooMany {
		c.locked[session] = true
	}
	c.mu.Unlock()
	if tooMany {
		c.fail(m, failureOf(schemas.Errorf(schemas.CodeValidation, "session_id: too many sessions for one connection")))
		return
	}
	from, err := c.person(ctx, c.session)
	var lock schemas.Lock
	if err == nil {
		lock, err = c.opts.Desk.Hold(ctx, c.presence(session, op, from))
	}
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	if op == schemas.PresenceUnlock { // The lock is free now. The client stays present in the session until its lease ends.
		c.mu.Lock()
		delete(c.locked, session)
		c.mu.Unlock()
	}
	c.reply(m, lock)
}

func (c *client) presence(session string, op schemas.PresenceOp, from schemas.From) schemas.Presence {
	return schemas.Presence{Op: op, SessionID: session, ClientID: c.id, Kind: Name, From: from}
}

// leaveSessions releases every input lock of the client, and ends the client's presence in these
// sessions.
func (c *client) leaveSessions() {
	if len(c.locked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	from, err := c.person(ctx, c.session)
	if err != nil {
		c.log.Info("web: locks were not released; their leases end by themselves", "error", err)
		return
	}
	for session := range c.locked {
		if _, err := c.opts.Desk.Hold(ctx, c.presence(session, schemas.PresenceLeave, from)); err != nil {
			c.log.Info("web: a lock was not released; its lease ends by itself", "error", err)
		}
	}
}

// freeze lists the freezes, or freezes or thaws all agents, one agent or one session. The field message
// of the payload is the reason of a freeze.
func (c *client) freeze(ctx context.Context, m clientMessage, a actionPayload) {
	desk, ok := c.opts.Desk.(people.Freezer)
	if !ok {
		c.fail(m, failureOf(schemas.Errorf(schemas.CodeUnknownAction, "this inbox cannot freeze")))
		return
	}
	if a.Agent != "" && a.SessionID != "" {
		c.fail(m, failureOf(schemas.Errorf(schemas.CodeValidation, "agent, session_id: name one of them, or neither")))
		return
	}
	from, err := c.person(ctx, c.session)
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	b := schemas.FreezeRequest{Agent: a.Agent, SessionID: a.SessionID, Reason: a.Message, From: from}
	var frozen schemas.FreezeState
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
		c.fail(m, failureOf(err))
		return
	}
	c.reply(m, freezeReply{freezeViews(frozen.Freezes), frozen.Denied, people.Laggards(&frozen)})
}
