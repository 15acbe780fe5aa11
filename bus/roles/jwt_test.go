package roles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// To the server, a missing allow list means "everything", so an empty list of rights must deny every
// subject.
func TestPermissionsInAJWTNeverWiden(t *testing.T) {
	for _, id := range everybody() {
		p, in := id.Permissions(), id.Permissions().JWT()
		if p.All {
			require.Equal(t, roles.OwnerStore, id.Role)
			continue
		}
		require.Equal(t, p.Publish, []string(in.Pub.Allow))
		require.Equal(t, p.DenyPublish, []string(in.Pub.Deny))
		require.Equal(t, p.Subscribe, []string(in.Sub.Allow))
		require.NotEmpty(t, in.Pub.Allow)
		require.NotEmpty(t, in.Sub.Allow)
		require.Equal(t, p.Responses, in.Resp != nil)
	}
	nothing := roles.Permissions{}.JWT()
	require.Equal(t, []string{">"}, []string(nothing.Pub.Deny))
	require.Equal(t, []string{">"}, []string(nothing.Sub.Deny))
	require.Nil(t, nothing.Resp)
}
