package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// notes is a hook.Unsettled that keeps its notes in memory.
type notes struct{ noted []string }

func (n *notes) Note(session, tool string) error {
	n.noted = append(n.noted, session+" "+tool)
	return nil
}

func (n *notes) Noted(session, tool string) bool {
	for _, one := range n.noted {
		if one == session+" "+tool || tool == "" && strings.HasPrefix(one, session+" ") {
			return true
		}
	}
	return false
}

func (n *notes) Forget(session string) { n.noted = nil }

func claudeEvent(event, more string) string {
	return `{"session_id":"s1","cwd":"/w","hook_event_name":"` + event + `","tool_name":"Bash","tool_input":{"command":"ls"}` + more + `}`
}

// A host reports the end of every call. If nod simply allowed all calls of a tool, the hook does not
// pass on the reports about this tool, because nod does not need them and each would cost a connection.
func TestAReportIsSentOnlyIfItCanTellSomething(t *testing.T) {
	allowed := schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy}}
	edited := allowed
	edited.UpdatedInput = json.RawMessage(`{"command":"ls -l","cwd":"/w"}`)
	for name, c := range map[string]struct {
		event string
		ask   func(context.Context, schemas.Request) (schemas.Decision, error)
		sent  bool
	}{
		"allowed":                          {"PreToolUse", decides(allowed), false},
		"allowed with another input":       {"PreToolUse", decides(edited), true},
		"denied":                           {"PreToolUse", decides(schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByPolicy}}), true},
		"allowed, while the host asks too": {"PermissionRequest", decides(allowed), true},
		"without a decision": {"PreToolUse", func(context.Context, schemas.Request) (schemas.Decision, error) {
			return schemas.Decision{}, assert.AnError
		}, true},
		"a report of a session without ask": {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			memory := &notes{}
			run := func(input string) *fakeNod {
				nod := &fakeNod{t: t, ask: c.ask}
				var out bytes.Buffer
				hook.Run(t.Context(), hook.ClaudeCode(), strings.NewReader(input), &out, nod.connect, hook.Options{Unsettled: memory})
				return nod
			}
			if c.event != "" {
				run(claudeEvent(c.event, ""))
			}
			for _, event := range []string{"PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit"} {
				assert.Equal(t, c.sent, len(run(claudeEvent(event, `,"duration_ms":3`)).passed) == 1, event)
			}
			other := strings.Replace(claudeEvent("PostToolUse", ""), "Bash", "Edit", 1)
			assert.Empty(t, run(other).passed, "a report about another tool")

			assert.Len(t, run(claudeEvent("SessionEnd", "")).passed, 1)
			assert.Empty(t, memory.noted, "the session has ended")
		})
	}
}
