package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

func TestARuleMatchesDespiteABlankAtItsEnd(t *testing.T) {
	p, err := New(schemas.Permissions{Deny: []string{"Bash(go test:* )"}})
	require.NoError(t, err)
	v := p.Check(Call{ToolName: "Bash", Input: []byte(`{"command":"go test ./x"}`), Cwd: "/src", Project: "/src"})
	require.Equal(t, Deny, v.Effect)
}
