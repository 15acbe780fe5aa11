package people

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestApproversDecideOnlyWithinTheirLimits(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.SomeOfIt })
	in := func(agent, id, project string) *rig.Question {
		r := rig.Deploy("S-"+agent, id)
		r.Project = project
		return env.Agent(agent).Asks(r)
	}
	command := rig.Deploy("S-ada", "risky")
	command.Project, command.ToolName, command.ActionType = "/srv/shop", "Bash", schemas.ActionCommand
	command.ActionDetails = []byte(`{"command":"rm -rf /srv/shop","cwd":"/srv/shop"}`)

	theirs := in("ada", "theirs", "/srv/shop/web")
	for name, q := range map[string]*rig.Question{
		"another project":     in("ada", "elsewhere", "/srv/bank"),
		"no project is named": in("ada", "nowhere", ""),
		"another agent":       in("ben", "ben", "/srv/shop"),
		"a risk beyond Bob's": env.Agent("ada").Asks(command),
	} {
		_, err := env.Bob().Says(q, "allow_once")
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "Bob may not decide", name)
		_, err = env.Bob().Says(q, "reject_once")
		env.Refusal(err, schemas.CodeForbidden)
		p, _, err := env.Ann().Show(env.Ctx, q.Receipt.SessionID, q.Receipt.PendingID)
		env.NoError(err)
		_, _, err = env.Person("tg", "8").Show(env.Ctx, p.SessionID, p.PendingID)
		env.Refusal(err, schemas.CodeNotFound) // the request was not routed to this chat
		env.Ann().Allows(q)
	}
	env.Bob().Allows(theirs)
	theirs.Ends(schemas.Allowed)
}

// A request that no approver may decide is refused at once, with an error that says so.
func TestARequestThatNoApproverMayDecideIsRefused(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"approvers": {"people": [{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}], "for": {"agents": ["ben"]}}]}}`
	})
	refused := env.Agent("ada").Refused(rig.Deploy("S", "q"), schemas.CodeUndeliverable)
	env.Contains(refused.Message, "no approver may decide about")
}

// If the settings require a second device, an approver on the agents' machine can deny a request
// but cannot allow it.
func TestASecondDeviceIsRequired(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"approvers": {"require": "second_device", "people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	})
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "q"))
	_, err := env.Ann().Says(q, "allow_once")
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "a second device")
	env.Person("tg", "7").Allows(q)
	q.Ends(schemas.Allowed)
	q = ada.Asks(rig.Deploy("S", "r"))
	env.Ann().Denies(q)
	q.Ends(schemas.Denied)

	_, err = env.Owner().ApplySettings(env.Ctx, []byte(`{"approvers": {"require": "second_device", "people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`))
	env.Contains(env.Refusal(err, schemas.CodeValidation).Message, "approvers.require: no approver has an identity that could allow")
}

// If the settings name no approver, nod up reports this, and so does each command that needs
// an approver.
func TestApproversWithoutAnyoneAreRefused(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), []byte(`{"approvers": {"people": []}}`), 0o600))
	m.StartNod()
	_, stderr, code := m.Run("ask", "--session", "S", "--tool", "Deploy", "--input", "{}")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "approvers.people in settings.json is empty")
	stdout, _, code := m.Run("doctor")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "every question is refused at once")
	_, stderr, _ = m.Run("approvers")
	require.Contains(t, stderr, "there is no approver")
	m.Kill()
	require.Contains(t, m.Errs.String(), "every question is refused at once")
}

// nod approvers --json prints all settings about who may answer, in the form of settings.json.
func TestApproversArePrintedAsSettings(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	authority := `{"permissions": {"confirm": [{"risk": "high", "votes": 2}]}, "approvers": {
		"people": [{"name": "Ann", "identities": [{"connector": "tg", "user_id": "7"}]}, {"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}],
		"groups": [{"name": "ops", "people": ["Bob"]}],
		"escalation": [{"risk": "low", "steps": [{"to": ["Ann"]}, {"to": ["ops"], "after_seconds": 60}]}],
		"require": "second_device"}}`
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(authority), 0o600))
	m.StartNod("--http", "127.0.0.1:0")
	stdout, stderr, code := m.Run("approvers", "--json")
	require.Zero(t, code, stderr)
	require.JSONEq(t, authority, stdout)
}
