package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A command takes the beginning of an id if only one pending request has an id that begins so.
func TestAnyUnambiguousBeginningNamesARequest(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestListingAndShowingByCommand names requests so")
	env := rig.Start(t, rig.AtTheTerminal(t))
	open(env, "a1111111")
	open(env, "a2222222")
	open(env, "b3333333")
	env.Exits(env.Nod("show", "b"), 0, "b3333333", "")
	env.Exits(env.Nod("deny", "a"), 1, "", `"a" begins the ids of 2 requests that wait (a1111111, a2222222): give more of it`)
	env.Exits(env.Nod("deny", "a2"), 0, "Denied", "")
	env.Exits(env.Nod("allow", "b"), 0, "Allowed once", "")
	env.Exits(env.Nod("allow", "c"), 1, "", "too short for the beginning of one")
}

// Without a terminal, a command without an id answers nothing. In a terminal, the person first sees the
// request, or picks one from a list.
func TestACommandWithoutAnIDTakesTheWaitingRequest(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	_, stderr, code := m.Run("allow")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no such request is waiting")
	m.Asked(t, "first-request", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	stdout, _, code := m.Run("show")
	require.Zero(t, code)
	require.Contains(t, stdout, "Frobnicate")
	for _, command := range []string{"allow", "deny"} {
		_, stderr, code := m.Run(command)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "nothing was answered: name the request, which is first-request")
	}

	p := m.NewPane(t, 90, 30, fmt.Sprintf("%[1]s allow; %[1]s deny -m later; cat", m.Nod))
	p.Shows("Call        Frobnicate")
	p.Shows("Allow it? [y/N]")
	m.Asked(t, "second-request", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":2}`) // sent after the person has seen the first request
	p.Types("y", "Enter")
	p.Shows("Allowed once")
	p.Shows("Deny it? [y/N]")
	p.Types("Enter")
	p.Shows("nothing was answered")

	m.Asked(t, "third-request", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":3}`)
	picks := m.NewPane(t, 90, 30, m.Nod+" deny; cat")
	picks.Shows("Which one? [1-2]")
	picks.Types("2", "Enter")
	picks.Shows("n: 3")
	picks.Types("y", "Enter")
	picks.Shows("Denied")
	stdout, _, _ = m.Run("pending", "--ids")
	require.Equal(t, "second-request\n", stdout)
}

// Without an id, nod answer takes only questions, and nod allow and nod deny take only calls.
func TestQuestionsAndCallsAreToldApart(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestListingAndShowingByCommand lists both")
	env := rig.Start(t, rig.AtTheTerminal(t))
	open(env, "a-call")
	question := schemas.Request{
		SessionID: "S", PendingID: "a-question", Kind: schemas.KindQuestion, Title: "Which branch?", ActionType: schemas.ActionOther, ActionDetails: []byte(`{}`),
		Options: []schemas.Option{{OptionID: "1", Name: "main", Kind: schemas.AllowOnce}, {OptionID: "2", Name: "next", Kind: schemas.AllowOnce}},
	}
	env.Agent("local").Asks(question)
	env.Exits(env.Nod("answer", "2"), 1, "", "name the request, which is a-question")
	env.Exits(env.Nod("deny"), 1, "", "name the request, which is a-call")
	env.Exits(env.Nod("show"), 1, "", "2 requests are waiting: name one")
	env.Exits(env.Nod("answer", "a-q", "2"), 0, "Answered", "")
}

func TestStatusHistoryAndSessions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.AtTheTerminal(t))
	env.Exits(env.Nod("status"), 0, "Nothing waits for an answer.", "")
	env.Exits(env.Nod("status", "--short"), 0, "", "")
	env.Exits(env.Nod("sessions"), 0, "", "no session has asked")
	open(env, "first")
	open(env, "second")
	env.Exits(env.Nod("deny", "second", "-m", "later"), 0, "Denied", "")
	env.Exits(env.Nod("status"), 0, "1 request waits for an answer", "")
	env.Equal("nod 1\n", env.Nod("status", "--short").Stdout)
	var s struct {
		Running bool `json:"running"`
		Waiting int  `json:"waiting"`
	}
	env.NoError(json.Unmarshal([]byte(env.Nod("status", "--json").Stdout), &s))
	env.True(s.Running)
	env.Equal(1, s.Waiting)
	env.Exits(env.Nod("history"), 0, `"later"`, "")
	env.Exits(env.Nod("history", "--session", "other"), 0, "", "no request was decided")
	env.Exits(env.Nod("sessions"), 0, "waiting for you", "")
	env.Exits(env.Nod("version"), 0, "nod ", "")
	env.Exits(env.Nod("help", "settings", "apply"), 0, "nod settings apply team.json", "")
	env.Exits(env.Nod("help", "nosuch"), 1, "", "no such command: nosuch")
	env.Exits(env.Nod("freeze", "-m", "too many deletions"), 0, "Frozen", "")
	env.Exits(env.Nod("freeze"), 0, "Frozen", "")
	env.Exits(env.Nod("status"), 0, "", "too many deletions")
	env.Exits(env.Nod("freeze", "--session", "nosuch"), 0, "Frozen", "session nosuch has asked nothing in the last 24 hours")
	env.Exits(env.Nod("freeze", "--agent", "nosuch"), 0, "is denied until nod thaw --agent nosuch.", "agent nosuch has asked nothing in the last 24 hours")
	env.Exits(env.Nod("pending"), 0, "", "nod thaw --agent nosuch ends it")
	env.Exits(env.Nod("freeze", "--agent", "local"), 0, "Frozen", "")
}

// nod warns an owner who applies settings that do not name the owner as an approver.
func TestApplyingSettingsWarnsOfALockOut(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	file := m.Dir + "/team.json"
	require.NoError(t, os.WriteFile(file, []byte(`{"$schema": "x", "approvers": {"people": [{"name": "Ann", "identities": [{"connector": "telegrm", "user_id": "4711"}]}]}}`), 0o600))
	_, stderr, code := m.Run("settings", "apply", file)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "may no longer answer in the terminal or on the web")
	require.Contains(t, stderr, "names the connector telegrm, which nod does not have: did you mean telegram?")
}
