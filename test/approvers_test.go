package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// someOfIt lets Ann decide about every request, and Bob about requests of ada in one
// project, up to medium risk.
const someOfIt = `{
	"permissions": {"ask": ["Deploy"]},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}, {"connector": "tg", "user_id": "8"}],
		 "for": {"agents": ["ada"], "projects": ["/srv/shop/**"]}, "max_risk": "medium"}
	]}
}`

func TestApproversDecideAboutWhatIsTheirs(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.settings = someOfIt })
	in := func(agent, id, project string) *question {
		r := deploy("S-"+agent, id)
		r.Project = project
		return env.Agent(agent).Asks(r)
	}
	command := deploy("S-ada", "risky")
	command.Project, command.ToolName, command.ActionType = "/srv/shop", "Bash", schemas.ActionCommand
	command.ActionDetails = []byte(`{"command":"rm -rf /srv/shop","cwd":"/srv/shop"}`)

	theirs := in("ada", "theirs", "/srv/shop/web")
	for name, q := range map[string]*question{
		"another project":     in("ada", "elsewhere", "/srv/bank"),
		"no project is named": in("ada", "nowhere", ""),
		"another agent":       in("ben", "ben", "/srv/shop"),
		"a risk beyond Bob's": env.Agent("ada").Asks(command),
	} {
		_, err := env.Bob().Says(q, "allow_once")
		env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "Bob may not decide", name)
		_, err = env.Bob().Says(q, "reject_once")
		env.refusal(err, schemas.CodeForbidden)
		p, _, err := env.Ann().Show(env.ctx, q.Receipt.SessionID, q.Receipt.PendingID)
		env.NoError(err)
		_, _, err = env.person("tg", "8").Show(env.ctx, p.SessionID, p.PendingID)
		env.refusal(err, schemas.CodeNotFound) // the request was not routed to this chat
		env.Ann().Allows(q)
	}
	env.Bob().Allows(theirs)
	theirs.Ends(schemas.Allowed)
}

// A request about which no approver may decide is refused at once, with the remedy.
func TestWhatNobodyMayDecideAboutIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"approvers": {"people": [{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}], "for": {"agents": ["ben"]}}]}}`
	})
	refused := env.Agent("ada").Refused(deploy("S", "q"), schemas.CodeUndeliverable)
	env.Contains(refused.Message, "nobody may decide about")
}

// If the settings require a second device, the machine that agents run on cannot allow
// a request. It may still deny one.
func TestASecondDeviceIsRequired(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"approvers": {"require": "second_device", "people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	})
	ada := env.Agent("ada")
	q := ada.Asks(deploy("S", "q"))
	_, err := env.Ann().Says(q, "allow_once")
	env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "a second device")
	env.person("tg", "7").Allows(q)
	q.Ends(schemas.Allowed)
	q = ada.Asks(deploy("S", "r"))
	env.Ann().Denies(q)
	q.Ends(schemas.Denied)

	_, err = env.owner().ApplySettings(env.ctx, []byte(`{"approvers": {"require": "second_device", "people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`))
	env.Contains(env.refusal(err, schemas.CodeValidation).Message, "approvers.require: no approver has an identity that could allow")
}

// Each command that needs an approver reports settings that name none.
func TestWhoeverLetsNobodyInIsTold(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "settings.json"), []byte(`{"approvers": {"people": []}}`), 0o600))
	m.start()
	_, stderr, code := m.run("ask", "--session", "S", "--tool", "Deploy", "--input", "{}")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "approvers.people in settings.json is empty")
	stdout, _, code := m.run("doctor")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "nobody may answer")
	_, stderr, _ = m.run("approvers")
	require.Contains(t, stderr, "nobody may answer")
	m.kill()
	require.Contains(t, m.errs.String(), "nobody may answer")
}
