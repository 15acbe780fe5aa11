package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// A request that has used an approval is allowed again by the same approval for the time usedFor,
// because its agent may send it again. usedFor is shorter than the hour for which the log recognises a
// request's id.
const usedFor = 30 * time.Minute

// callPrefix begins the ids of standing answers about one call.
const callPrefix = "call-"

// callID returns the id of the standing answer about one call of a session, from the call's CallDigest.
// A newer answer about the same call replaces the older one.
func callID(same string) string { return callPrefix + same[:32] }

// aboutCall returns the standing answer that a person's decision makes about one call.
func aboutCall(r *schemas.Request, agent string, d *schemas.Decision) (*schemas.StandingAnswer, error) {
	same, err := schemas.CallDigest(r)
	if err != nil {
		return nil, err
	}
	return &schemas.StandingAnswer{
		GrantID: callID(same), Scope: schemas.ScopeSession, SessionID: r.SessionID, Agent: agent,
		Call: &schemas.ExactCall{Same: same, ToolName: r.ToolName, Title: cut(payloadOf(r), maxTitle)},
		By:   d.By, Votes: withoutMessages(d.Votes), Question: r.PendingID, Message: cut(d.Message, maxMessage), CreatedAt: d.DecidedAt,
	}, nil
}

// payloadOf returns a call's command, path or address, or else its title, as text for lists.
func payloadOf(r *schemas.Request) string {
	var details map[string]json.RawMessage
	if json.Unmarshal(r.ActionDetails, &details) != nil {
		return r.Title
	}
	for _, name := range []string{"command", "file_path", "notebook_path", "path", "url"} {
		var text string
		if json.Unmarshal(details[name], &text) == nil && text != "" {
			return text
		}
	}
	return r.Title
}

// The maximum lengths of texts in a standing answer, in characters. Longer texts are cut.
const (
	maxTitle   = 200
	maxMessage = 1024
)

// cutBytes shortens a text to at most the given number of bytes, plus an ellipsis. It never cuts inside
// a character.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// answerCall stores the standing answer that follows from a person's decision about a tool call. A
// denial lasts for the time in the settings. An approval without a waiting agent lasts until it is used
// or expires. An approval with a waiting agent ends an older denial of the call. answerCall may be
// called repeatedly and in any order, because only the newer decision counts.
func (e *holdings) answerCall(ctx context.Context, question bus.Entry) error {
	d := question.Record.Decision
	if d.By.Kind != schemas.ByHuman || d.Outcome != schemas.Allowed && d.Outcome != schemas.Denied {
		return nil
	}
	switch g := d.Grant; {
	case g != nil && g.Call != nil && g.Denies():
		return e.keepDenial(ctx, g)
	case g != nil && g.Call != nil:
		return e.keepApproval(ctx, g)
	case d.Outcome == schemas.Denied, e.settings.now().settings.RememberDenials() == 0:
		return nil
	}
	session, _ := schemas.SplitKey(question.Key)
	if stored, err := e.answersOf(ctx, sessionKey(session)); err == nil && len(stored.byID) == 0 {
		return nil // the session has no standing answers, so there is no denial to end
	}
	r, err := requestOf(&question.Record)
	if err != nil || r.Kind != schemas.KindToolCall {
		return err
	}
	g, err := aboutCall(&r, question.Record.Agent, d)
	if err != nil {
		return err
	}
	return e.endDenial(ctx, g)
}

func (e *holdings) denialOf(r *schemas.Request, agent string, d *schemas.Decision) (*schemas.StandingAnswer, error) {
	length := e.settings.now().settings.RememberDenials()
	if length == 0 || r.Kind != schemas.KindToolCall {
		return nil, nil
	}
	g, err := aboutCall(r, agent, d)
	if err == nil {
		g.Effect, g.ExpiresAt = schemas.EffectDeny, d.DecidedAt.Add(length)
	}
	return g, err
}

