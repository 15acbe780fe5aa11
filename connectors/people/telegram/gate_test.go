package telegram

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The gate is open while what was heard is all there is.
func TestTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*gate) // it was asked what waits in between
		holds         bool
	}{
		"at once":                        {holds: false},
		"while the next poll is open":    {after: func(g *gate) { g.jump(pollFor, pollFor) }, holds: false},
		"after a poll that never ended":  {after: func(g *gate) { g.jump(heardFor, heardFor) }, holds: true},
		"after a short sleep":            {after: func(g *gate) { g.jump(5*time.Second, 0) }, holds: true},
		"after a long sleep":             {after: func(g *gate) { g.jump(24*time.Hour, 0) }, holds: true},
		"after the clock was set back":   {after: func(g *gate) { g.jump(-24*time.Hour, 0) }, holds: true},
		"where the clock is set a bit":   {after: func(g *gate) { g.jump(time.Second, 0) }, holds: false},
		"asked before a sleep":           {before: func(g *gate) { g.jump(time.Minute, 0) }, holds: true},
		"asked long ago":                 {before: func(g *gate) { g.jump(heardFor, heardFor) }, holds: true},
		"after the receiver ended":       {after: func(g *gate) { g.shut(false) }, holds: true},
		"where a clock counts its sleep": {after: func(g *gate) { g.jump(time.Hour, time.Hour) }, holds: true},
	} {
		g := newGate()
		assert.True(t, g.holds(), "at first")
		asked := g.now()
		if c.before != nil {
			c.before(g)
		}
		assert.Equal(t, c.before == nil, g.heard(asked), name)
		if c.after != nil {
			c.after(g)
		}
		assert.Equal(t, c.holds, g.holds(), name)
	}
}

// What is held back is so no longer than holdFor, unless Telegram is out of reach.
func TestTheGateHoldsNothingForEver(t *testing.T) {
	g := newGate()
	for range 10 {
		assert.True(t, g.holds())
		g.jump(holdFor-time.Second, holdFor-time.Second)
		assert.True(t, g.holds())
		g.shut(true)
	}
	assert.True(t, g.holds())
	g.jump(holdFor, 0)
	assert.True(t, g.holds(), "asleep nothing is heard")
	g.shut(false)
	g.jump(holdFor, holdFor)
	assert.False(t, g.holds())
	assert.True(t, g.heard(g.now()))
	g.shut(false)
	assert.True(t, g.holds(), "the next one is held back anew")
}
