package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

func TestRulesOutrankContainment(t *testing.T) {
	p := pol(t, schemas.Permissions{
		Preset: policy.PresetContained, Allow: []string{"Bash(make test:*)"}, Ask: []string{"Bash(make install:*)", "Read(vendor/**)"}, Deny: []string{"Bash(make deny:*)"},
	})
	for command, want := range map[string]policy.Effect{
		"make build":                     policy.Contain,
		"make test":                      policy.Allow,
		"make install":                   policy.Ask,
		"make deny":                      policy.Deny,
		"for i in 1; do make deny; done": policy.Deny,
		"make build && make install":     policy.Ask,
		"make vendor/a":                  policy.Ask,
		"rm -rf src":                     policy.Ask,
		"nod allow x; make":              policy.Deny,
		"make -f .env":                   policy.Ask,
		"cat README.md":                  policy.Allow,
		"npm ci":                         policy.Ask,
	} {
		v := p.Check(bash(t, command))
		assert.Equal(t, want, v.Effect, "%s: %s", command, v.Why)
		if want == policy.Contain {
			require.NotNil(t, v.Containment, command)
			assert.Equal(t, project, v.Containment.Project)
			assert.False(t, v.Containment.ReadOnly)
		}
	}
	v := p.Check(bash(t, "cat README.md"))
	require.NotNil(t, v.Containment)
	assert.True(t, v.Containment.ReadOnly, "a harmless line writes nothing")
	assert.Nil(t, p.Check(bash(t, "cd src")).Containment, "in a process of its own, cd has no effect")
	assert.Equal(t, "`npm ci` needs @network:registry.npmjs.org:443", p.Check(bash(t, "npm ci")).Why)
}

func TestWithoutTheProjectAContainableCallAsks(t *testing.T) {
	c := bash(t, "make build")
	c.Project = ""
	v := preset(t, policy.PresetContained).Check(c)
	assert.Equal(t, policy.Ask, v.Effect)
	assert.Contains(t, v.Why, "does not know the project's directory")
}

func TestOtherPresetsContainNothing(t *testing.T) {
	for _, name := range []string{policy.PresetDesign, policy.PresetReaders, policy.PresetProject} {
		v := preset(t, name).Check(bash(t, "make build"))
		assert.Equal(t, policy.Ask, v.Effect, name)
		assert.Nil(t, v.Containment, name)
	}
}

func TestTheInputThatRunsContainedNamesTheDecision(t *testing.T) {
	v := preset(t, policy.PresetContained).Check(bash(t, "make 'a b'"))
	require.NotNil(t, v.Containment)
	input := json.RawMessage(`{"command":"make 'a b'","timeout":5}`)
	assert.True(t, v.Containment.Runs(input))
	assert.False(t, v.Containment.Runs(json.RawMessage(`{"command":"make other"}`)), "another line")
	nod := policy.Program{Path: "/opt/my nod/bin/nod"}
	raw, words, ok := policy.RunInput(input, nod, "s1.c1")
	require.True(t, ok)
	assert.Equal(t, v.Containment.Words(), words)
	var in map[string]any
	require.NoError(t, json.Unmarshal(raw, &in))
	assert.Equal(t, `'/opt/my nod/bin/nod' exec --run s1.c1 -- bash -c 'make '"'"'a b'"'"''`, in["command"])
	assert.EqualValues(t, 5, in["timeout"])
	raw, _, ok = policy.RunInput(input, policy.Program{Path: "/nod", Data: "/my data"}, "s1.c1")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal(raw, &in))
	assert.Contains(t, in["command"], `'/nod' --data '/my data' exec --run s1.c1 -- bash -c`)
	raw, _, ok = policy.RunInput(input, policy.Program{Path: "/nod", URL: "tls://a:4222,'b", Creds: "/my keys/a.nk"}, "s1.c1")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal(raw, &in))
	assert.Contains(t, in["command"], `'/nod' --nats-url 'tls://a:4222,'"'"'b' --creds '/my keys/a.nk' exec --run s1.c1 -- bash -c`)
	for _, url := range []string{"nats://ann:pass@bus", "nats://token@bus", "bus?token=x", "bus#x", "bus\n", "bus ann", "\xff", strings.Repeat("a", schemas.MaxPath+1)} {
		_, _, ok = policy.RunInput(input, policy.Program{Path: "/nod", URL: url}, "s1.c1")
		assert.False(t, ok, url)
	}
	_, _, ok = policy.RunInput(json.RawMessage(`{"command":["make","a b"]}`), nod, "s1.c1")
	assert.False(t, ok, "a list of words is not a line")
	for _, unusable := range []string{"", "nod", "./nod", "/a/../nod", "/a/nod\n", "/a//nod"} {
		_, _, ok = policy.RunInput(input, policy.Program{Path: unusable}, "s1.c1")
		assert.False(t, ok, unusable)
		_, _, ok = policy.RunInput(input, policy.Program{Path: "/nod", Data: unusable}, "s1.c1")
		assert.Equal(t, unusable == "", ok, unusable)
		_, _, ok = policy.RunInput(input, policy.Program{Path: "/nod", Creds: unusable}, "s1.c1")
		assert.Equal(t, unusable == "", ok, unusable)
	}
}

