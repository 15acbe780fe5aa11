package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// A replay counts the questions of each session, and the questions that remain if each is allowed for its
// session. An answer in one session saves no question in another session. No answer covers later dangerous
// calls.
func TestReplayCountsTheQuestionsThatAnswersLeave(t *testing.T) {
	var calls []policy.SessionCall
	for _, line := range []string{"gh pr view 1", "gh pr view 2 --json title", "gh pr view 3 --web", "npm ci", "npm ci", "git push --force", "git push --force"} {
		for _, session := range []string{"a", "b"} {
			calls = append(calls, policy.SessionCall{Session: session, Call: bash(t, line)})
		}
	}
	all, err := policy.Replay(calls, schemas.Permissions{}, 1)
	require.NoError(t, err)
	last := all[len(all)-1]
	require.Equal(t, policy.PresetContained, last.Preset)
	assert.Equal(t, 14, last.Asked)
	assert.Equal(t, 7, last.Median)
	assert.Equal(t, 5, last.MedianAnswered, "gh pr view once, with --web, npm ci once, and each push")
	assert.Equal(t, 5, last.P90Answered)
	assert.Contains(t, last.String(), "median 7, 90% up to 7 (5 and 5 if each is allowed for its session)")
	assert.Contains(t, last.String(), "asks   4: the network (2 if each is allowed for its session)")
	assert.Contains(t, last.String(), "asks   4: work that could be lost, and what nod cannot bound\n")
}

// In a replay, an answer for one session covers only the file of its call, and only in that session.
func TestReplayCountsAnswersForOneSession(t *testing.T) {
	var calls []policy.SessionCall
	for _, file := range []string{"a.pen", "a.pen", "b.pen", "a.pen", "b.pen"} {
		for _, session := range []string{"a", "b"} {
			calls = append(calls, policy.SessionCall{Session: session, Call: mcpCall("mcp__draw__batch_design", `{"filePath":"`+file+`"}`)})
		}
	}
	all, err := policy.Replay(calls, schemas.Permissions{}, 0)
	require.NoError(t, err)
	last := all[len(all)-1]
	assert.Equal(t, 10, last.Asked)
	assert.Equal(t, 2, last.MedianAnswered, "each file once in each session")
	assert.Equal(t, map[string]int{"tools that nod does not know, such as those of MCP servers": 4}, last.LeftFor)
}

// If a transcript lacks the input or the directory of a call, nod asks. Such a call does not count in the
// number of prompts per session, because the session itself may have had no prompt.
func TestReplayLeavesOutWhatTheTranscriptLacks(t *testing.T) {
	calls := []policy.SessionCall{
		{Session: "a", Call: policy.Call{ToolName: "Edit", Input: []byte(`{}`), Cwd: "/srv/app", Project: "/srv/app"}},
		{Session: "a", Call: policy.Call{ToolName: "Bash", Input: []byte(`{"command":"make"}`)}},
		{Session: "a", Call: policy.Call{ToolName: "Bash", Input: []byte(`{"command":"cat ~/.ssh/id_rsa"}`)}},
		{Session: "a", Call: policy.Call{ToolName: "mcp__draw__list", Input: []byte(`{}`), Cwd: "/srv/app", Project: "/srv/app"}},
		{Session: "a", Call: policy.Call{ToolName: "mcp__draw__list", Input: []byte(`{"page":2}`), Cwd: "/srv/app", Project: "/srv/app"}},
	}
	all, err := policy.Replay(calls, schemas.Permissions{}, 0)
	require.NoError(t, err)
	last := all[len(all)-1]
	assert.Equal(t, 5, last.Asked)
	assert.Equal(t, 2, last.Lacking)
	assert.Equal(t, 3, last.Median, "the secret and the two calls of the tool")
	assert.Equal(t, 2, last.MedianAnswered, "one answer covers the tool")
	assert.Contains(t, last.String(), "without 2 asked calls in these numbers, whose input or directory the transcript lacks")
}
