package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/test/internal/rig"
)

// nod up -d continues after its terminal has closed, and writes its log to a file. nod stop ends it.
func TestUpInTheBackgroundOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	t.Cleanup(func() { m.Run("stop") })
	p := m.NewPane(t, 120, 20, m.Nod+" up -d --listen 127.0.0.1:0 --http 127.0.0.1:0; cat")
	p.Shows("stop      nod stop")
	p.Close()
	m.Asked(t, "waits", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	log, err := os.ReadFile(filepath.Join(m.Dir, "logs", "nod.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "nod is up")
	_, stderr, code := m.Run("up", "-d", "--listen", "127.0.0.1:0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod did not start: the data directory")

	browser, page := filepath.Join(t.TempDir(), "browser"), filepath.Join(m.Dir, "opened")
	testprogram.Write(t, browser, "#!/bin/sh\ncp \"$1\" '"+page+"'\n")
	open := m.Command("open")
	open.Env = append(open.Env, "BROWSER="+browser)
	out, err := open.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "#login=")
	require.NotContains(t, string(out), "#login=")

	stdout, stderr, code := m.Run("stop")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "nod has stopped")
	for _, command := range []string{"stop", "open"} {
		_, stderr, code = m.Run(command)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "nod is not running")
	}
	_, stderr, code = m.Run("login")
	require.Zero(t, code)
	require.Contains(t, stderr, "until then the link leads nowhere")
	m.StartNod()
	stdout, _, _ = m.Run("pending", "--ids")
	require.Equal(t, "waits\n", stdout)
}

func TestErrorsOfTheFirstDayNameTheRemedy(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for _, c := range []struct{ command, says string }{
		{"thaw", "nothing was thawed: no freeze of any agent is in force"},
		{"thaw --session S", "no freeze of session S is in force"},
		{"answer", "no such request is waiting"},
		{"settings apply " + filepath.Join(m.Dir, "nosuch.json"), "'nod setup' writes settings.json, or name another file"},
		{"pending --creds " + filepath.Join(m.Dir, "keys", "agent-local.nk"), "is the key of an agent, which may only ask"},
		{"settings show --creds " + filepath.Join(m.Dir, "keys", "agent-local.nk"), "is the key of an agent, which may only ask"},
	} {
		_, stderr, code := m.Run(strings.Fields(c.command)...)
		require.Equal(t, 1, code, c.command)
		require.Contains(t, stderr, c.says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	_, stderr, code := m.Run("session", "set", "S", "--read", m.Dir)
	require.Zero(t, code, stderr)
	m.Asked(t, "first", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	_, stderr, code = m.Run("grant", "--session", "S", "--to", "nosuch", "--permission", "@read:"+m.Dir, "--reason", "why")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod sessions lists the sessions")
	stdout, stderr, code := m.Run("settings", "apply")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "The settings are in force (revision ")

	p := m.NewPane(t, 100, 20, "unset NO_COLOR; "+m.Nod+" pending; cat")
	p.Shows("Frobnicate")
	require.Contains(t, p.Coloured(), "\x1b[2mID", "a terminal gets colours")
	stdout, _, _ = m.Run("pending")
	require.NotContains(t, stdout, "\x1b", "a pipe gets none")
}

// nod ask takes a command after --, without JSON. It quotes several words for a shell, and takes a single
// word as a whole command line.
func TestAskAboutACommand(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAskExitsWithTheCodeOfItsDecision asks too")
	m := rig.NewMachine(t)
	m.StartNod()
	for line, words := range map[string][]string{
		"rm -rf 'a b'": {"rm", "-rf", "a b"},
		"make && ls":   {"make && ls"},
	} {
		_, stderr, code := m.Run(append([]string{"ask", "--async", "--"}, words...)...)
		require.Equal(t, 6, code, stderr)
		stdout, _, _ := m.Run("pending")
		require.Contains(t, stdout, line)
	}
	_, stderr, code := m.Run("ask", "--", "ls")
	require.Zero(t, code, stderr)
	_, stderr, _ = m.Run("ask", "--tool", "Bash", "--", "ls")
	require.Contains(t, stderr, "a command after -- stands alone")
}
