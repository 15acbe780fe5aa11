package schemas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const designRequest = `{"type":"nod.v1.request","pending_id":"perm-123","session_id":"session-abc","task_id":"task-xyz","tool_call_id":"tool-456",
 "kind":"tool_call","title":"Command Execution Approval","tool_name":"Bash",
 "action_type":"command","action_details":{"command":"rm -rf .","cwd":"/workspace"},
 "permissions":[],"reason":"clean rebuild",
 "agent_name":"Claude Code","host":"devbox","user":"ann","project":"/workspace","session_label":"fix-ci",
 "options":[{"option_id":"allow_once","name":"Allow once","kind":"allow_once"},{"option_id":"reject_once","name":"Reject","kind":"reject_once"}],
 "timeout_seconds":0,"created_at":"2026-01-18T00:00:00Z"}`

func TestD(t *testing.T) {
	for ty, n := range nouns() {
		_, err := n.schema()
		require.NoError(t, err, "%v", ty)
	}
	var r Request
	require.NoError(t, Decode([]byte(designRequest), &r))
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	data := []byte(designRequest)
	for b.Loop() {
		var r Request
		if err := Decode(data, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	b.ReportAllocs()
	var r Request
	require.NoError(b, Decode([]byte(designRequest), &r))
	for b.Loop() {
		if _, err := Digest(&r); err != nil {
			b.Fatal(err)
		}
	}
}

