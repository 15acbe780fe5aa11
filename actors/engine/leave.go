package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// leavePrefix begins the ids of leaves.
const leavePrefix = "leave-"

// leaveID returns the id of a session's leave. A new leave replaces the older one of the session,
// because it has the same id. Different sessions have different ids, so that nod revoke can end one
// leave.
func leaveID(session string) string {
	sum := sha256.Sum256([]byte(session))
	return leavePrefix + hex.EncodeToString(sum[:8])
}

// leave stores a leave as a standing answer of its session. The error is FORBIDDEN if the approver may
// not allow calls of this risk on this connector, or if the session is frozen. It is NOT_FOUND if no
// agent has the session.
func (e *admin) leave(ctx context.Context, c *caller, r *schemas.LeaveRequest) (schemas.Grants, error) {
	if r.MaxRisk != schemas.RiskLow && r.MaxRisk != schemas.RiskMedium {
		return schemas.Grants{}, schemas.Errorf(schemas.CodeValidation, "max_risk: a leave allows calls up to low or medium risk")
	}
	who, err := e.approver(ctx, c.name, &r.From)
	if err != nil {
		return schemas.Grants{}, err
	}
	if who.ByLogin { // while a person is away, nod cannot ask the issuer whether that person is still in the group
		return schemas.Grants{}, schemas.Errorf(schemas.CodeForbidden, "%s is an approver only while logged in, and so cannot leave a session to itself", who.Name)
	}
	known, err := e.sessionCache.renew(ctx, sessionKey(r.SessionID))
	if ignoreNotFound(err) != nil {
		return schemas.Grants{}, err
	}
	agent := known.value.Agent
	if err != nil || agent == "" {
		return schemas.Grants{}, schemas.Errorf(schemas.CodeNotFound, "no session %s is known", r.SessionID)
	}
	if err := e.readSettings(ctx); err != nil {
		return schemas.Grants{}, err
	}
	if !who.UpTo(r.MaxRisk) {
		return schemas.Grants{}, schemas.Errorf(schemas.CodeForbidden, "%s may decide requests up to risk %s", who.Name, who.MaxRisk)
	}
	if takes := leaveBarrier(e.settings.now().settings, r.MaxRisk, c.name); takes != "" {
		return schemas.Grants{}, schemas.Errorf(schemas.CodeForbidden, "a leave cannot allow calls of risk %s: each takes %s", r.MaxRisk, takes)
	}
	if err := e.refuseFrozen(ctx, agent, r.SessionID); err != nil {
		return schemas.Grants{}, err
	}
	if err := e.logVouched(ctx, &who, c.name, &r.From, r.SessionID, "", bus.NewID()); err != nil {
		return schemas.Grants{}, err
	}
	now := e.clock.now()
	g := schemas.StandingAnswer{
		GrantID: leaveID(r.SessionID), Scope: schemas.ScopeSession, SessionID: r.SessionID, Agent: agent,
		Leave:   &schemas.Leave{MaxRisk: r.MaxRisk, MaxCalls: r.MaxCalls, Freezes: e.freezes.now().Revision},
		Limited: true, Uses: r.MaxCalls,
		By:        schemas.By{Kind: schemas.ByHuman, Name: who.Name, Connector: c.name},
		CreatedAt: now, ExpiresAt: now.Add(time.Duration(r.ForSeconds) * time.Second),
	}
	_, err = e.holdings.changeAnswer(ctx, ownerOf(&g), g.GrantID, func(old *schemas.StandingAnswer) bool {
		*old = g
		return true
	})
	if err == nil {
		err = e.holdings.logAnswer(ctx, schemas.LogGranted, &g, g.CreatedAt, actorOfPerson(g.By))
	}
	return schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}, err
}

func actorOfPerson(by schemas.By) string { return by.Name + "@" + by.Connector }

// leaveBarrier returns, as text, those conditions for an allow of this risk that a leave from this
// connector cannot meet. The text is empty if there are none. A code word and the allows of several
// people count for one call only, so no leave meets them.
func leaveBarrier(s *schemas.Settings, risk schemas.Risk, connector string) string {
	for _, c := range s.Confirms() {
		if c.Wants(risk) && len(c.Rules) == 0 && (c.ForTeams() || c.CodeWord() || !c.Accepts(connector)) {
			return c.String()
		}
	}
	return ""
}

