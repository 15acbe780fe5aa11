package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/schemas"
)

var base = policy.Call{Cwd: project, Project: project, Home: home}

// here sets the project of a call to the call's directory.
func here(c *policy.Call) { c.Project = c.Cwd }

func TestCheckStream(t *testing.T) {
	in := `{"tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/srv/x"}

{"tool_name":"Bash","tool_input":{"command":"rm x"}}
no json
{"tool_input":{}}
{"tool_name":"Bash","tool_input":{"command":"nod allow x"}}
`
	var out strings.Builder
	require.NoError(t, preset(t, "").CheckStream(strings.NewReader(in), &out, base, here))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	assert.JSONEq(t, `{"verdict":"allow","rule":"default","risk":"low","reasons":[],"reason":""}`, lines[0])
	assert.JSONEq(t, `{"verdict":"ask","rule":"default","risk":"medium","reasons":["deletes files"],"reason":"rm: is not a command known to only read"}`, lines[1])
	for _, l := range lines[2:4] {
		assert.Contains(t, l, `"verdict":"ask"`)
		assert.Contains(t, l, "not a JSON object")
	}
	assert.Contains(t, lines[4], `"verdict":"deny"`)
	assert.Error(t, preset(t, "").CheckStream(strings.NewReader(strings.Repeat("x", 5<<20)), &out, base, here), "a line without end")
}

func TestTestFile(t *testing.T) {
	cases, failed, err := preset(t, "").TestFile(strings.NewReader("# mine\nallow git status\nask\trm x\n\nallow rm y\n{\"tool_name\":\"Read\",\"tool_input\":{\"file_path\":\".env\"},\"verdict\":\"allow\"}\n{\"command\":\"nod up\",\"verdict\":\"deny\"}\n"), base, here)
	require.NoError(t, err)
	assert.Equal(t, 5, cases)
	require.Len(t, failed, 2)
	assert.Equal(t, 5, failed[0].Line)
	assert.Equal(t, policy.Ask, failed[0].Got)
	assert.Equal(t, 6, failed[1].Line)
	for _, bad := range []string{"maybe ls", "allow", "{\"verdict\":\"allow\"}", "{"} {
		_, _, err := preset(t, "").TestFile(strings.NewReader("allow ls\n"+bad+"\n"), base, here)
		assert.ErrorContains(t, err, "line 2", bad)
	}
}

func TestExplain(t *testing.T) {
	e := preset(t, "").Explain(bash(t, "cd src && go test ./... 2>&1 | tail -5"))
	text := e.String()
	for _, want := range []string{"ask  by default", "ok   cd src", "ask  go test ./...", "a rule that would allow it: \"Bash(go test:*) in " + project + "\""} {
		assert.Contains(t, text, want)
	}
	assert.Contains(t, preset(t, "").Explain(bash(t, "for i in a; do rm $i; done")).String(), "no rule that nod can bound")
	assert.Contains(t, preset(t, "").Explain(bash(t, "git diff")).String(), "hardened: git -c core.fsmonitor=false")
	assert.Contains(t, preset(t, "").Explain(file(t, "Read", ".env")).String(), "names a secret")
}

// hard is the beginning that nod gives every git command when it hardens a line.
const hard = "git -c core.fsmonitor=false -c log.showSignature=false -c core.hooksPath=/dev/null -c log.diffMerges=separate --no-optional-locks --no-pager"

func TestHarden(t *testing.T) {
	p := preset(t, "")
	for in, want := range map[string]string{
		"git status": hard + " status",
		"cd " + project + " && git --no-pager diff a | cat": "cd " + project + " && " + hard + " --no-pager diff --no-ext-diff --no-textconv a | cat",
		"git log -1; git show 'x y'":                        hard + " log --no-ext-diff --no-textconv -1; " + hard + " show --no-ext-diff --no-textconv 'x y'",
	} {
		got, changed := p.Harden(bash(t, in))
		assert.True(t, changed)
		assert.Equal(t, want, got)
		again, changed := p.Harden(bash(t, got))
		assert.False(t, changed, "asked for so, it is a plain yes: %s", again)
		assert.Equal(t, policy.Allow, p.Check(bash(t, got)).Effect, got)
	}
	for _, in := range []string{"ls", "git push", "git status; rm x", "git ("} {
		_, changed := p.Harden(bash(t, in))
		assert.False(t, changed, in)
	}
	raw, changed := p.HardenInput(call(t, "Bash", map[string]any{"command": "git status", "timeout": 5}))
	assert.True(t, changed)
	assert.JSONEq(t, `{"command":"`+hard+` status","timeout":5}`, string(raw))
}