// Each real call of the corpus has a class. nod asks about the classes danger, net and install, or denies
// them. It never runs a call of the classes write and build uncontained without a question.
func TestRealCallsContained(t *testing.T) {
	p := preset(t, policy.PresetContained)
	counts := map[string]map[policy.Effect]int{}
	for _, c := range realCalls(t) {
		if c.Class == "" {
			continue
		}
		v := p.Check(policy.Call{ToolName: c.ToolName, Input: c.ToolInput, Cwd: c.Cwd, Project: c.Cwd, Home: "/home/dev"})
		if counts[c.Class] == nil {
			counts[c.Class] = map[policy.Effect]int{}
		}
		counts[c.Class][v.Effect]++
		switch c.Class {
		case "danger", "net", "install":
			assert.Contains(t, []policy.Effect{policy.Ask, policy.Deny}, v.Effect, "%s: %s", c.Class, c.ToolInput)
		case "write", "build":
			assert.NotEqual(t, policy.Allow, v.Effect, "%s: %s", c.Class, c.ToolInput)
		}
	}
	t.Log(counts)
	assert.Greater(t, counts["build"][policy.Contain]*100, 70*(counts["build"][policy.Contain]+counts["build"][policy.Ask]))
}

func TestTheCorpusOfAttacksRunsOnlyContained(t *testing.T) {
	p := preset(t, policy.PresetContained)
	for _, c := range shellCases(t) {
		v := p.Check(bash(t, c.command))
		if c.verdict == "allow" {
			assert.Equal(t, policy.Allow, v.Effect, "%q", c.command)
		} else {
			assert.NotEqual(t, policy.Allow, v.Effect, "%q: %s", c.command, c.reason)
		}
	}
}

func TestReplayOfContained(t *testing.T) {
	calls, err := policy.ReadTranscript(corpus(t, "real-calls.jsonl"), "real-calls")
	require.NoError(t, err)
	all, err := policy.Replay(calls, schemas.Permissions{}, 0)
	require.NoError(t, err)
	last := all[len(all)-1]
	assert.Equal(t, policy.PresetContained, last.Preset)
	assert.Positive(t, last.Contained)
	assert.Less(t, last.Asked, all[len(all)-2].Asked)
	assert.LessOrEqual(t, last.MedianAnswered, 1)
	assert.LessOrEqual(t, last.P90Answered, 20) // some of these sessions often call MCP tools that write, and nod offers no lasting answer for such tools
	t.Log(last.String())
}

func TestANetworkPermissionIsForOneHost(t *testing.T) {
	one, err := policy.ParsePermission("@network:registry.npmjs.org:443")
	require.NoError(t, err)
	assert.Equal(t, "@network:registry.npmjs.org:443", one.String())
	all, err := policy.ParsePermission("@network")
	require.NoError(t, err)
	asWritten := func(p string) (string, error) { return p, nil }
	held := policy.Apply(schemas.SessionPermissions{}, one)
	assert.False(t, held.Network)
	assert.True(t, policy.Covers(&held, one, asWritten))
	assert.False(t, policy.Covers(&held, all, asWritten), "one host is not the network")
	whole := policy.Apply(schemas.SessionPermissions{}, all)
	assert.True(t, policy.Covers(&whole, one, asWritten))
	for _, tag := range []string{"@network:", "@network:x", "@network:X.org:443", "@network:x.org:0", "@network:x.org:443:1", "@network:/x:1"} {
		_, err := policy.ParsePermission(tag)
		assert.Error(t, err, tag)
	}
}