// checkLeave allows a tool call that no rule decides, if an approver of this call has left its session
// and the leave covers the call's risk. It counts one use of the leave. It allows only calls that nod
// understands fully. Rules, remembered denials and the protection of secrets outrank a leave.
func (e *intake) checkLeave(ctx context.Context, s *askState) (result, error) {
	known := s.held.own.byID[leaveID(s.request.SessionID)]
	v := s.rules.verdict
	if known == nil || known.Leave == nil || s.request.Kind != schemas.KindToolCall || s.rules.policy == nil ||
		v.Effect != policy.Ask || v.Rule != policy.Default || s.permissions.asks || s.permissions.unclear || !s.rules.policy.Known(s.rules.call) {
		return result{}, nil
	}
	if e.conditions(s).newer {
		return result{}, nil // the conditions demand that people allow each of these calls
	}
	if over, err := e.clock.late(ctx, known.ExpiresAt); over || err != nil {
		return result{}, err
	}
	used, by, err := e.useLeave(ctx, s, v.Risk)
	if err != nil || !used {
		return result{}, err
	}
	if run, input := s.planRun(v.Containment); run != nil {
		run.Approved = true
		s.rules.run, s.rules.updated = run, input
	}
	v = s.verdict
	v.Effect, v.Rule = policy.Allow, "leave of "+by
	return decide(v), nil
}

// useLeave counts one use of the session's leave for a request, and reports whether the leave allows
// the request. It changes the stored leave by compare-and-set. A request that has used the leave before
// is allowed again without another use, until the leave ends.
func (e *intake) useLeave(ctx context.Context, s *askState, risk schemas.Risk) (used bool, by string, err error) {
	session := s.request.SessionID
	_, err = e.holdings.changeAnswer(ctx, sessionKey(session), leaveID(session), func(now *schemas.StandingAnswer) bool {
		at := e.clock.now()
		again := slices.ContainsFunc(now.UsedBy, func(u schemas.Use) bool { return u.PendingID == s.request.PendingID })
		live := *now
		if again {
			live.Uses = max(live.Uses, 1) // the request's use is counted already
		}
		if used = now.Leave != nil && !limitedLater(now) && live.Live(at) && e.leaveCovers(s, now, risk); !used {
			return false
		}
		by = now.By.Name
		if again {
			return false
		}
		now.Uses--
		now.UsedBy = append(slices.Clone(now.UsedBy), schemas.Use{PendingID: s.request.PendingID, At: at, Title: leaveTitle(&s.request)})
		return true
	})
	if err != nil {
		return false, "", fmt.Errorf("use the leave of session %s: %w", session, err)
	}
	return used, by, nil
}

// leaveCovers reports whether a leave in force covers a call of this risk. The leave's own limits and
// the present settings for its approver must allow the call, and there must have been no freeze since
// the leave began.
func (e *intake) leaveCovers(s *askState, g *schemas.StandingAnswer, risk schemas.Risk) bool {
	settings := s.settings.settings
	within := schemas.Approver{MaxRisk: g.Leave.MaxRisk}
	i := slices.IndexFunc(settings.People(), func(p schemas.Approver) bool { return p.Name == g.By.Name })
	return g.Agent == s.agent && g.Leave.MaxRisk != schemas.RiskHigh && within.UpTo(risk) && risk != schemas.RiskHigh &&
		i >= 0 && mayDecide(&settings.People()[i], s.agent, &s.request, risk) &&
		leaveBarrier(settings, risk, g.By.Connector) == "" &&
		g.Leave.Freezes == s.freezes.Revision && g.Leave.Freezes == e.freezes.now().Revision
}

// maxLeaveTitle is the greatest length, in characters, of a call in the list of a leave's uses.
const maxLeaveTitle = 120

func leaveTitle(r *schemas.Request) string {
	return cut(strings.TrimSpace(cmp.Or(r.ToolName, string(r.ActionType))+" "+strings.Join(strings.Fields(payloadOf(r)), " ")), maxLeaveTitle)
}
