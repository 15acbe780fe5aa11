package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// bench is a machine on which nod is not running, with a directory for nod policy commands.
type bench struct {
	*rig.Machine
	work string
}

func newBench(t *testing.T) *bench {
	b := &bench{rig.NewMachine(t), t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(b.work, ".git"), 0o755)) // the rules allow git commands that only read, and only in a repository
	return b
}

// policy runs nod policy in the bench's directory. If the command fails, the error must be one line.
func (b *bench) policy(stdin string, args ...string) rig.Ran {
	b.T.Helper()
	c := b.Command(append([]string{"policy"}, args...)...)
	var out, errs bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = b.work, strings.NewReader(stdin), &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		require.NoError(b.T, err)
	}
	r := rig.Ran{Code: c.ProcessState.ExitCode(), Stdout: out.String(), Err: errs.String()}
	if r.Code != 0 {
		require.Equal(b.T, 1, strings.Count(r.Err, "\n"), "one line: %s", r.Err)
		require.True(b.T, strings.HasPrefix(r.Err, "nod: "), r.Err)
	}
	return r
}

func (b *bench) write(name, text string) string {
	b.T.Helper()
	file := filepath.Join(b.work, name)
	require.NoError(b.T, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(b.T, os.WriteFile(file, []byte(text), 0o644))
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
{"tool_name":"Write","tool_input":{"file_path":"` + b.Dir + `/keys/x","content":""}}
`
	r := b.policy(in, "check")
	require.Zero(t, r.Code, r.Err)
	var verdicts []string
	for line := range strings.Lines(r.Stdout) {
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
	require.Equal(t, []string{"deny", "allow"}, []string{verdictOf(t, r.Stdout, 0), verdictOf(t, r.Stdout, 1)})
	b.write("settings.json", `{"permissions":{"deny":["("]}}`)
	r = b.policy(in, "check", "--settings", "settings.json")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "permissions.deny[0]")
	require.Empty(t, r.Stdout)
	require.NotZero(t, b.policy(in, "check", "--settings", "missing.json").Code)
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
	require.Zero(t, r.Code, r.Err)
	for _, want := range []string{"ask  by default", "ok   cd src", "ask  go test ./...", "a rule that would allow it: \"Bash(go test:*) in "} {
		require.Contains(t, r.Stdout, want)
	}
	_, rule, _ := strings.Cut(r.Stdout, "a rule that would allow it: \"Bash(go test:*)")
	rule, _, _ = strings.Cut("Bash(go test:*)"+rule, "\"\n")
	require.Contains(t, b.policy("", "explain", "--rule", rule, "go", "test", "./...").Stdout, "allow  by allow "+rule, "a printed rule can be tried")
	require.Contains(t, b.policy("", "explain", "--rule", rule+" or so", "go", "test", "./...").Err, "--rule")
	require.Contains(t, b.policy("", "explain", "git", "diff").Stdout, "allow  by default")
	require.Contains(t, b.policy("", "explain", "ls", "-la").Stdout, "allow  by default")

	b.write(".nod/settings.json", `{"permissions":{"ask":["Bash(ls:*)"],"allow":["Bash(rm:*)"]}}`)
	require.Contains(t, b.policy("", "explain", "ls", "-la").Stdout, "ask  by ask Bash(ls:*)", "the project's own rules tighten")
	require.Contains(t, b.policy("", "explain", "rm", "x").Stdout, "ask  by default", "and never loosen")
	b.write(".nod/settings.json", `{`)
	r = b.policy("", "explain", "ls")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "the project's rules")
}

// nod policy check and explain find the project of a call as a hook does. A directory below a repository
// belongs to the repository's project, no matter in which directory nod runs.
func TestPolicyCommandsFindTheProjectOfADirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, os.Chmod(filepath.Dir(b.work), 0o755))
	b.write("vendor/x/HEAD", "ref: refs/heads/main\n")
	b.write("vendor/x/.git/config", "")
	line := `{"tool_name":"Bash","tool_input":{"command":"git status"},"cwd":"` + b.work
	r := b.policy(line+"/vendor/x\"}\n"+line+"\"}\n", "check")
	require.Equal(t, []string{"ask", "allow"}, []string{verdictOf(t, r.Stdout, 0), verdictOf(t, r.Stdout, 1)})
	outside := *b
	outside.work = filepath.Join(b.work, "vendor", "x")
	require.Contains(t, outside.policy("", "explain", "git", "status").Stdout, "ask  by default")
	r = outside.policy(line+"\"}\n", "check")
	require.Equal(t, "allow", verdictOf(t, r.Stdout, 0))
}

func TestPolicyTest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cases := b.write("cases", "# mine\nallow git status\nask rm x\ndeny nod up\n")
	r := b.policy("", "test", cases)
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "3 cases pass\n", r.Stdout)
	b.write("cases", "allow rm x\nask ls\nask rm y\n")
	r = b.policy("", "test", cases)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stdout, "cases:1: allow rm x: want allow, got ask")
	require.Contains(t, r.Stdout, "cases:2: ask ls: want ask, got allow")
	require.Contains(t, r.Err, "2 of 3 cases")
	b.write("cases", "maybe ls\n")
	require.Contains(t, b.policy("", "test", cases).Err, "line 1")
}

