package inbox

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// inert is the time for which keys decide nothing after their effect has changed, or
// after a key that came too early. So keys typed ahead or held down are dropped.
const inert = 400 * time.Millisecond

// keyGuard keeps keys from deciding anything that the user has had no time to see.
type keyGuard struct {
	after  scheduler
	effect string // identifies the current effect of the keys
	armed  bool
	count  int // number of delays; only the last one arms the keys
	since  time.Time
}

// scheduler delivers a message after a delay.
type scheduler func(time.Duration, tea.Msg) tea.Cmd

// armMsg ends a delay.
type armMsg struct{ count int }

// disarm makes the keys inert, from now on for one delay.
func (g *keyGuard) disarm(now time.Time) tea.Cmd {
	g.armed, g.since = false, now
	g.count++
	return g.after(inert, armMsg{g.count})
}

// disarmOnChange disarms the keys if their effect has changed.
func (g *keyGuard) disarmOnChange(stake string, now time.Time) tea.Cmd {
	if stake == g.effect {
		return nil
	}
	g.effect = stake
	return g.disarm(now)
}

// arm ends a delay, if it is the last one. A delay that took more than twice as long
// means that the screen stood still; then it starts anew.
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
