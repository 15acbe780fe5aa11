package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// nod does not check an MCP server's tool like a host's tool, even if both tools have the same name.
func TestAForeignToolWithAKnownNameAsks(t *testing.T) {
	for _, p := range []*policy.Policy{preset(t, policy.PresetProject), preset(t, policy.PresetContained), pol(t, schemas.Permissions{Allow: []string{"Bash(ls:*)"}})} {
		for name, input := range map[string]any{
			"Bash": map[string]string{"command": "ls"}, "shell": map[string]string{"command": "ls"}, "Read": map[string]string{"file_path": "a.go"}, "read_file": map[string]string{"path": "a.go"}, "Edit": map[string]string{"file_path": "a.go"},
			"Grep": map[string]string{"pattern": "x"}, "WebSearch": map[string]string{"query": "x"}, "TodoWrite": map[string]string{}, "TaskCreate": map[string]string{}, "ToolSearch": map[string]string{}, "update_plan": map[string]string{},
		} {
			c := call(t, name, input)
			c.ActionType = schemas.ActionMCPTool
			assert.Equal(t, policy.Ask, p.Check(c).Effect, name)
		}
	}
}

// nod reads every command line as Bash does, but PowerShell reads quotes and separators differently.
// Therefore nod never allows a line that may run in PowerShell. Deny rules still apply to the line.
func TestLinesForPowerShellAsk(t *testing.T) {
	p := pol(t, schemas.Permissions{Preset: policy.PresetContained, Allow: []string{"Bash(npm test:*)"}, Deny: []string{"Bash(npm publish:*)"}})
	check := func(tool, command, cwd string) policy.Effect {
		c := call(t, tool, map[string]string{"command": command})
		c.Cwd, c.Project = cwd, cwd
		return p.Check(c).Effect
	}
	for _, cwd := range []string{`C:\Users\ann\p`, `d:/p`, `\\server\share`} {
		for _, tool := range []string{"shell", "Shell", "exec_command", "run_shell_command", "local_shell", "bash", "container.exec"} {
			assert.Equal(t, policy.Ask, check(tool, "ls", cwd), tool)
			assert.Equal(t, policy.Ask, check(tool, "npm test", cwd), tool)
			assert.Equal(t, policy.Deny, check(tool, "npm publish", cwd), tool)
		}
	}
	assert.Equal(t, policy.Allow, check("Bash", "ls", "d:/p"), "Claude Code runs Git's Bash")
	assert.Equal(t, policy.Allow, check("shell", "ls", project))
	for _, tool := range []string{"PowerShell", "powershell", "pwsh"} {
		assert.Equal(t, policy.Ask, check(tool, "ls", project), tool)
	}
	for _, line := range []string{"pwsh -c 'ls'", "powershell -Command ls", "powershell.exe -c ls", "cmd /c del x", "cmd.exe /c dir"} {
		assert.Equal(t, policy.Ask, check("Bash", line, project), line)
	}
}
