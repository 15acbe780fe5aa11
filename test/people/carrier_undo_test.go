package people

import (
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// Through a carrier, approvers list and revoke the standing answers that they gave or may decide about. For
// any other standing answer, they get the same refusal as for an unknown one.
func TestApproversRevokeStandingAnswersThroughACarrier(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "1"}], "for": {"agents": ["nothing"]}},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]},
		{"name": "Ada's", "identities": [{"connector": "tg", "user_id": "2"}], "for": {"agents": ["ada"]}},
		{"name": "App's", "identities": [{"connector": "tg", "user_id": "3"}], "for": {"projects": ["/app"]}},
		{"name": "Low", "identities": [{"connector": "tg", "user_id": "4"}], "max_risk": "medium"},
		{"name": "Host's", "identities": [{"connector": "tg", "user_id": "5"}], "for": {"hosts": ["devbox"]}},
		{"name": "All", "identities": [{"connector": "tg", "user_id": "6"}]}
	]}}`)
	bob := env.Bob()
	byAgent := map[string]*schemas.StandingAnswer{}
	for _, agent := range []string{"ada", "ben"} {
		byAgent[agent] = bob.Remembers(env.Agent(agent).Asks(rig.Shell("S-"+agent, "", "npm test")), schemas.ScopeAgent, 0).Grant
	}
	elsewhere := rig.Shell("S-ada", "", "npm ci")
	elsewhere.Project, elsewhere.ActionDetails = "/other", []byte(`{"command":"npm ci","cwd":"/other"}`)
	other := bob.Remembers(env.Agent("ada").Asks(elsewhere), schemas.ScopeSession, 0).Grant
	ada, ben := byAgent["ada"], byAgent["ben"]
	for user, want := range map[string][]*schemas.StandingAnswer{
		"1": {}, "2": {ada, other}, "3": {ada, ben}, "4": {}, "5": {}, "6": {ada, ben, other},
	} {
		tg := env.Person("tg", user)
		all, err := tg.GrantsFor(env.Ctx, user)
		env.NoError(err)
		got, ids := []string{}, []string{}
		for i := range all {
			got = append(got, all[i].GrantID)
		}
		for _, g := range want {
			ids = append(ids, g.GrantID)
		}
		env.ElementsMatch(ids, got, "for %s", user)
	}
	for _, refused := range []struct {
		g    *schemas.StandingAnswer
		user string
		code schemas.Code
	}{
		{ben, "2", schemas.CodeNotFound}, {other, "3", schemas.CodeNotFound}, {ada, "4", schemas.CodeNotFound},
		{ada, "666", schemas.CodeForbidden},
	} {
		env.Refusal(env.Person("tg", refused.user).Revoke(env.Ctx, refused.g, refused.user), refused.code)
	}
	_, err := env.Person("tg", "666").GrantsFor(env.Ctx, "666")
	env.Refusal(err, schemas.CodeForbidden)
	_, err = env.Person("tg", "6").GrantsFor(env.Ctx, "")
	env.Refusal(err, schemas.CodeForbidden)

	env.NoError(env.Person("tg", "2").Revoke(env.Ctx, ada, "2"))
	all, err := env.Owner().Grants(env.Ctx, "")
	env.NoError(err)
	for i := range all {
		if all[i].GrantID == ada.GrantID {
			env.Equal("Ada's", all[i].RevokedBy)
		} else {
			env.Zero(all[i].RevokedAt, "this standing answer was not revoked")
		}
	}
	env.Len(all, 3)

	env.Apply(`{"approvers": {"people": [{"name": "Bob", "identities": [{"connector": "tg", "user_id": "7"}], "for": {"agents": ["nothing"]}}]}}`)
	own, err := env.Person("tg", "7").GrantsFor(env.Ctx, "7")
	env.NoError(err)
	env.Len(own, 3, "Bob gave these standing answers")
}
