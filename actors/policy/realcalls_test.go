package policy_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// realCall is a line in the corpus of real sessions: one tool call of a real agent.
type realCall struct {
	Run       string          `json:"run"`
	Kind      string          `json:"kind"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	Cwd       string          `json:"cwd"`
	Class     string          `json:"class"`
}

func realCalls(t testing.TB) []realCall {
	t.Helper()
	var out []realCall
	lines := bufio.NewScanner(corpus(t, "real-calls.jsonl"))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var c realCall
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		out = append(out, c)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

func TestRealCallsByClass(t *testing.T) {
	calls := realCalls(t)
	for _, name := range []string{policy.PresetDesign, policy.PresetReaders} {
		p := preset(t, name)
		reads, allowed := 0, 0
		for _, c := range calls {
			v := p.Check(policy.Call{ToolName: c.ToolName, Input: c.ToolInput, Cwd: c.Cwd, Home: "/home/dev"})
			switch c.Class {
			case "write", "net", "install", "danger":
				assert.NotEqual(t, policy.Allow, v.Effect, "%s, class %s: %s", name, c.Class, c.ToolInput)
			case "read":
				reads++
				if v.Effect == policy.Allow {
					allowed++
				} else if testing.Verbose() && name == policy.PresetReaders {
					t.Logf("asks: %.300s: %s", c.ToolInput, v.Why)
				}
			}
		}
		t.Logf("%s allows %d of %d reads", name, allowed, reads)
		if name == policy.PresetReaders {
			assert.GreaterOrEqual(t, allowed*100, reads*85)
		}
	}
}

// If the settings have the five best suggestions for each project, at least half of the sessions have at most
// three prompts.
func TestReplayWithSuggestions(t *testing.T) {
	calls, err := policy.ReadTranscript(corpus(t, "real-calls.jsonl"), "real-calls")
	require.NoError(t, err)
	p := preset(t, policy.PresetProject)
	byProject := map[string][]policy.Call{}
	for _, c := range calls {
		byProject[c.Project] = append(byProject[c.Project], c.Call)
	}
	var taken []schemas.RememberedRule
	for _, own := range byProject {
		for _, s := range p.Suggest(own, 5) {
			taken = append(taken, s.Rule)
			t.Logf("spares %d: %s", s.Spares, s.Rule.String())
		}
	}
	with := p.With(taken...)
	prompts := map[string]int{}
	for _, c := range calls {
		prompts[c.Session] += 0
		v := with.Check(c.Call)
		if v.Effect != policy.Allow {
			prompts[c.Session]++
		}
	}
	counts := slices.Sorted(maps.Values(prompts))
	t.Logf("prompts per session: %v", counts)
	assert.LessOrEqual(t, counts[(len(counts)-1)/2], 3)
}

// Under the preset contained, if the user allows each question for its session, 90 % of the real sessions
// have at most 12 questions.
func TestReplayOfRealSessions(t *testing.T) {
	calls, err := policy.ReadTranscript(corpus(t, "real-calls.jsonl"), "real-calls")
	require.NoError(t, err)
	all, err := policy.Replay(calls, schemas.Permissions{}, 0)
	require.NoError(t, err)
	last := all[len(all)-1]
	t.Log(last.String())
	assert.LessOrEqual(t, last.MedianAnswered, 2)
	assert.LessOrEqual(t, last.P90Answered, 12)
}
