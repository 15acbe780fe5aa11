package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// No entry of the command table sets a field that another field makes meaningless.
func TestCommandTable(t *testing.T) {
	for name, c := range newTable() {
		words := strings.Fields(name)
		assert.Equal(t, name, strings.Join(words, " "), "one space between words")
		assert.LessOrEqual(t, len(words), 3, "%s: lookups stop after three words", name)
		assert.True(t, c.runner || !c.target, "%s: a target without a runner", name)
		assert.True(t, c.manyTargets || c.chooser == "", "%s: a chooser without targets", name)
		flags := c.short + c.value + c.tail + c.long
		assert.True(t, c.level != levelNone || flags == "" && c.operands == 0 && c.check == nil && !c.Special, "%s: flags without a level", name)
		assert.True(t, !c.Special || flags == "", "%s: flags that its own grammar ignores", name)
		for _, letter := range c.value + c.tail {
			assert.NotContains(t, c.short, string(letter), "%s: with and without a value", name)
		}
	}
}

// A command in two sections would have two entries, and one of these entries would hide the other.
func TestEachCommandStandsInOneSection(t *testing.T) {
	seen := map[string]bool{}
	for _, section := range sections() {
		for name := range section {
			assert.False(t, seen[name], name)
			seen[name] = true
		}
	}
	assert.Len(t, newTable(), len(seen))
}
