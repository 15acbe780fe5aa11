package web_test

import (
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

func TestHistorySaysWhoWhenAndWhere(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	for _, id := range []string{"one", "two", "three"} {
		r.asks("S", id, `{"to":"production"}`)
		s.until("session.permission.requested", id)
	}
	r.terminal("bob", "S", "two", "allow_once")
	s.until("session.permission.resolved", "two")
	s.gets("permission.respond", fields{"session_id": "S", "pending_id": "one", "option_id": "reject_once", "message": "not on Fridays"})

	all, _ := s.gets("permissions.history", nil)
	r.Len(all.Payload.Permissions, 2)
	newest := all.Payload.Permissions[0]
	r.Equal("one", newest.PendingID)
	r.Regexp(`Denied · Ann · .* · web · "not on Fridays"`, newest.Text)
	r.Equal("two", all.Payload.Permissions[1].PendingID)
	r.Equal(schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"}, all.Payload.Permissions[1].Decision.By)
	// The history also contains a request that a rule decided.
	ruled, err := r.asker.Submit(r.ctx, shell("ruled", "four", "ls -l"))
	r.NoError(err)
	r.Zero(ruled.Receipt.Revision)
	rules, _ := s.gets("permissions.history", fields{"session_id": "ruled"})
	r.Len(rules.Payload.Permissions, 1)
	r.Contains(rules.Payload.Permissions[0].Text, "the built-in rules")
	page, _ := s.gets("permissions.history", fields{"session_id": "S", "limit": 1})
	r.Len(page.Payload.Permissions, 1)
	r.Equal("one", page.Payload.Permissions[0].PendingID)
	older, _ := s.gets("permissions.history", fields{"session_id": "S", "limit": 1, "before": page.Payload.Next})
	r.Len(older.Payload.Permissions, 1)
	r.Equal("two", older.Payload.Permissions[0].PendingID)
	logged, _ := s.gets("permissions.history", fields{"session_id": "S", "before": older.Payload.Next})
	r.Empty(logged.Payload.Permissions, "the log has nothing that is older")
	r.Empty(logged.Payload.Next)
	for _, wrong := range []string{"x", "stored.1", "stored.x.S.one", "log.x"} {
		s.refused(schemas.CodeValidation, "permissions.history", fields{"before": wrong})
	}
	other, _ := s.gets("permissions.history", fields{"session_id": "T"})
	r.Empty(other.Payload.Permissions)
	s.refused(schemas.CodeValidation, "permissions.history", fields{"session_id": "*"})
}

func TestAStandingAnswerIsListedAndRevoked(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	r.submits(shell("S", "one", "go test ./bus"))
	shown := s.until("session.permission.requested", "one")
	r.Equal([]string{"Bash(go test ./bus) in /app", "Bash(go test:*) in /app"}, shown.Payload.Remember)

	answer, _ := s.gets("permission.respond", fields{
		"session_id": "S", "pending_id": "one", "option_id": "allow_once", "digest": shown.Payload.Digest,
		"scope": "session", "reach": 1, "for_seconds": 1800,
	})
	r.True(answer.Payload.Success, answer.Payload.Message)
	r.Contains(answer.Payload.Text, "from now on Bash(go test:*) in /app, in this session, for 30 minutes")

	list, _ := s.gets("grants.list", nil)
	r.Len(list.Payload.Grants, 1)
	g := list.Payload.Grants[0]
	r.Equal("Bash(go test:*) in /app", g.Text)
	r.Equal(", in this session, for 30 minutes", g.Lasts)
	r.Equal("Ann", g.By)
	r.True(g.Live)

	done, _ := s.gets("grants.revoke", fields{"grant_id": g.GrantID})
	r.True(done.Payload.Success, done.Payload.Message)
	list, _ = s.gets("grants.list", nil)
	r.False(list.Payload.Grants[0].Live)
	r.Equal("Ann", list.Payload.Grants[0].RevokedBy)
	s.refused(schemas.CodeNotFound, "grants.revoke", fields{"grant_id": "nothing"})
	s.refused(schemas.CodeValidation, "grants.revoke", nil)
}

func TestAnAnswerMayChangeTheInput(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	request := r.submits(shell("S", "one", "rm -rf build"))
	s.until("session.permission.requested", "one")
	edit := fields{"session_id": "S", "pending_id": "one", "option_id": "reject_once", "updated_input": fields{"command": "make clean", "cwd": "/app"}}
	s.refused(schemas.CodeValidation, "permission.respond", edit)
	edit["option_id"], edit["scope"] = "allow_once", "session"
	s.refused(schemas.CodeValidation, "permission.respond", edit) // a lasting answer must not change the input
	edit["scope"] = ""
	answer, _ := s.gets("permission.respond", edit)
	r.True(answer.Payload.Success, answer.Payload.Message)
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.JSONEq(`{"command":"make clean","cwd":"/app"}`, string(d.UpdatedInput))
}

func TestTheCodeWordIsAskedForAndRequired(t *testing.T) {
	r := start(t)
	t.Setenv("NOD_TEST_WORD", "open sesame")
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "low", "code_word_env": "NOD_TEST_WORD"}]`))
	r.NoError(err)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	r.asks("S", "one", `{}`)
	shown := s.until("session.permission.requested", "one")
	r.Equal([]string{"the code word"}, shown.Payload.Takes)
	r.True(shown.Payload.CodeWord)
	allow := fields{"session_id": "S", "pending_id": "one", "option_id": "allow_once"}
	without := s.refused(schemas.CodeForbidden, "permission.respond", allow)
	r.Contains(without.Payload.Text, "Nothing changed: a request of risk medium needs the code word")
	allow["code_word"] = "open sesame"
	answer, _ := s.gets("permission.respond", allow)
	r.True(answer.Payload.Success, answer.Payload.Message)
}

// If a thaw lacks the code word, a field of the error says so. The page relies on this field, not on the
// text of the error.
func TestAThawSaysThatItNeedsTheCodeWord(t *testing.T) {
	r := start(t)
	s := r.opens("ann")
	s.gets("brake.freeze", nil)
	t.Setenv("NOD_TEST_WORD", "open sesame")
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "high", "code_word_env": "NOD_TEST_WORD"}]`))
	r.NoError(err)
	for _, word := range []string{"", "open"} {
		r.JSONEq(`{"code_word":true}`, string(s.refused(schemas.CodeForbidden, "brake.thaw", fields{"code_word": word}).Payload.ErrorDetails))
	}
	thawed, _ := s.gets("brake.thaw", fields{"code_word": "open sesame"})
	r.Equal("response", thawed.Type, thawed.Payload.Message)
	r.Empty(s.refused(schemas.CodeNotFound, "grants.revoke", fields{"grant_id": "none"}).Payload.ErrorDetails)
}

// Identical requests in different sessions have the same hash. If the payload, the project or the
// agent's reason differs, the hash differs.
func TestIdenticalRequestsHaveTheSameHash(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	one := r.submitted(s, shell("S", "one", "npm test"))
	r.Equal(one, r.submitted(s, shell("T", "two", "npm test")))
	r.Equal(one, r.submitted(s, shell("U", "three", "npm test")))
	elsewhere := shell("V", "four", "npm test")
	elsewhere.Project = "/other"
	reasoned := shell("W", "five", "npm test")
	reasoned.Reason = "it is Friday"
	for _, other := range []schemas.Request{shell("X", "six", "npm test "), elsewhere, reasoned, deploy("S", "seven", `{"command":"npm test","cwd":"/app"}`)} {
		r.NotEqual(one, r.submitted(s, other), other.PendingID)
	}
}

func (r *rig) submitted(s *socket, request schemas.Request) (same string) {
	r.t.Helper()
	r.submits(request)
	return s.until("session.permission.requested", request.PendingID).Payload.Same
}
