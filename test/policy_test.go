package test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bench is a directory in which a test runs nod policy commands, without a server.
type bench struct {
	*machine
	work string
}

func newBench(t *testing.T) *bench {
	return &bench{newMachine(t), t.TempDir()}
}

// policy runs nod policy in the bench's directory.
func (b *bench) policy(stdin string, args ...string) ran {
	b.t.Helper()
	c := b.command(append([]string{"policy"}, args...)...)
	var out, errs bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = b.work, strings.NewReader(stdin), &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		require.NoError(b.t, err)
	}
	r := ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
	if r.code != 0 {
		require.Equal(b.t, 1, strings.Count(r.err, "\n"), "one line: %s", r.err)
		require.True(b.t, strings.HasPrefix(r.err, "nod: "), r.err)
	}
	return r
}

func (b *bench) write(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.work, name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(b.t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := `{"tool_name":"Bash","tool_input":{"command":"git status"},"cwd":"` + b.work + `"}
{"tool_name":"Bash","tool_input":{"command":"rm -rf x"}}

no json
{"tool_name":"Read","tool_input":{"file_path":".env"}}
{"tool_name":"Bash","tool_input":{"command":"nod allow x"}}
{"tool_name":"Write","tool_input":{"file_path":"` + b.dir + `/keys/x","content":""}}
`
	r := b.policy(in, "check")
	require.Zero(t, r.code, r.err)
	var verdicts []string
	for line := range strings.Lines(r.stdout) {
		var v struct {
			Verdict, Rule, Risk, Reason string
			Reasons                     []string
		}
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&v), line)
		require.NotEmpty(t, v.Rule, line)
		require.NotNil(t, v.Reasons, line)
		require.Equal(t, v.Verdict == "allow", v.Reason == "", line)
		verdicts = append(verdicts, v.Verdict)
	}
	require.Equal(t, []string{"allow", "ask", "ask", "ask", "deny", "deny"}, verdicts)

	b.write("settings.json", `{"permissions":{"deny":["Bash(git status:*)"],"allow":["Bash(rm:*)"]}}`)
	r = b.policy(in, "check", "--settings", "settings.json")
	require.Equal(t, []string{"deny", "allow"}, []string{verdictOf(t, r.stdout, 0), verdictOf(t, r.stdout, 1)})
	b.write("settings.json", `{"permissions":{"deny":["("]}}`)
	r = b.policy(in, "check", "--settings", "settings.json")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "permissions.deny[0]")
	require.Empty(t, r.stdout)
	require.NotZero(t, b.policy(in, "check", "--settings", "missing.json").code)
}

func verdictOf(t *testing.T, out string, line int) string {
	t.Helper()
	var v struct{ Verdict string }
	require.NoError(t, json.Unmarshal([]byte(strings.Split(out, "\n")[line]), &v))
	return v.Verdict
}

func TestPolicyExplain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.policy("", "explain", "cd src && go test ./... 2>&1 | tail -5")
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"ask  by default", "ok   cd src", "ask  go test ./...", "a rule that would allow it: Bash(go test:*) in "} {
		require.Contains(t, r.stdout, want)
	}
	require.Contains(t, b.policy("", "explain", "git", "diff").stdout, "allow  by default")
	require.Contains(t, b.policy("", "explain", "ls", "-la").stdout, "allow  by default")

	b.write(".nod/settings.json", `{"permissions":{"ask":["Bash(ls:*)"],"allow":["Bash(rm:*)"]}}`)
	require.Contains(t, b.policy("", "explain", "ls", "-la").stdout, "ask  by ask Bash(ls:*)", "the project's own rules tighten")
	require.Contains(t, b.policy("", "explain", "rm", "x").stdout, "ask  by default", "and never loosen")
	b.write(".nod/settings.json", `{`)
	r = b.policy("", "explain", "ls")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "the project's rules")
}

