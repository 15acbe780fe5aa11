package inbox

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// inert is how long keys decide nothing after what they would do has changed,
// and after a key that came too early: what was typed ahead is dropped, and so
// is a key that is held down.
const inert = 400 * time.Millisecond

// guard keeps keys from deciding what its user has not had the time to see.
type keyGuard struct {
	after  scheduler
	effect string // what the keys would do
	armed  bool
	count  int // of the waits; only the last one arms
	since  time.Time
}

// after has a message come after a while.
type scheduler func(time.Duration, tea.Msg) tea.Cmd

// armMsg ends a wait.
type armMsg struct{ count int }

// wait disarms the keys for a while from now on.
func (g *keyGuard) disarm(now time.Time) tea.Cmd {
	g.armed, g.since = false, now
	g.count++
	return g.after(inert, armMsg{g.count})
}

// watch disarms the keys where what they would do has changed.
func (g *keyGuard) disarmOnChange(stake string, now time.Time) tea.Cmd {
	if stake == g.effect {
		return nil
	}
	g.effect = stake
	return g.disarm(now)
}

// arm ends the wait that it was made for. One that took much longer than it
// should have had the screen stand still: it begins anew.
func (g *keyGuard) arm(m armMsg, now time.Time) tea.Cmd {
	switch {
	case m.count != g.count:
		return nil
	case now.Sub(g.since) > 2*inert:
		return g.disarm(now)
	}
	g.armed = true
	return nil
}
