package test

import (
	"testing"

	"github.com/nodbus/nod/schemas"
)

func (a *agent) holds(session string) (s schemas.Session, err error) {
	err = a.conn.CallInto(a.ctx, schemas.SessionSubject(a.name), schemas.Query{Type: schemas.TypeQuery, SessionID: session}, &s)
	return s, err
}

// An agent reads the permissions and grants of its own sessions, and of no others.
func TestAnAgentReadsWhatItsSessionsHold(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, dir := env.Agent("ada"), tree(t)
	env.manages("S", schemas.PermissionsChange{ReadDirs: &[]string{dir}})
	env.Ann().Allows(ada.Asks(permission("S", "1", "fetch", "@network")))

	s, err := ada.holds("S")
	env.NoError(err)
	env.Equal([]string{dir}, s.Permissions.ReadDirs)
	env.Len(s.Grants, 1)
	env.Equal([]string{"@network"}, s.Grants[0].Permissions)

	env.NoError(env.owner().Revoke(env.ctx, &s.Grants[0]))
	s, err = ada.holds("S")
	env.NoError(err)
	env.Empty(s.Grants, "the session does not hold a revoked grant")

	s, err = ada.holds("new")
	env.NoError(err, "reading a new session claims it, as asking in it does")
	env.Nil(s.Permissions)
	_, err = env.Agent("ben").holds("new")
	env.refusal(err, schemas.CodeNotFound)
	_, err = ada.holds("")
	env.refusal(err, schemas.CodeValidation)
}