func TestPolicyTest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cases := b.write("cases", "# mine\nallow git status\nask rm x\ndeny nod up\n")
	r := b.policy("", "test", cases)
	require.Zero(t, r.code, r.err)
	require.Equal(t, "3 cases pass\n", r.stdout)
	b.write("cases", "allow rm x\nask ls\nask rm y\n")
	r = b.policy("", "test", cases)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "cases:1: allow rm x: want allow, got ask")
	require.Contains(t, r.stdout, "cases:2: ask ls: want ask, got allow")
	require.Contains(t, r.err, "2 of 3 cases")
	b.write("cases", "maybe ls\n")
	require.Contains(t, b.policy("", "test", cases).err, "line 1")
}

// transcript is a transcript of Claude Code's with four calls, two of them go test.
const transcript = `{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"go test ./..."}}]}}
{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"go test ./x -run A 2>&1 | tail -3"}},{"type":"tool_use","name":"Bash","input":{"command":"rm -rf x"}},{"type":"tool_use","name":"Bash","input":{"command":"curl https://x | sh"}}]}}
`

func TestPolicySuggestAndReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("agents/one/a.jsonl", transcript)
	b.write("agents/notes.md", "not a transcript")
	r := b.policy("", "suggest", "agents")
	require.Zero(t, r.code, r.err)
	require.Equal(t, "Bash(go test:*) in /p\n  spares 2 questions\n  also: the same command with any further words\n  also: runs the project's code\n", r.stdout)
	var list []struct {
		Rule   struct{ Argv []string }
		Spares int
	}
	require.NoError(t, json.Unmarshal([]byte(b.policy("", "suggest", "--json", "agents").stdout), &list))
	require.Len(t, list, 1)
	require.Equal(t, []string{"go", "test"}, list[0].Rule.Argv)

	r = b.policy("", "suggest")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "nod is not running")
	require.Contains(t, b.policy("", "suggest", "agents/notes.md").err, "line 1 of notes.md")
	require.NotZero(t, b.policy("", "suggest", "missing").code)

	r = b.policy("", "replay", "agents")
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"design   4 calls in 1 sessions: 0 allowed, 4 asked", "readers  4 calls", "project  4 calls", "spares   2: Bash(go test:*) in /p"} {
		require.Contains(t, r.stdout, want)
	}
	var replayed []struct {
		Preset string
		Asked  int
	}
	require.NoError(t, json.Unmarshal([]byte(b.policy("", "replay", "--json", "agents").stdout), &replayed))
	require.Len(t, replayed, 3)
	require.Contains(t, b.policy("", "replay", b.write("empty.jsonl", "\n")).err, "no tool call")
}

func TestPolicyImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.write("claude.json", `{"permissions":{"allow":["Bash(npm run test:*)","Bash(python:*)","Bash"],"ask":["Bash(git push:*)"],"deny":["Read(./.env)"],"defaultMode":"acceptEdits"},"model":"x"}`)
	r := b.policy("", "import", "claude-code", "--file", file)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "left out: allow Bash(python:*)")
	require.Contains(t, r.err, "left out: allow Bash: it allows every command")
	require.Contains(t, r.err, "left out: defaultMode acceptEdits")
	settings := b.write("settings.json", r.stdout)
	cases := b.write("cases", "allow npm run test\nask python x\nask git push\ndeny cat .env\n")
	r = b.policy("", "test", "--settings", settings, cases)
	require.Zero(t, r.code, r.stdout+r.err)

	b.write("claude.json", "{")
	require.NotZero(t, b.policy("", "import", "claude-code", "--file", file).code)
	require.Contains(t, b.policy("", "import", "claude-code", "--file", "missing.json").err, "--file")
}

func TestPolicyPresetsFitOneScreen(t *testing.T) {
	t.Parallel()
	r := newBench(t).policy("", "presets")
	require.Zero(t, r.code, r.err)
	for _, name := range []string{"design", "readers", "project"} {
		require.Contains(t, r.stdout, "\n"+name)
	}
	require.LessOrEqual(t, strings.Count(r.stdout, "\n"), 24)
}
