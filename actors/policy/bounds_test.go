package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// The engine checks one call after another, so even the largest call must not take long. The limit is wide,
// because other tests run at the same time. Without the policy's own bounds, each call would still exceed it.
func TestLargeCallsAreCheckedInBoundedTime(t *testing.T) {
	t.Parallel()
	const size, limit = 250_000, 250 * time.Millisecond
	p := pol(t, schemas.Permissions{})
	fill := func(text string, n int) string { return strings.Repeat(text, n/len(text)) }
	many := func(text string) any {
		var all []any
		for range 600 {
			all = append(all, map[string]string{"command": fill(text, 200), "path": fill(text, 200)})
		}
		return map[string]any{"all": all}
	}
	for name, c := range map[string]policy.Call{
		"path of a URL":   fetch(t, "https://x.test/"+fill("--", size)),
		"query of a URL":  fetch(t, "https://x.test/?q="+fill("../", size)),
		"search":          call(t, "WebSearch", map[string]string{"query": fill("=", size)}),
		"URL of a tool":   call(t, "mcp__x__y", map[string]string{"url": "https://x.test/?q=" + fill("--", size)}),
		"path of a tool":  call(t, "mcp__x__y", map[string]string{"path": fill("/*! ", size)}),
		"plan of a tool":  call(t, "mcp__x__y", map[string]string{"plan": fill("DELETE FROM t WHERE ", size)}),
		"words of a line": bash(t, fill("find . ", 60_000)),
		"many commands":   call(t, "mcp__x__y", many("kubectl exec a -- ")),
	} {
		if !json.Valid(c.Input) {
			t.Fatal(name)
		}
		p.Check(c) // the first check compiles regular expressions, so its time does not count
		best := time.Hour
		for range 3 {
			start := time.Now()
			p.Check(c)
			best = min(best, time.Since(start))
		}
		assert.Less(t, best, limit, name)
	}
}

// If a text is too long to be searched for secrets, it counts as a text with a secret.
func TestTextsTooLongToSearchAsk(t *testing.T) {
	t.Parallel()
	p := pol(t, schemas.Permissions{Allow: []string{"WebFetch", "WebSearch", "mcp__x", "WebFetch(domain:x.test)"}})
	var texts []string
	for range 3000 {
		texts = append(texts, "a")
	}
	for name, c := range map[string]policy.Call{
		"URL":            fetch(t, "https://x.test/?q="+strings.Repeat("a", 2000)+"&token=b"),
		"search":         call(t, "WebSearch", map[string]string{"query": strings.Repeat("a ", 1000) + "ghp_0123456789abcdefghij0123"}),
		"many texts":     call(t, "mcp__x__y", map[string]any{"all": append(texts, "https://ann:pw@x.test/")}),
		"many addresses": call(t, "mcp__x__y", map[string]any{"all": append(manyAddresses(), "https://ann:pw@x.test/")}),
	} {
		v := p.Check(c)
		assert.Equal(t, policy.Ask, v.Effect, name)
		assert.Equal(t, schemas.RiskHigh, v.Risk, name)
	}
}

func manyAddresses() (all []string) {
	for range 200 {
		all = append(all, "https://x.test/"+strings.Repeat("a/", 50))
	}
	return all
}

// A deletion or a read has a lower risk only if its words certainly name harmless files, such as build output.
func TestMilderReasonsAreCertain(t *testing.T) {
	t.Parallel()
	p := pol(t, schemas.Permissions{})
	for _, line := range []string{"cat id_*.orig", "cat credentials*.orig", "cat .[]e]nv", "cat .n[]e]trc", "cat .[].e]nv", "rm -rf build/.git", "rm -rf build/x/.git/"} {
		v := p.Check(bash(t, line))
		assert.Equal(t, schemas.RiskHigh, v.Risk, "%s: %v", line, v.Reasons)
	}
	for _, line := range []string{"cat *.orig", "rm -rf build", "rm -rf dist/*"} {
		v := p.Check(bash(t, line))
		assert.NotEqual(t, schemas.RiskHigh, v.Risk, "%s: %v", line, v.Reasons)
	}
}

func TestPasswordsInOddAddresses(t *testing.T) {
	t.Parallel()
	p := pol(t, schemas.Permissions{Allow: []string{"Bash(curl:*)"}})
	for _, address := range []string{"http:///ann:pw@x.test/", "https:/ann:pw@x.test/", "HTTPS://ann:pw@x.test", "'https://x.test/?%22token%22=a'", "https://x.test/?" + strings.Repeat("a", 40) + "_token=b"} {
		v := p.Check(bash(t, "curl "+address))
		assert.Equal(t, policy.Ask, v.Effect, address)
		assert.Contains(t, strings.Join(v.Reasons, "; "), "in the URL to x.test", address)
	}
}
