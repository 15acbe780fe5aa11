package rules

import (
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// An agent can read the permissions and grants of its own sessions only.
func TestAnAgentReadsOnlyItsOwnSessionsPermissions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, dir := env.Agent("ada"), rig.Tree(t)
	manages(env, "S", schemas.PermissionsChange{ReadDirs: &[]string{dir}})
	env.Ann().Allows(ada.Asks(rig.Permission("S", "1", "fetch", "@network")))

	s, err := ada.Holds("S")
	env.NoError(err)
	env.Equal([]string{dir}, s.Permissions.ReadDirs)
	env.Len(s.Grants, 1)
	env.Equal([]string{"@network"}, s.Grants[0].Permissions)

	env.NoError(env.Owner().Revoke(env.Ctx, &s.Grants[0]))
	s, err = ada.Holds("S")
	env.NoError(err)
	env.Empty(s.Grants, "the session does not hold a revoked grant")

	s, err = ada.Holds("new")
	env.NoError(err, "reading a new session claims it, as asking in it does")
	env.Nil(s.Permissions)
	_, err = env.Agent("ben").Holds("new")
	env.Refusal(err, schemas.CodeNotFound)
	_, err = ada.Holds("")
	env.Refusal(err, schemas.CodeValidation)
}
