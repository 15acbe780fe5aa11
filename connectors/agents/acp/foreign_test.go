package acp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// A tool with the name of another tool, whose kind it cannot have, keeps only its kind: rules
// about the other tool do not cover it.
func TestAToolOfAnotherKindLosesItsName(t *testing.T) {
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