func TestPropose(t *testing.T) {
	p := preset(t, "")
	for _, c := range []string{"rm -rf x", "curl https://x.test", "python3 -c 'x'", "bash x.sh", "git push", "echo $X", "npm test > x", "cat .env", "sudo make", "make $(id)", "make CC=x", "xargs go test", "nod allow x", "npm test # x", "for i in 1; do npm test; done", "ls", "kubectl get pods", "go test .env", "mysterious"} {
		assert.Empty(t, p.Propose(bash(t, c)), c)
	}
	for c, want := range map[string]string{"npm test": "Bash(npm test:*) in " + project, "make check": "Bash(make check:*) in " + project, "mkdir -p 'a b'": "Bash(mkdir -p 'a b') at " + project} {
		got := p.Propose(bash(t, c))
		require.NotEmpty(t, got, c)
		assert.Equal(t, want, got[len(got)-1].String())
		assert.Equal(t, policy.Allow, p.With(got...).Check(bash(t, c)).Effect)
	}
}

func TestSuggest(t *testing.T) {
	p := preset(t, "")
	calls := []policy.Call{bash(t, "go test ./a"), bash(t, "cd src && go test ./b 2>&1 | tail"), bash(t, "go vet && go test ./c"), bash(t, "rm -rf x"), bash(t, "rm -rf x"), bash(t, "curl x | sh"), bash(t, "ls")}
	got := p.Suggest(calls, 5)
	require.Len(t, got, 2)
	assert.Equal(t, "Bash(go test:*) in "+project, got[0].Rule.String())
	assert.Equal(t, 2, got[0].Spares)
	assert.Contains(t, got[0].Also, "the same command with any further words")
	assert.Contains(t, got[0].Also, "runs the project's code")
	assert.Equal(t, 1, got[1].Spares)
	with := p.With(got[0].Rule, got[1].Rule)
	assert.Equal(t, policy.Allow, with.Check(calls[2]).Effect)
	assert.Equal(t, policy.Ask, with.Check(calls[3]).Effect)
}

func TestImportClaudeCode(t *testing.T) {
	perms, left, err := rules.ImportClaudeCode([]byte(`{"permissions":{"allow":["Bash(npm run test:*)","Read(~/.zshrc)","mcp__db","Bash","Bash(python:*)","Bash(sudo:*)","Task(Explore)","Bash(a && b)","Bash(nod:*)","WebFetch(domain:go.dev)"],"ask":["Bash(git push:*)"],"deny":["Read(./.env)","Bash(curl:*)"],"defaultMode":"acceptEdits","additionalDirectories":["/srv"]}}`))
	require.NoError(t, err)
	assert.Equal(t, schemas.Permissions{Allow: []string{"Bash(npm run test:*)", "Read(~/.zshrc)", "mcp__db", "WebFetch(domain:go.dev)"}, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Read(./.env)", "Bash(curl:*)"}}, perms)
	assert.Len(t, left, 8)
	for _, l := range left {
		assert.NotEmpty(t, l.Why, l.Rule)
	}
	pol(t, perms)
	_, _, err = rules.ImportClaudeCode([]byte("{"))
	assert.ErrorContains(t, err, "Claude Code's settings")
}

func TestReadTranscript(t *testing.T) {
	calls, err := policy.ReadTranscript(strings.NewReader(`{"type":"user","message":{"content":"hi"}}
{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","name":"TodoWrite","input":{}}]}}
{"type":"session_meta","payload":{"id":"s2","cwd":"/q"}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"git status\"]}"}}
{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Update File: a"}}
{"type":"response_item","payload":{"type":"local_shell_call","action":{"command":["bash","-lc","rm x"],"working_directory":"/q/r"}}}
{"run":"r1","kind":"shell","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/w/sub"}
{"run":"r1","kind":"shell","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/w"}
`), "name")
	require.NoError(t, err)
	var got []string
	for _, c := range calls {
		got = append(got, c.Session+" "+c.ToolName+" "+string(preset(t, policy.PresetProject).Check(c.Call).Effect))
	}
	assert.Equal(t, []string{"s1 Bash allow", "s2 shell allow", "s2 apply_patch allow", "s2 shell ask", "r1 Bash allow", "r1 Bash allow"}, got)
	_, err = policy.ReadTranscript(strings.NewReader("{}\nx\n"), "file.jsonl")
	assert.ErrorContains(t, err, "line 2 of file.jsonl")

	replayed, err := policy.Replay(calls, schemas.Permissions{}, 5)
	require.NoError(t, err)
	require.Len(t, replayed, 4)
	assert.Equal(t, policy.PresetProject, replayed[2].Preset)
	assert.Equal(t, 3, replayed[2].Sessions)
	assert.Equal(t, 1, replayed[2].Asked)
	assert.Contains(t, replayed[2].String(), "1 asked")
	assert.Equal(t, policy.PresetContained, replayed[3].Preset)
	assert.Contains(t, policy.Presets(), "readers  (the default)")
}
