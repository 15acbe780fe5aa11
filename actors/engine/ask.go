package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// agentRequest is a request as its agent sent it.
type agentRequest struct {
	agent   string
	body    json.RawMessage // the message as received, byte for byte
	request schemas.Request
	digest  string     // digest of the request's content
	same    string     // the CallDigest of the call, computed by the method sameness
	trace   *callTrace // nil if the request is not traced
}

func (r *agentRequest) key() string { return r.request.Key() }

// sameness returns the CallDigest, which identical calls share. It computes the digest only once.
func (r *agentRequest) sameness() (string, error) {
	if r.same != "" {
		return r.same, nil
	}
	var err error
	r.same, err = schemas.CallDigest(&r.request)
	return r.same, err
}

// identify computes the digest of the request as sent. After that, it adds default options to the
// request.
func (r *agentRequest) identify() (err error) {
	if r.digest, err = schemas.Digest(&r.request); err != nil {
		return err
	}
	r.request.Options = r.request.Offered()
	return nil
}

// ask replies to a request by decideOrAsk, and traces the call.
func (e *intake) ask(ctx context.Context, c *caller, r *schemas.Request) (schemas.RequestReply, error) {
	t := e.beginTrace(c)
	reply, err := e.decideOrAsk(t.observe(ctx), c, r, t)
	t.end(r, reply, err)
	return reply, err
}

// decideOrAsk replies with the decision if the engine can decide the request at once, and else with a
// receipt. The decision about a request with a new id is usually stored in the log alone, before the
// agent gets it. A new request gets a record only if a person must decide it, if its input was edited,
// or if the decision's texts have a secret, because the log stores no secrets. A request that may have
// been sent before is decided in its record, so that no id has two decisions.
func (e *intake) decideOrAsk(ctx context.Context, c *caller, r *schemas.Request, t *callTrace) (schemas.RequestReply, error) {
	s, err := e.receive(ctx, c, r)
	if err != nil {
		return nil, err
	}
	s.trace = t
	var leave func()
	s.freezes, leave = e.freezes.enter()
	c.afterReply(leave) // until the reply, this engine must not report a newer freeze as obeyed, because this request is checked against the older freezes
	began := t.now()
	if err := e.check(ctx, s); err != nil {
		return nil, err
	}
	t.checked(s, began)
	if s.request.Rejoin {
		return e.rejoin(ctx, c, s)
	}
	if err := e.store.Room(); err != nil {
		return nil, err
	}
	switch {
	case s.verdict.Effect == policy.Ask:
		return e.askPerson(ctx, c, s, 0)
	case s.rules.updated != nil:
		return e.createDecided(ctx, s, 0)
	}
	return e.decideFresh(ctx, c, s)
}

// receive validates a request and records its session's activity. The error is NOT_FOUND if the
// session belongs to another agent.
func (e *intake) receive(ctx context.Context, c *caller, r *schemas.Request) (*askState, error) {
	s := &askState{agentRequest: agentRequest{agent: c.name, body: c.body, request: *r}, settings: e.settings.now()}
	if err := complete(&s.request); err != nil {
		return nil, err
	}
	session, err := e.holdings.requireSession(ctx, s.agent, s.request.SessionID, s.request.User)
	if err != nil {
		return nil, err
	}
	s.setSession(&session)
	e.recordActivity(session)
	return s, nil
}

func (e *intake) policyDecision(s *askState) *schemas.Decision {
	if s.frozen != nil {
		return e.freezeDenial(&s.request, s.digest, s.frozen)
	}
	kind, outcome := schemas.RejectOnce, schemas.Denied
	message := fmt.Sprintf("%s is denied by the rule %q", s.request.ToolName, s.verdict.Rule)
	if s.callAnswer != nil && s.callAnswer.Denies() {
		message = e.holdings.denialMessage(&s.callAnswer.StandingAnswer)
	}
	if s.verdict.Effect == policy.Allow {
		kind, outcome, message = schemas.AllowOnce, schemas.Allowed, s.rules.note
	}
	d := e.decision(&s.request, s.digest, outcome, schemas.By{Kind: schemas.ByPolicy, Name: s.verdict.Rule})
	if o, ok := s.request.OptionOfKind(kind); ok { // the option is found by its kind, because agents choose the order of their options
		d.OptionID, d.OptionKind = o.OptionID, o.Kind
	}
	if d.Message, d.SettingsRevision = message, s.settings.revision; d.Outcome == schemas.Allowed {
		d.UpdatedInput = s.rules.updated
	}
	return d
}

