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

// asked is a request on its way to its decision.
type asked struct {
	agent   string
	bytes   json.RawMessage // as asked
	request schemas.Request
	digest  string
	verdict policy.Verdict
	call    policy.Call    // the request as policy sees it
	rules   *policy.Policy // what judged it; nil where they cannot be told
	// updated is the input that is allowed instead, where it is not nil.
	updated json.RawMessage
	under   settingsSnapshot // the settings it is judged by
	held    entitlements     // read where policy alone would ask, or the session is managed
	// missing is what the session would need to hold; holder is the session that
	// would get it.
	missing []policy.Permission
	holder  string
	// foreground is the session in whose place a background one asks.
	foreground string
	same       string // Sameness of the request, once it was needed
	frozen     *schemas.Freeze
	denial     *schemas.StandingAnswer // of the same call
	bare       bool                    // nod cannot say what it needs, so an answer is for once
}

func (a *asked) key() string { return a.request.Key() }

func (a *asked) sameness() (string, error) {
	if a.same != "" {
		return a.same, nil
	}
	var err error
	a.same, err = schemas.Sameness(&a.request)
	return a.same, err
}

// ask answers a request with its decision or with a receipt.
//
// A fresh id that policy decides needs no record: its decision is in the log
// before it is told. Everything else goes through the record, so that an id
// never has two decisions.
func (e *Engine) ask(ctx context.Context, c *bus.Call) error {
	a := &asked{agent: c.Tokens[0], bytes: c.Data, under: e.settings.now()}
	if err := schemas.Decode(c.Data, &a.request); err != nil {
		return err
	}
	if a.request.SessionID != c.Tokens[1] || a.request.PendingID != c.Tokens[2] {
		return schemas.Errorf(schemas.CodeValidation, "session_id, pending_id: the message names other ids than its subject")
	}
	if err := complete(&a.request); err != nil {
		return err
	}
	session, err := e.own(ctx, a.agent, a.request.SessionID, a.request.User)
	if err != nil {
		return err
	}
	e.active(session)
	freezes, judged := e.freezes.judge()
	defer judged()
	if a.frozen = freezes.Of(a.agent, a.request.SessionID); a.frozen != nil {
		a.verdict = policy.Verdict{Effect: policy.Deny, Rule: "frozen by " + a.frozen.By.Name, Risk: schemas.RiskMedium}
	} else {
		a.verdict = e.judge(a)
	}
	var read func() (entitlements, error)
	if a.verdict.Effect == policy.Ask || session.Permissions != nil && a.verdict.Effect == policy.Allow {
		read = e.heldNow(ctx, a)
	}
	if err := a.fill(); err != nil { // meanwhile
		return err
	}
	if read != nil {
		if _, err := a.sameness(); err != nil { // which most need
			return err
		}
		if a.held, err = read(); err != nil {
			return err
		}
		if err := e.applyStanding(ctx, a); err != nil {
			return err
		}
	}
	if a.request.Rejoin {
		return e.rejoin(ctx, c, a)
	}
	if a.verdict.Effect == policy.Ask {
		return e.create(ctx, c, a, 0)
	}
	if a.updated != nil { // too long for the log
		return e.createDecided(ctx, c, a, 0)
	}
	return e.decideFresh(ctx, c, a)
}

// fill adds what follows from the request alone. The digest is of what was asked,
// before anything is filled in.
func (a *asked) fill() (err error) {
	if a.digest, err = schemas.Digest(&a.request); err != nil {
		return err
	}
	a.request.Options = a.request.Offered()
	return nil
}

// standTries is how often a request is judged by standing answers that change at
// that moment. Then a person is asked.
const standTries = 3

// applyStanding has standing answers, and what the session holds, settle the request
// if they can. An allow that rests on them is confirmed first.
func (e *Engine) applyStanding(ctx context.Context, a *asked) error {
	before := a.verdict
	for range standTries {
		var basis basis
		var err error
		switch a.request.Kind {
		case schemas.KindToolCall:
			basis = e.applyEntitlements(a)
		case schemas.KindPermission:
			basis, err = e.permission(ctx, a)
		}
		if err != nil {
			return err
		}
		if a.verdict.Effect != policy.Allow {
			return e.matchCall(ctx, a)
		}
		ok, err := e.confirmBasis(ctx, basis.session, basis.revision, basis.answers)
		if ok || err != nil {
			return err
		}
		a.verdict, a.missing, a.bare = before, nil, false
		lock, open := a.held.lock, a.held.open
		if a.held, err = e.heldBy(ctx, a.agent, a.request.SessionID); err != nil {
			return err
		}
		a.held.lock, a.held.open = lock, open
	}
	a.verdict.Effect = policy.Ask
	return nil
}

