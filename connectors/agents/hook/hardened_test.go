package hook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// If nod hardens a git command that only reads, the verdict's reason says without what git runs, such
// as a pager. Claude Code shows this reason.
func TestTheReasonOfAHardenedCallSaysWhatGitLeavesOut(t *testing.T) {
	r := schemas.Request{SessionID: "S", PendingID: "P"}
	call := Call{Input: json.RawMessage(`{"command":"git diff"}`)}
	d := schemas.Decision{SessionID: "S", PendingID: "P", Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy, Name: "default"}}
	assert.Equal(t, "Allowed through nod.", verdict(call, r, d).Reason)
	d.UpdatedInput, d.Message = json.RawMessage(`{"command":"git --no-pager diff"}`), "git runs without the pager of /x"
	v := verdict(call, r, d)
	assert.Equal(t, "Allowed through nod. Git runs without the pager of /x.", v.Reason)
	assert.True(t, v.Edited)
}
