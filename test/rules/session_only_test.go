package rules

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// design is a call of an MCP server's tool that changes a file of the project.
func design(session, id, file string) schemas.Request {
	r := rig.Shell(session, id, "")
	r.ToolName, r.ActionType = "mcp__draw__batch_design", schemas.ActionMCPTool
	r.ActionDetails = json.RawMessage(fmt.Sprintf(`{"filePath":%q,"operations":"I(root, name-%s)","cwd":"/app"}`, file, id))
	return r
}

// A tool that changes a file is offered for one session only. An answer for longer, or for every session, is
// refused, whoever sends it, and stores nothing.
func TestAReachForOneSessionIsOfferedNoWider(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada := env.Agent("ada")
	q := ada.Asks(design("S", "1", "a.pen"))
	shown := env.Stored("S.1").Record.Remember
	env.Len(shown, 1)
	env.Equal("mcp__draw__batch_design(/app/a.pen) in /app", shown[0].String())
	env.Equal(schemas.ScopeSession, shown[0].Widest)
	day := int(24 * time.Hour / time.Second)
	for _, p := range []*rig.Person{env.Ann(), env.Bob()} { // at the terminal, and in the web inbox
		for _, wide := range []schemas.Answer{{Scope: schemas.ScopeAgent}, {Scope: schemas.ScopeAgent, ForSeconds: 60}, {Scope: schemas.ScopeSession, ForSeconds: day}, {Scope: "project"}, {Scope: schemas.ScopeSession, Reach: 1}} {
			a := p.AnswerTo(q, "allow_once")
			a.Scope, a.ForSeconds, a.Reach = wide.Scope, wide.ForSeconds, wide.Reach
			_, err := p.Answer(env.Ctx, a)
			env.Refusal(err, schemas.CodeValidation)
		}
	}
	env.Nil(env.Stored(q.Key).Record.Decision)
	grants, err := env.Owner().Grants(env.Ctx, "")
	env.NoError(err)
	env.Empty(grants)

	d := env.Ann().Remembers(q, schemas.ScopeSession, 0)
	env.Equal(schemas.MaxSessionOnly, d.Grant.ExpiresAt.Sub(d.DecidedAt), "until it is revoked means at most this long")
	env.NotNil(d.Grant.SessionOnly)
	allowed := ada.Gets(design("S", "2", "/app/a.pen"))
	env.Equal(schemas.Allowed, allowed.Outcome)
	env.Equal("always mcp__draw__batch_design(/app/a.pen) in /app", allowed.By.Name)
	for _, other := range []schemas.Request{design("T", "", "a.pen"), design("S", "", "b.pen"), design("S", "", ".env"), design("S", "", "../a.pen")} {
		ada.Asks(other).Drop()
	}
	env.Agent("ben").Asks(design("U", "", "a.pen")).Drop()
	env.Apply(`{"permissions":{"ask":["mcp__draw"]},"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`)
	ada.Asks(design("S", "", "a.pen")).Drop()
}

// A grant for one session only ends by its time, by its revocation, and by any freeze, even after the thaw. It also
// ends with its session, even if the session goes on later.
func TestAGrantForOneSessionEnds(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, ann := env.Agent("ada"), env.Ann()
	grant := func(session string, seconds int) *schemas.StandingAnswer {
		d := ann.Remembers(ada.Asks(design(session, "", "a.pen")), schemas.ScopeSession, seconds)
		env.Equal(schemas.Allowed, ada.Gets(design(session, "", "a.pen")).Outcome)
		return d.Grant
	}
	env.Passed(grant("time", 3).ExpiresAt)
	ada.Asks(design("time", "", "a.pen")).Drop()

	g := grant("revoked", 0)
	env.NoError(env.Owner().Revoke(env.Ctx, g))
	ada.Asks(design("revoked", "", "a.pen")).Drop()

	grant("ended", 0)
	grant("other", 0)
	lasting := ann.Remembers(ada.Asks(rig.Shell("ended", "", "npm test")), schemas.ScopeSession, 0)
	endsSession(env.Agent("ben"), "ended")
	env.Equal(schemas.Allowed, ada.Gets(design("ended", "", "a.pen")).Outcome, "another agent ends nothing")
	endsSession(ada, "ended")
	ada.Asks(design("ended", "", "a.pen")).Drop()
	env.Equal("the end of its session", endedBy(env, "ended", lasting.Grant.GrantID))
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("ended", "", "npm test")).Outcome, "a grant that could last longer stays")
	env.Equal(schemas.Allowed, ada.Gets(design("other", "", "a.pen")).Outcome)

	grant("frozen", 0)
	freeze := schemas.FreezeRequest{SessionID: "another", From: rig.Ann()}
	_, err := ann.Freeze(env.Ctx, freeze)
	env.NoError(err)
	ada.Asks(design("frozen", "", "a.pen")).Drop()
	_, err = ann.Thaw(env.Ctx, freeze)
	env.NoError(err)
	ada.Asks(design("frozen", "", "a.pen")).Drop()
	env.Equal("Ann's freeze", endedBy(env, "frozen", ""))
	grant("frozen", 0) // after the thaw, a person can give it anew
}

// An engine can die between a decision and the grant that it makes. If the session ends before another engine stores
// the grant, the grant is stored as ended.
func TestTheEndOfASessionEndsAGrantThatIsStoredLate(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	first := design("S", "1", "a.pen")
	g := env.Ann().Remembers(ada.Asks(first), schemas.ScopeSession, 0).Grant
	sessions, err := env.Raw.KeyValue(env.Ctx, "permission_sessions")
	env.NoError(err)
	env.NoError(sessions.Purge(env.Ctx, "standing.session.S."+g.GrantID))
	endsSession(ada, "S")
	env.Equal(schemas.Allowed, ada.Gets(first).Outcome) // an engine stores the effects of a decision before it returns it
	env.Equal("the end of its session", endedBy(env, "S", ""))
	ada.Asks(design("S", "2", "a.pen")).Drop()
}

// endsSession reports that a session of the agent has ended.
func endsSession(agent *rig.Agent, session string) {
	agent.T.Helper()
	_, err := agent.Asker.HostResolved(agent.Ctx, schemas.HostResolved{SessionID: session, WholeSession: true, Reason: "the session has ended"})
	agent.NoError(err)
}

// endedBy returns who has ended the session's first grant other than the one with the id except.
func endedBy(env *rig.Env, session, except string) string {
	env.T.Helper()
	all, err := env.Owner().Grants(env.Ctx, session)
	env.NoError(err)
	for _, g := range all {
		if g.GrantID != except {
			return g.RevokedBy
		}
	}
	return ""
}