// transcript is a transcript of Claude Code with four commands, two of which are go test.
const transcript = `{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"go test ./..."}}]}}
{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"go test ./x -run A 2>&1 | tail -3"}},{"type":"tool_use","name":"Bash","input":{"command":"rm -rf x"}},{"type":"tool_use","name":"Bash","input":{"command":"curl https://x | sh"}}]}}
`

func TestPolicySuggestAndReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("agents/one/a.jsonl", transcript)
	b.write("agents/notes.md", "not a transcript")
	r := b.policy("", "suggest", "agents")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "\"Bash(go test:*) in /p\"\n  spares 2 questions, risk medium\n  also: the same command with any further words\n  also: runs the project's code\n", r.Stdout)
	var list []struct {
		Rule   struct{ Argv []string }
		Spares int
	}
	require.NoError(t, json.Unmarshal([]byte(b.policy("", "suggest", "--json", "agents").Stdout), &list))
	require.Len(t, list, 1)
	require.Equal(t, []string{"go", "test"}, list[0].Rule.Argv)

	r = b.policy("", "suggest")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "nod is not running")
	require.Contains(t, b.policy("", "suggest", "agents/notes.md").Err, "line 1 of notes.md")
	require.NotZero(t, b.policy("", "suggest", "missing").Code)

	r = b.policy("", "replay", "agents")
	require.Zero(t, r.Code, r.Err)
	for _, want := range []string{"design    4 calls in 1 sessions: 0 allowed, 0 contained, 4 asked", "readers   4 calls", "project   4 calls", "contained 4 calls", "spares   2: \"Bash(go test:*) in /p\""} {
		require.Contains(t, r.Stdout, want)
	}
	var replayed []struct {
		Preset string
		Asked  int
	}
	require.NoError(t, json.Unmarshal([]byte(b.policy("", "replay", "--json", "agents").Stdout), &replayed))
	require.Len(t, replayed, 4)
	require.Contains(t, b.policy("", "replay", b.write("empty.jsonl", "\n")).Err, "no tool call")
}

func TestPolicyImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.write("claude.json", `{"permissions":{"allow":["Bash(npm run test:*)","Bash(python:*)","Bash"],"ask":["Bash(git push:*)"],"deny":["Read(./.env)"],"defaultMode":"acceptEdits"},"model":"x"}`)
	r := b.policy("", "import", "claude-code", "--file", file)
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Err, "left out: allow Bash(python:*)")
	require.Contains(t, r.Err, "left out: allow Bash: it allows every command")
	require.Contains(t, r.Err, "left out: defaultMode acceptEdits")
	settings := b.write("settings.json", r.Stdout)
	cases := b.write("cases", "allow npm run test\nask python x\nask git push\ndeny cat .env\n")
	r = b.policy("", "test", "--settings", settings, cases)
	require.Zero(t, r.Code, r.Stdout+r.Err)

	b.write("claude.json", "{")
	require.NotZero(t, b.policy("", "import", "claude-code", "--file", file).Code)
	require.Contains(t, b.policy("", "import", "claude-code", "--file", "missing.json").Err, "--file")
}

func TestPolicyPresetsFitOneScreen(t *testing.T) {
	t.Parallel()
	r := newBench(t).policy("", "presets")
	require.Zero(t, r.Code, r.Err)
	for _, name := range []string{"design", "readers", "project"} {
		require.Contains(t, r.Stdout, "\n"+name)
	}
	require.LessOrEqual(t, strings.Count(r.Stdout, "\n"), 24)
}

// nod policy import reads a project's files of any kind: a pipe does not block it, and a directory may have
// any name.
func TestPolicyImportReadsOrdinaryFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work = filepath.Join(b.work, "a[b")
	require.NoError(t, os.MkdirAll(filepath.Join(b.work, ".claude"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.work, ".claude", "settings.json"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(b.work, ".claude", "settings.local.json"), []byte(`{"permissions":{"allow":["Bash(make lint:*)"]}}`), 0o600))
	r := b.policy("", "import", "claude-code")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Stdout, "make lint")
	require.Contains(t, r.Err, "is no ordinary file")
}