// keepDenial stores a remembered denial, unless it has expired or a newer decision about the
// call is stored.
func (e *holdings) keepDenial(ctx context.Context, g *schemas.StandingAnswer) error {
	if !e.clock.now().Before(g.ExpiresAt) {
		return nil
	}
	_, err := e.changeAnswer(ctx, ownerOf(g), g.GrantID, func(old *schemas.StandingAnswer) bool {
		if !old.CreatedAt.Before(g.CreatedAt) || !old.RevokedAt.Before(g.CreatedAt) {
			return false
		}
		*old = *g
		return true
	})
	return err
}

// keepApproval stores an approval: an allow that a person gave after the agent had stopped waiting.
// Each request that the person approved may use it once. The remaining uses of an older approval of
// the same call are added to the new approval. An older approval for another container is only
// replaced, because it was given for other limits.
func (e *holdings) keepApproval(ctx context.Context, g *schemas.StandingAnswer) error {
	stored, err := e.changeAnswer(ctx, ownerOf(g), g.GrantID, func(old *schemas.StandingAnswer) bool {
		if limitedLater(old) || old.Denies() || !old.RevokedAt.IsZero() || old.Call != nil && !old.Call.SameContainer(g.Call) || len(old.Votes) < len(g.Votes) {
			if !old.CreatedAt.Before(g.CreatedAt) || !old.RevokedAt.Before(g.CreatedAt) {
				return false
			}
			*old = *g
			return true
		}
		merged := *g
		if old.CreatedAt.After(g.CreatedAt) {
			merged = *old
		}
		merged.For = slices.Clone(old.For)
		for _, id := range g.For {
			if !slices.Contains(merged.For, id) {
				merged.For = append(merged.For, id)
			}
		}
		if len(merged.For) == len(old.For) {
			return false
		}
		merged.UsedBy = old.UsedBy
		if old.ExpiresAt.After(merged.ExpiresAt) {
			merged.ExpiresAt = old.ExpiresAt
		}
		merged.Uses = max(len(merged.For)-len(merged.UsedBy), 0)
		*old = merged
		return true
	})
	if err != nil {
		return err
	}
	return e.logAnswer(ctx, schemas.LogGranted, &stored, g.CreatedAt, g.By.Name+"@"+g.By.Connector)
}

// endDenial ends a remembered denial that is older than an approval of the same call.
func (e *holdings) endDenial(ctx context.Context, g *schemas.StandingAnswer) error {
	if now, err := e.answersOf(ctx, ownerOf(g)); err == nil && now.byID[g.GrantID] == nil {
		return nil
	}
	_, err := e.changeAnswer(ctx, ownerOf(g), g.GrantID, func(old *schemas.StandingAnswer) bool {
		if !old.Denies() || !old.RevokedAt.IsZero() || old.CreatedAt.After(g.CreatedAt) {
			return false
		}
		old.RevokedAt, old.RevokedBy = g.CreatedAt, g.By.Name
		return true
	})
	return err
}

// readCallAnswer reads the standing answer about one call from the store. It returns nil if none is
// stored, or if the request has a record, because the record decides the request.
func (e *holdings) readCallAnswer(ctx context.Context, s *askState) (*standingEntry, error) {
	if len(s.held.own.byID) == 0 {
		return nil, nil
	}
	same, err := s.sameness()
	if err != nil || s.held.own.byID[callID(same)] == nil {
		return nil, err
	}
	_, err = e.store.Records.Get(ctx, s.key())
	if !errors.Is(err, bus.ErrNotFound) {
		return nil, err
	}
	a, err := e.readAnswer(ctx, sessionKey(s.request.SessionID), callID(same))
	if err != nil || a == nil || a.Call == nil || a.Call.Same != same || a.Agent != s.agent {
		return nil, err
	}
	return a, nil
}

func (e *intake) checkDenial(_ context.Context, s *askState) (result, error) {
	if a := s.callAnswer; a == nil || !a.Denies() || !a.Live(e.clock.now()) {
		return result{}, nil
	}
	v := s.verdict
	v.Effect, v.Rule = policy.Deny, "denied by "+s.callAnswer.By.Name
	return decide(v), nil
}

