package acp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// An agent may report a name and a kind that contradict each other, such as the name Read and the kind
// execute. nod then names the tool by its kind, so that rules about the tool Read do not cover the call.
func TestAToolOfAnotherKindLosesItsName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call   toolCall
		name   string
		action schemas.ActionType
	}{
		{toolCall{kind: "execute", tool: "Bash"}, "Bash", schemas.ActionCommand},
		{toolCall{kind: "search", tool: "Grep"}, "Grep", schemas.ActionFileRead},
		{toolCall{tool: "Read"}, "Read", schemas.ActionFileRead},
		{toolCall{kind: "execute", tool: "Read"}, "acp_execute", schemas.ActionCommand},
		{toolCall{kind: "other", tool: "Bash"}, "acp_other", schemas.ActionOther},
		{toolCall{kind: "fetch", tool: "Write"}, "acp_fetch", schemas.ActionNetwork},
		{toolCall{kind: "other", tool: "mcp__a__b"}, "mcp__a__b", schemas.ActionMCPTool},
	} {
		assert.Equal(t, c.name, c.call.name(), "%+v", c.call)
		assert.Equal(t, c.action, c.call.action(), "%+v", c.call)
	}
}