func (e *base) decision(r *schemas.Request, digest string, outcome schemas.Outcome, by schemas.By) *schemas.Decision {
	return &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: r.SessionID, PendingID: r.PendingID,
		DecisionID: bus.NewID(), Outcome: outcome, By: by, Digest: digest,
		SettingsRevision: e.settings.now().revision, DecidedAt: e.clock.now(),
	}
}

// decideFresh decides a request with a new id in the log, without a record. The message id of the log
// entry prevents a second decision.
func (e *intake) decideFresh(ctx context.Context, c *caller, s *askState) (schemas.RequestReply, error) {
	d := e.policyDecision(s)
	if e.store.Log.HasSecret(d) {
		return e.createDecided(ctx, s, 0)
	}
	entry := schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: d.DecidedAt, Kind: schemas.LogDecided,
		SessionID: s.request.SessionID, PendingID: s.request.PendingID, Actor: s.agent, ToolName: s.request.ToolName,
		Digest: s.digest, Rule: s.verdict.Rule, Outcome: d.Outcome, SettingsRevision: d.SettingsRevision, Decision: d,
	}
	logged, err := e.life.claim(ctx, s.key(), entry)
	if err != nil {
		return nil, err
	}
	if logged == nil {
		return e.throughRecord(ctx, c, s)
	}
	return replyLogged(s, logged)
}

// claim appends a log entry under a request's id, unless an entry with this id is logged already. It
// returns the decision in the entry that was logged first under the id, or nil if the request is
// decided in a record.
func (e *recordLife) claim(ctx context.Context, key string, entry schemas.LogEntry) (*schemas.Decision, error) {
	seq, first, err := e.store.Log.Append(ctx, key, entry)
	if err != nil {
		return nil, err
	}
	if first {
		return entry.Decision, nil
	}
	earlier, err := e.store.Log.Read(ctx, seq)
	if errors.Is(err, bus.ErrNotFound) { // the full log has dropped the first entry with this id, but the broker still refuses another entry
		return nil, reused(key)
	}
	if err != nil {
		return nil, fmt.Errorf("read the decision about %s from the log: %w", key, err)
	}
	return earlier.Decision, nil
}

// replyLogged replies with a decision from the log. The error is CONFLICT if the decision is
// about another request with the same id.
func replyLogged(s *askState, d *schemas.Decision) (schemas.RequestReply, error) {
	if d.Digest != s.digest {
		return nil, reused(s.key())
	}
	return d, nil
}

func reused(key string) error {
	return schemas.Errorf(schemas.CodeConflict, "the id of %s was used for another request: ask under a new one", key)
}

// rejoin replies to a request that its agent may have sent before.
func (e *intake) rejoin(ctx context.Context, c *caller, s *askState) (schemas.RequestReply, error) {
	entry, err := e.store.Records.Get(ctx, s.key())
	switch {
	case err == nil:
		return e.replyExisting(ctx, s, entry)
	case !errors.Is(err, bus.ErrNotFound):
		return nil, err
	case s.request.Revision != 0:
		return nil, notFound(s.key())
	}
	logged, err := e.life.claim(ctx, s.key(), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogClaim, Actor: s.agent,
		SessionID: s.request.SessionID, PendingID: s.request.PendingID, Digest: s.digest,
	})
	switch {
	case err != nil:
		return nil, err
	case logged != nil:
		return replyLogged(s, logged)
	}
	return e.throughRecord(ctx, c, s)
}

func notFound(key string) error {
	return schemas.Errorf(schemas.CodeNotFound, "no request %s is known", key)
}
