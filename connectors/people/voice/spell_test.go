package voice

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

func TestSpell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"make":             "make",
		"git status":       "git status",
		"rm -rf build":     "rm space dash rf build",
		"rm -rf /tmp":      "rm space dash rf space slash tmp",
		"rm -rf / tmp":     "rm space dash rf space slash space tmp",
		"ls -R":            "ls space dash capital r",
		"cat README.md":    "cat space capitals readme dot md",
		"getUserName":      "get capital user capital name",
		"a  b":             "a space space b",
		" ls":              "space ls",
		"a|b>c":            "a pipe b greater than c",
		`echo "$HOME"`:     "echo space double quote dollar capitals home double quote",
		"dots and dashes":  "dots and dashes",
		"open the bracket": "open the bracket",
	} {
		spoken, ok := spell(text)
		require.True(t, ok, text)
		require.Equal(t, want, spoken)
	}
	for _, text := range []string{
		"", "rm dash rf", "Capital r", "a less than b", "open bracket x", "café", "уes", "a\nb", "a\tb", "a\u200bb", "a\x00", strings.Repeat("x", 21),
		strings.Repeat("ab ", 46), "star", "echo Space", strings.Repeat("- ", 30),
	} {
		_, ok := spell(text)
		require.False(t, ok, "%q", text)
	}
}

// Two different texts sound different when they are spoken. The only exception is the blank between two
// words, which every speaker conveys by a pause.
func FuzzSpell(f *testing.F) {
	f.Add("rm -rf / tmp", "rm -rf /tmp")
	f.Add("rm dash", "rm -")
	f.Add("aB", "a b")
	f.Add("AB", "A b")
	f.Fuzz(func(t *testing.T, a, b string) {
		sa, oka := spell(a)
		sb, okb := spell(b)
		if oka && okb && a != b {
			require.NotEqual(t, sa, sb, "%q and %q", a, b)
		}
	})
}

func TestWhatIsSpoken(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 18, 14, 20, 0, 0, time.UTC)
	p := command(t, "rm -rf build", schemas.RiskLow)
	p.Request.CreatedAt = at
	change := func(f func(*schemas.Prompt)) schemas.Prompt {
		q := p
		f(&q)
		return q
	}
	details := func(text string) func(*schemas.Prompt) {
		return func(p *schemas.Prompt) { p.Request.ActionDetails = json.RawMessage(text) }
	}
	for _, c := range []struct {
		p    schemas.Prompt
		want string
	}{
		{p, "Run command: rm space dash rf build, in app. Say yes or no."},
		{change(func(p *schemas.Prompt) { p.Risk = schemas.RiskHigh }), "Run command: rm space dash rf build, in app. High risk. Say yes or no."},
		{change(details(`{"command":"make","cwd":"/etc"}`)), "Run command: make, in slash etc. Say yes or no."},
		{change(details(`{"command":"make","cwd":"/src/app/web"}`)), "Run command: make, in app slash web. Say yes or no."},
		{change(details(`{"command":"make","cwd":"/src/app/../x"}`)), "Run command: make, in slash src slash app slash dot dot slash x. Say yes or no."},
		{change(details(`{"command":"make","timeout":5000}`)), "Run command: make, timeout: 5000, in app. Say yes or no."},
		{change(details(`{"command":"make","description":"b\u0443ild"}`)), "A request to run a command, in app, low risk. It cannot be spoken whole. Review it on the screen. You can say no to deny it."},
		{change(details(`{"command":"make","command":"rm"}`)), "A request to run a command, in app, low risk. It cannot be spoken whole. Review it on the screen. You can say no to deny it."},
		{change(func(p *schemas.Prompt) {
			p.Request.ActionType, p.Request.ActionDetails = schemas.ActionNetwork, json.RawMessage(`{"url":"https://x.example/a?b=C"}`)
		}), "Fetch: https colon slash slash x dot example slash a question mark b equals capital c, in app. Say yes or no."},
		{change(func(p *schemas.Prompt) {
			p.Request.ActionType, p.Request.ActionDetails = schemas.ActionFileWrite, json.RawMessage(`{"file_path":"/src/app/a","content":"x"}`)
		}), "A request to write a file, in app, low risk. It cannot be spoken whole. Review it on the screen. You can say no to deny it."},
		{change(func(p *schemas.Prompt) { p.Waiting = 3 }), "Run command: rm space dash rf build, in app, 3 identical calls. Say yes or no."},
		{change(func(p *schemas.Prompt) { p.Request.Kind = schemas.KindQuestion }), "A question of the agent, in app, low risk. It takes an answer of its own. Review it on the screen. You can say no to deny it."},
		{change(func(p *schemas.Prompt) {
			p.Request.Kind, p.Request.Permissions, p.Request.ActionDetails = schemas.KindPermission, []string{"@network", "@read:/srv"}, nil
		}), "Permissions: at sign network, at sign read colon slash srv, in app. Say yes or no."},
	} {
		s := speechOf(&c.p)
		require.Equal(t, c.want, s.question(&c.p))
	}
	p.Risk = schemas.RiskHigh
	s := speechOf(&p)
	require.Equal(t, "You said yes to: Run command: rm space dash rf build, in app, high risk. Say confirm to allow it, or no to deny it.", s.readBack())
}