// byPolicy is the decision that the verdict makes.
func (e *Engine) byPolicy(a *asked) *schemas.Decision {
	if a.frozen != nil {
		return e.denial(&a.request, a.digest, a.frozen)
	}
	kind, outcome := schemas.RejectOnce, schemas.Denied
	message := fmt.Sprintf("%s is denied by the rule %q", a.request.ToolName, a.verdict.Rule)
	if a.denial != nil {
		message = e.asDenied(a.denial)
	}
	if a.verdict.Effect == policy.Allow {
		kind, outcome, message = schemas.AllowOnce, schemas.Allowed, ""
	}
	d := e.decision(&a.request, a.digest, outcome, schemas.By{Kind: schemas.ByPolicy, Name: a.verdict.Rule})
	if o, ok := a.request.OptionOfKind(kind); ok { // never the first option, whatever it is
		d.OptionID, d.OptionKind = o.OptionID, o.Kind
	}
	if d.Message, d.SettingsRevision = message, a.under.revision; d.Outcome == schemas.Allowed {
		d.UpdatedInput = a.updated
	}
	return d
}

func (e *Engine) decision(r *schemas.Request, digest string, outcome schemas.Outcome, by schemas.By) *schemas.Decision {
	return &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: r.SessionID, PendingID: r.PendingID,
		DecisionID: bus.NewID(), Outcome: outcome, By: by, Digest: digest,
		SettingsRevision: e.settings.now().revision, DecidedAt: e.clock.now(),
	}
}

// decideFresh decides an id that was never sent before: the entry in the log
// is the decision, and the message id makes it the only one.
func (e *Engine) decideFresh(ctx context.Context, c *bus.Call, a *asked) error {
	d := e.byPolicy(a)
	entry := schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: d.DecidedAt, Kind: schemas.LogDecided,
		SessionID: a.request.SessionID, PendingID: a.request.PendingID, Actor: a.agent, ToolName: a.request.ToolName,
		Digest: a.digest, Rule: a.verdict.Rule, Outcome: d.Outcome, SettingsRevision: d.SettingsRevision, Decision: d,
	}
	logged, err := e.claim(ctx, a.key(), entry)
	if err != nil {
		return err
	}
	if logged == nil {
		return e.throughRecord(ctx, c, a)
	}
	return tellLogged(c, a, logged)
}

// claim appends an entry that settles how an id is decided, and returns the
// automatic decision that is in the log then, or nil where the id is decided
// through its record.
func (e *Engine) claim(ctx context.Context, key string, entry schemas.LogEntry) (*schemas.Decision, error) {
	seq, first, err := e.store.Log.Append(ctx, key, entry)
	if err != nil {
		return nil, err
	}
	if first {
		return entry.Decision, nil
	}
	earlier, err := e.store.Log.Read(ctx, seq)
	if errors.Is(err, bus.ErrNotFound) { // it went by the log's size within the hour
		return nil, reused(key)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was decided of %s: %w", key, err)
	}
	return earlier.Decision, nil
}

// tellLogged answers with an automatic decision, if it is of this request.
func tellLogged(c *bus.Call, a *asked, d *schemas.Decision) error {
	if d.Digest != a.digest {
		return reused(a.key())
	}
	c.Reply(d)
	return nil
}

func reused(key string) error {
	return schemas.Errorf(schemas.CodeConflict, "the id of %s was used for another request: ask under a new one", key)
}

// rejoin answers for an id that may have been sent before.
func (e *Engine) rejoin(ctx context.Context, c *bus.Call, a *asked) error {
	entry, err := e.store.Records.Get(ctx, a.key())
	switch {
	case err == nil:
		return e.existing(ctx, c, a, entry)
	case !errors.Is(err, bus.ErrNotFound):
		return err
	case a.request.Revision != 0:
		return notFound(a.key())
	}
	logged, err := e.claim(ctx, a.key(), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogClaim, Actor: a.agent,
		SessionID: a.request.SessionID, PendingID: a.request.PendingID, Digest: a.digest,
	})
	switch {
	case err != nil:
		return err
	case logged != nil:
		return tellLogged(c, a, logged)
	}
	return e.throughRecord(ctx, c, a)
}

func notFound(key string) error {
	return schemas.Errorf(schemas.CodeNotFound, "no request %s is known", key)
}
