package cli

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestExecContainsACommandInItsProject(t *testing.T) {
	t.Parallel()
	if level, why := contain.Support(); level < contain.Namespaces {
		t.Skipf("this machine supports %s: %v", level, why)
	}
	m := rig.NewMachine(t)
	project := trueDir(t)
	require.NoError(t, exec.Command("git", "init", "-q", project).Run())
	for name, content := range map[string]string{".env": "KEY=secret-value", "AGENTS.md": "be good", "a.txt": "plain\n"} {
		require.NoError(t, os.WriteFile(project+"/"+name, []byte(content), 0o644))
	}
	script := `cat a.txt .env; echo new > b.txt; echo bad >> AGENTS.md; echo bad >> .git/config; mkdir .vscode && echo {} > .vscode/tasks.json
		printf 'CONNECT example.com:443 HTTP/1.1\r\n\r\n' | bash -c 'exec 3<>/dev/tcp/127.0.0.1/61280; cat >&3; head -1 <&3'; exit 3`
	cmd := m.Command("exec", "--contain", "--", "sh", "-c", script)
	cmd.Dir = project
	var errs, out writer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	require.Equal(t, 3, cmd.ProcessState.ExitCode(), "%s%s", out.text, errs.text)
	require.Equal(t, "plain\nHTTP/1.1 403 Forbidden\r\n", out.text)
	require.Contains(t, errs.text, "nod: the command could not reach example.com:443, which is not granted; to get it: nod exec --contain --permission @network:example.com:443 -- COMMAND\n")
	require.Contains(t, errs.text, project+"/.vscode\n")
	require.NoDirExists(t, project+"/.vscode")
	require.FileExists(t, project+"/b.txt")
	data, err := os.ReadFile(project + "/AGENTS.md")
	require.NoError(t, err)
	require.Equal(t, "be good", string(data))

	_, stderr, code := m.Run("exec", "--contain", "--project", "/", "--", "true")
	require.Equal(t, agents.CodeRefused, code)
	require.Contains(t, stderr, "name a project below it")
	_, stderr, code = m.Run("exec", "--", "true")
	require.Equal(t, agents.CodeRefused, code)
	require.Contains(t, stderr, "--session S")
}

type writer struct{ text string }

func (w *writer) Write(p []byte) (int, error) {
	w.text += string(p)
	return len(p), nil
}