// checkApproval allows a call by an unused approval, which a person gave after the agent had stopped
// waiting. It counts one use.
func (e *intake) checkApproval(ctx context.Context, s *askState) (result, error) {
	a := s.callAnswer
	if a == nil || s.later || s.settings.stale() || a.Denies() || slices.Contains(a.For, s.request.PendingID) { // an approval for this request itself can be used only in the request's record, which has expired
		return result{}, nil
	}
	run, input := s.planRun(s.rules.verdict.Containment)
	if !approvedAs(a.Call, run) {
		return result{}, nil
	}
	if c := e.conditions(s); c.forTeams && !c.enough(a.Votes) {
		return result{}, nil // the settings now demand more people than have given the approval
	}
	used, err := e.holdings.use(ctx, &a.StandingAnswer, s.request.PendingID)
	if err != nil || !used {
		return result{}, err
	}
	if run != nil {
		run.Approved = true
		s.rules.run, s.rules.updated = run, input
	}
	v := s.verdict
	v.Effect, v.Rule = policy.Allow, fmt.Sprintf("approval of %s by %s", a.Question, a.By.Name)
	return decide(v), nil
}

// use counts one use of an approval for a request, and reports whether the approval allows the request.
// It reports false if an approval for another container has replaced the given approval g. A request
// that has used the approval before is allowed again without another use. If that request has no
// record, it is allowed again only within usedFor, and only until the approval is revoked.
func (e *holdings) use(ctx context.Context, g *schemas.StandingAnswer, pendingID string) (used bool, err error) {
	if !g.ExpiresAt.IsZero() {
		if _, err := e.clock.late(ctx, g.ExpiresAt); err != nil { // reads the broker's clock if the expiry is near
			return false, err
		}
	}
	_, err = e.changeAnswer(ctx, ownerOf(g), g.GrantID, func(now *schemas.StandingAnswer) bool {
		used = false
		if !now.Limited || limitedLater(now) || now.Denies() || g.Call == nil || now.Call == nil || !now.Call.SameContainer(g.Call) {
			return false
		}
		at := e.clock.now()
		if i := slices.IndexFunc(now.UsedBy, func(u schemas.Use) bool { return u.PendingID == pendingID }); i >= 0 {
			own := slices.Contains(now.For, pendingID)
			used = own || now.RevokedAt.IsZero() && at.Before(now.UsedBy[i].At.Add(usedFor))
			return false
		}
		if used = now.Live(at); used {
			now.Uses--
			now.UsedBy = append(slices.Clone(now.UsedBy), schemas.Use{PendingID: pendingID, At: at})
		}
		return used
	})
	if err != nil {
		return false, fmt.Errorf("use the approval of %s: %w", g.Question, err)
	}
	return used, nil
}

// useOwn uses the approval of a detached request that its agent sends again under the same id. The
// error is CONFLICT if another request has used the approval, or if the approval was revoked or has
// expired. For a request that is not detached, useOwn does nothing.
func (e *holdings) useOwn(ctx context.Context, question bus.Entry, pendingID string) error {
	w := question.Record.Waiter(pendingID)
	d := question.Record.Decision
	if w == nil || !w.Detached || w.Decision != nil || d == nil || !allowsOnce(d) {
		return nil
	}
	used := false
	if d.Grant != nil {
		err := e.refuseFrozen(ctx, question.Record.Agent, d.SessionID)
		if err == nil {
			used, err = e.use(ctx, d.Grant, pendingID)
		}
		if err != nil {
			return err
		}
	}
	if !used {
		return schemas.Errorf(schemas.CodeConflict, "the approval of %s was used by another request, was revoked, or has expired: ask again under a new id", pendingID)
	}
	return nil
}

func (e *holdings) denialMessage(d *schemas.StandingAnswer) string {
	now := e.clock.now()
	var text strings.Builder
	fmt.Fprintf(&text, "%s denied the same call %s ago, which answers it for another %s", d.By.Name, schemas.FormatRoughly(now.Sub(d.CreatedAt)), schemas.FormatRoughly(d.ExpiresAt.Sub(now)))
	if d.Message != "" {
		text.WriteString(": " + d.Message)
	}
	return text.String()
}
