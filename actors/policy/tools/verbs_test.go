package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheNameOfAToolSaysAGraveAct(t *testing.T) {
	for name, verb := range map[string]string{
		"mcp__stripe__create_refund": "refund", "mcp__mail__sendMessage": "send", "mcp__db__DROP-table": "drop", "deleteFile": "delete",
		"mcp__github__create_issue": "", "mcp__x__undelete": "", "mcp__x__sender": "", "": "", "é_delete": "delete", "\xff": "",
	} {
		assert.Equal(t, verb, GraveVerb(name), name)
	}
}
