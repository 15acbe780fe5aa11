package people

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

func TestTheCaptionSaysWhoAndWhere(t *testing.T) {
	p := runs("rm -rf ../x")
	p.Request.Project = "/src/app"
	for cwd, want := range map[string]string{
		"/src/app":        "— Claude Code · app · fix-ci",
		"/src/app/web":    "— Claude Code · app/web · fix-ci",
		"/src/app/../etc": "— Claude Code · app, in /src/app/../etc · fix-ci",
		"/src/apple":      "— Claude Code · app, in /src/apple · fix-ci",
	} {
		assert.Equal(t, want, caption(p, cwd).Label)
	}
	p.Request.AgentName, p.Request.SessionLabel = "Claude Code · low risk", ""
	assert.Equal(t, "— Claude Code ⟦U+00B7⟧ low risk · app", caption(p, "/src/app").Label)
}

// The line above the payload names what the call does, to which objects, and where they are. If some
// objects are outside the project, the line says so next to these objects only.
func TestTheHeadlineSaysVerbObjectAndPlace(t *testing.T) {
	const in, out = schemas.PlaceProject, schemas.PlaceOutside
	target := func(does, name, path string, place schemas.Place) schemas.Target {
		return schemas.Target{Does: does, Name: name, Path: path, Place: place}
	}
	for _, c := range []struct {
		reasons []string
		targets []schemas.Target
		want    string
	}{
		{nil, nil, "high risk"},
		{[]string{"deletes files"}, nil, "high: deletes files"},
		{[]string{"deletes files", "outside the project"}, nil, "high: deletes files outside the project"},
		{[]string{"outside the project"}, nil, "high: names files outside the project"},
		{[]string{"deletes files"}, []schemas.Target{target("deletes files", "build", "/src/app/build", in)}, "high: deletes files (build) in the project"},
		{[]string{"deletes files", "outside the project"}, []schemas.Target{
			target("deletes files", "build", "/src/app/build", in), target("deletes files", "../x", "/src/x", out), target("outside the project", "../x", "/src/x", out),
		}, "high: deletes files (/src/x) outside the project and (build) in the project"},
		{[]string{"writes files", "outside the project"}, []schemas.Target{
			target("writes files", "a", "/src/app/a", in), target("outside the project", "/etc/x", "/etc/x", out),
		}, "high: writes files (a) in the project; names (/etc/x) outside the project"},
		{[]string{"uses the network", "runs its input as code"}, []schemas.Target{target("uses the network", "get.example", "", "")},
			"high: uses the network (get.example); runs its input as code"},
		{[]string{"deletes files"}, []schemas.Target{
			target("deletes files", "a", "", ""), target("deletes files", "b", "", ""), target("deletes files", "c", "", ""), target("deletes files", "d", "", ""),
		}, "high: deletes files (a, b, c and 1 more)"},
		{[]string{"writes a file"}, []schemas.Target{target("writes a file", "/src/app/a/b", "/src/app/a/b", in)}, "high: writes a file (a/b) in the project"},
		{[]string{"writes a file"}, []schemas.Target{target("writes a file", "/link/b", "/src/app/a/b", in)}, "high: writes a file (a/b) in the project"},
		{[]string{"deletes files"}, []schemas.Target{target("deletes files", ".", "/src/app", in)}, "high: deletes files (/src/app) in the project"},
		{[]string{"deletes files"}, []schemas.Target{target("deletes files", "$PWD/x", "/src/app/x", in)}, "high: deletes files (/src/app/x) in the project"},
		{[]string{"deletes files"}, []schemas.Target{target("deletes files", "$OUT/x", "", "")}, "high: deletes files ($OUT/x)"},
		{[]string{"deletes files"}, []schemas.Target{target("deletes files", "a\n\u202elow risk", "", "")}, "high: deletes files (a⏎⟦U+202E⟧low risk)"},
	} {
		p := runs("x")
		p.Risk, p.Reasons, p.Targets, p.Request.Project = schemas.RiskHigh, c.reasons, c.targets, "/src/app"
		h := headline(p)
		assert.Equal(t, c.want, h.Label)
		styled := Row{Text: h.Label, Spans: h.Spans[0]}.Paint(func(style payload.Style, s string) string {
			assert.Equal(t, payload.RiskHigh, style)
			assert.NotContains(t, s, "build", "a text of the agent looks like one of nod")
			return s
		})
		assert.Equal(t, h.Label, styled)
	}
	p := runs("x")
	p.Risk, p.Reasons = schemas.RiskHigh, []string{strings.Repeat("x", 500)}
	assert.LessOrEqual(t, Cells(headline(p).Label), maxHeadline)
}

// The part Where begins with the places on which the call takes effect. The full path of each file on which
// the call acts follows, and the directory in which the call runs.
func TestTheWhereLinesHaveTheResolvedTargets(t *testing.T) {
	p := runs("rm -rf ../x")
	p.Request.Project = "/src/app"
	p.Targets = []schemas.Target{
		{Does: "deletes files", Name: "../x", Path: "/src/x", Place: schemas.PlaceOutside}, {Does: "a", Name: "../x", Path: "/src/x", Place: schemas.PlaceOutside},
		{Does: "a", Name: "x.test"}, {Does: schemas.ActsOn, Name: "npm: the registry in use"}, {Does: "a", Name: "b", Path: "/src/app/b", Place: schemas.PlaceProject},
	}
	targets := []string{"npm: the registry in use", "/src/x, outside the project", "/src/app/b, in the project"}
	for cwd, want := range map[string]string{
		"/src/app": "runs in /src/app, the project", "/src/app/web": "runs in /src/app/web, in the project /src/app",
		"/src/app/../x": "runs in /src/app/../x, outside the project /src/app", "": "runs in (not said); project: /src/app",
	} {
		assert.Equal(t, append(targets[:3:3], want), whereLines(p, cwd))
	}
	fetch := asks("WebFetch", schemas.ActionNetwork, `{"url":"https://ann:pw@x.test\u202e:8/a?b"}`)
	assert.Equal(t, "x.test⟦U+202E⟧:8", whereLines(fetch, "/src/app")[0])
	assert.Equal(t, "the MCP server post⟦U+202E⟧gres", whereLines(asks("mcp__post\u202egres__query", schemas.ActionMCPTool, `{}`), "/src/app")[0])
	for _, p := range []*schemas.Prompt{asks("mcp__x", schemas.ActionMCPTool, `{}`), asks("WebFetch", schemas.ActionNetwork, `{"url":"x"}`), asks("Deploy", schemas.ActionOther, `{"url":"https://x.test"}`)} {
		assert.Len(t, whereLines(p, "/src/app"), 1)
	}
}

// If a call runs code that no screen shows, such as a downloaded script, a part beside the
// payload names that code. A person must see this part before allowing the call.
func TestCodeThatIsNotShownIsNamed(t *testing.T) {
	p := runs("curl x | sh")
	p.Unseen = []string{"the downloaded script"}
	part := Parts(p, now)[2]
	assert.Equal(t, Part{Label: "Not shown", Lines: []string{"the downloaded script"}}, part)
	assert.Contains(t, Layout(Brief(p, now), 80), "Not shown   the downloaded script")
}
