package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/rules"
)

// If the agent names no project, a deny rule covers every relative path, and each full path that the rule
// could mean in some project. An allow rule covers no path.
func TestARelativeRuleWithoutAProject(t *testing.T) {
	for _, c := range []struct {
		rule, path string
		covers     bool
	}{
		{"Read(hidden.txt)", "/p/hidden.txt", true},
		{"Read(hidden.txt)", "/p/plain.txt", false},
		{"Read(hidden.txt)", "/p/HIDDEN.txt", true},
		{"Read(hidden.txt)", "/p/hidden.txt/below", true},
		{"Read(hidden.txt)", "/p/*.txt", true},
		{"Read(hidden.txt)", "/p/*.md", false},
		{"Read(hidden.txt)", "plain.txt", true},
		{"Read(./keys/a)", "/p/q/keys/a", true},
		{"Read(./keys/a)", "/keys/a", true},
		{"Read(./keys/a)", "/p/keys/b", false},
		{"Read(./keys/**)", "/p/q/keys/r/s", true},
		{"Read(./keys/**)", "/p/q/r/s", false},
		{"Read(./**)", "/p", true},
		{"Read(~/.ssh/**)", "/home/ann/.ssh/id", true},
		{"Read(~/.ssh/**)", "/home/ann/x", false},
		{"Read(//etc/**)", "/etc/passwd", true},
		{"Read(//etc/**)", "/p/etc/passwd", false},
	} {
		r, err := rules.Parse(c.rule)
		require.NoError(t, err)
		loc := &pathname.Location{}
		assert.Equal(t, c.covers, r.CoversPath(c.path, loc, false), "%s %s", c.rule, c.path)
		if c.rule != "Read(//etc/**)" {
			assert.False(t, r.CoversPath(c.path, loc, true), "%s %s", c.rule, c.path)
		}
	}
}
