package commands

import (
	"strings"
	"testing"
)

// OwnTable replaces the command table until the test ends. The test may change the new table, which
// OwnTable returns.
func OwnTable(t testing.TB) map[string]*Command {
	shared, own := table, newTable()
	table = func() map[string]*Command { return own }
	t.Cleanup(func() { table = shared })
	return own
}

// ListFlag adds a flag to an entry's lists. It removes the entry's limits on operands and the
// function check. A flag with = takes a value.
func (c *Command) ListFlag(flag string) {
	name, _, value := strings.Cut(flag, "=")
	switch long, isLong := strings.CutPrefix(name, "--"); {
	case !isLong:
		c.short += flag[1:2]
	case value:
		c.longs[long] = '='
	default:
		c.longs[long] = 0
	}
	c.operands, c.check, c.ordered = unlimited, nil, false
}

// Flags returns the letters of the listed short flags, and the listed long flags. If the result all
// is true, every word is an operand, so no flag matters.
func (c *Command) Flags() (letters string, longs map[string]byte, all bool) {
	letters = c.short + c.value + c.tail
	if c.digits {
		letters += "0123456789"
	}
	return letters, c.longs, c.raw
}
