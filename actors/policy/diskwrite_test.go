package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// The reason says whether a call creates or replaces a file, and how many lines the replaced file has. If nod
// cannot find this out, the reason stays "writes a file".
func TestAWriteSaysWhatItReplaces(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("two.go", "package a\n\nfunc f() {}")
	write("one", "x\n")
	write("empty", "")
	write(".env", "TOKEN=x\n")
	write("large", string(make([]byte, maxReplaced+1)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("two.go", filepath.Join(dir, "link")))
	pol, err := New(schemas.Permissions{})
	require.NoError(t, err)
	for _, c := range []struct{ tool, input, reason string }{
		{"Write", `{"file_path":"two.go","content":"x"}`, "overwrites a file, replacing 3 lines by 1"},
		{"Write", `{"file_path":"` + dir + `/two.go","content":"x"}`, "overwrites a file, replacing 3 lines by 1"},
		{"write_file", `{"file_path":"one","content":"x"}`, "overwrites a file, replacing 1 line by 1"},
		{"Write", `{"file_path":"link","content":"x"}`, "overwrites a file, replacing 3 lines by 1"},
		{"Write", `{"file_path":"empty","content":"x"}`, "writes an empty file"},
		{"Write", `{"file_path":"two.go","content":"package a\n\nfunc g() {}"}`, "overwrites a file, replacing 1 of its 3 lines by 1"},
		{"Write", `{"file_path":"two.go","content":"// A.\npackage a\n\nfunc f() {}"}`, "overwrites a file, adding 1 line to its 3"},
		{"Write", `{"file_path":"two.go","content":"package a\n\nfunc f() {}"}`, "writes a file as it is"},
		{"Write", `{"file_path":"new/deep.go","content":"x"}`, "creates a file"},
		{"Write", `{"file_path":"large","content":"x"}`, "overwrites a file"},
		{"Write", `{"file_path":".env","content":"x"}`, "overwrites a file"},
		{"Write", `{"file_path":"dir/.env","content":"x"}`, "creates a file"},
		{"Write", `{"file_path":"~/x","content":"x"}`, "writes a file"},
		{"Write", `{"file_path":"two.go","content":"package a\n"}`, "overwrites a file, removing 2 of its 3 lines"},
		{"Write", `{"file_path":"dir","content":"x"}`, "writes a file"},
		{"Write", `{"file_path":"pipe","content":"x"}`, "writes a file"},
		{"Write", `{"file_path":"two.go"}`, "writes a file"},
		{"Edit", `{"file_path":"two.go","old_string":"f","new_string":"g"}`, "writes a file"},
	} {
		call := Call{ToolName: c.tool, Input: json.RawMessage(c.input), Cwd: dir, Project: dir}
		v := pol.Check(call)
		require.Equal(t, Ask, v.Effect, c.input)
		got := v
		ThisDisk{}.ReadWritten(t.Context(), pol, call).Describe(&got)
		assert.Contains(t, got.Reasons, c.reason, "%s %s", c.tool, c.input)
		for _, target := range got.Targets {
			assert.Contains(t, append(got.Reasons, ""), target.Does, "%s %s", c.tool, c.input)
		}
		assert.Contains(t, v.Reasons, writesFile, "the verdict's own reasons stay")
	}
	v := Verdict{Reasons: []string{"publishes"}}
	ThisDisk{}.ReadWritten(t.Context(), pol, Call{}).Describe(&v)
	assert.Equal(t, []string{"publishes"}, v.Reasons)
}

// A write is of high risk if build servers, agents, editors or shells obey the file. A write to an ordinary
// file of the project is of medium risk.
func TestInstructionsForOtherProgramsAreAHighRisk(t *testing.T) {
	pol, err := New(schemas.Permissions{})
	require.NoError(t, err)
	for file, risk := range map[string]schemas.Risk{
		".github/workflows/ci.yml": schemas.RiskHigh, "/app/.gitlab-ci.yml": schemas.RiskHigh, "CLAUDE.md": schemas.RiskHigh,
		".husky/pre-commit": schemas.RiskHigh, "/home/ann/.bashrc": schemas.RiskHigh,
		"main.go": schemas.RiskMedium, "docs/workflows.md": schemas.RiskMedium, ".github/CODEOWNERS": schemas.RiskMedium,
	} {
		input, err := json.Marshal(map[string]string{"file_path": file, "old_string": "a", "new_string": "b"})
		require.NoError(t, err)
		v := pol.Check(Call{ToolName: "Edit", Input: input, Cwd: "/app", Project: "/app", Home: "/home/ann"})
		assert.Equal(t, risk, v.Risk, file)
		assert.Equal(t, Ask, v.Effect, file)
	}
}
