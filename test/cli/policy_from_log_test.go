package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// nod policy suggest derives rules from the questions in the log. It needs the setting log.payloads, because
// without this setting the log has no commands.
func TestSuggestionsFromTheLog(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	ask := func(command string) {
		t.Helper()
		input, err := json.Marshal(map[string]string{"command": command, "cwd": "/app"})
		require.NoError(t, err)
		_, stderr, code := m.Run("ask", "--session", "S", "--tool", "Bash", "--input", string(input), "--async")
		require.Equal(t, 6, code, stderr)
	}
	ask("go test ./secret-name")
	require.Eventually(t, func() bool {
		_, stderr, code := m.Run("policy", "suggest")
		return code == 1 && stderr == "nod: the log has requests (1), but not their commands: set log.payloads in settings.json to keep them in the log, or name transcripts of agents, such as ~/.claude/projects\n"
	}, rig.Patience, rig.Tick)

	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, []byte(`{"log":{"payloads":true}}`), 0o600))
	_, stderr, code := m.Run("settings", "apply", settings)
	require.Zero(t, code, stderr)
	ask("go test ./one")
	ask("go test ./two")
	require.Eventually(t, func() bool {
		stdout, _, code := m.Run("policy", "suggest")
		return code == 0 && stdout == "\"Bash(go test:*) in /app\"\n  spares 2 questions, risk medium\n  also: the same command with any further words\n  also: runs the project's code\n"
	}, rig.Patience, rig.Tick)
}

// With the setting harden_git, nod changes an allowed git command that only reads, so that git runs no
// program that the repository's configuration names. nod stores this decision in a record, unlike other
// decisions by rules, because it has an updated input.
func TestHardenGitRewritesAllowedGitReads(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Nil(ada.Gets(rig.Shell("S", "1", "git diff")).UpdatedInput)
	env.Apply(`{"permissions":{"harden_git":true},"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`)
	d := ada.Gets(rig.Shell("S", "2", "git diff"))
	env.Equal(schemas.Allowed, d.Outcome)
	env.JSONEq(`{"command":"git -c core.fsmonitor=false -c log.showSignature=false -c core.hooksPath=/dev/null -c log.diffMerges=separate --no-optional-locks --no-pager diff --no-ext-diff --no-textconv","cwd":"/app"}`, string(d.UpdatedInput))
	env.Equal(d, *env.Stored("S.2").Record.Decision)
	env.Equal(d, ada.Gets(rig.Shell("S", "2", "git diff")), "asking again returns the stored decision")
	env.Nil(ada.Gets(rig.Shell("S", "3", "ls")).UpdatedInput, "there is nothing to harden")
	ada.Asks(rig.Shell("S", "4", "git push")).Drop()

	hard := object(env, string(d.UpdatedInput))["command"].(string)
	env.Nil(ada.Gets(rig.Shell("S", "5", hard)).UpdatedInput, "the hardened command itself needs no change")
	ask := func(command string) rig.Ran {
		return env.Nod("ask", "--session", "script", "--tool", "Bash", "--input", `{"command":"`+command+`","cwd":"/app"}`)
	}
	env.Exits(ask("git diff"), 3, hard, "")
	env.Exits(ask(hard), 0, "Allowed", "")
}
