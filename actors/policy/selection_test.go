package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// A selection covers the calls that ask rules with the same text cover, even if the command is written with a
// path, a wrapper or flags. It also covers a line that nod cannot compare with the rules.
func TestASelectionCoversWhatAskRulesCover(t *testing.T) {
	s, err := NewSelection("permissions.confirm[0].rules", []string{"Bash(terraform apply:*)", "Edit(//srv/prod/**)", "mcp__pay"})
	require.NoError(t, err)
	shell := func(line string) Call {
		return Call{ToolName: "Bash", ActionType: schemas.ActionCommand, Input: fmt.Appendf(nil, `{"command":%q}`, line), Cwd: "/app", Project: "/app", Home: "/home/ann"}
	}
	long := strings.Repeat("echo x; ", 2000)
	for line, covered := range map[string]bool{
		"terraform apply":                        true,
		"terraform apply -auto-approve x":        true,
		"sudo /usr/bin/terraform apply":          true,
		"cd x && terraform -chdir=y apply":       true,
		"bash -c 'terraform apply'":              true,
		"env A=b xargs terraform apply <list":    true,
		long + "true":                            true, // too long for a comparison
		"if terraform apply; then":               true, // an incomplete line
		"rm -rf /srv/prod/db":                    true,
		"cat ~/.ssh/id_rsa":                      false,
		"terraform plan":                         false,
		"echo terraform apply":                   false,
		"make > out":                             false,
		"rm \"$FILE\"":                           false,
		"ls":                                     false,
		"git status; terraform plan; git commit": false,
	} {
		assert.Equal(t, covered, s.Covers(shell(line)), line)
	}
	assert.True(t, s.Covers(Call{ToolName: "mcp__pay__send", ActionType: schemas.ActionMCPTool, Input: []byte(`{}`)}))
	assert.False(t, s.Covers(Call{ToolName: "mcp__mail__send", ActionType: schemas.ActionMCPTool, Input: []byte(`{}`)}))
	assert.True(t, s.Covers(Call{ToolName: "Write", ActionType: schemas.ActionFileWrite, Input: []byte(`{"file_path":"/srv/prod/x","content":""}`)}))
	assert.True(t, s.Covers(Call{ToolName: "Write", ActionType: schemas.ActionFileWrite, Input: []byte(`[]`)}), "an unreadable input")
	assert.False(t, s.Covers(Call{ToolName: "Write", ActionType: schemas.ActionFileWrite, Input: []byte(`{"file_path":"/app/x","content":""}`), Project: "/app"}))

	_, err = NewSelection("permissions.confirm[0].rules", []string{"Bash("})
	assert.ErrorContains(t, err, "permissions.confirm[0].rules")
}
