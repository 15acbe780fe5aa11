package inbox

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// inert is how long keys have no effect after the meaning of a key has changed. A key that is pressed
// during this time starts the time again. Keys that a user typed ahead or holds down therefore have no
// effect.
const inert = 400 * time.Millisecond

// keyGuard ensures that the user has had time to see the effect of a key before pressing it.
type keyGuard struct {
	after  scheduler
	effect string // a text that changes when the effect of a key changes
	armed  bool
	count  int // the number of delays so far; when the latest delay ends, keys have an effect again
	since  time.Time
}

// scheduler delivers a message after a delay.
type scheduler func(time.Duration, tea.Msg) tea.Cmd

// armMsg reports the end of a delay. count is the number of that delay.
type armMsg struct{ count int }

// disarm makes the keys ineffective for the duration inert.
func (g *keyGuard) disarm(now time.Time) tea.Cmd {
	g.armed, g.since = false, now
	g.count++
	return g.after(inert, armMsg{g.count})
}

// disarmOnChange calls disarm if the effect of a key has changed.
func (g *keyGuard) disarmOnChange(stake string, now time.Time) tea.Cmd {
	if stake == g.effect {
		return nil
	}
	g.effect = stake
	return g.disarm(now)
}

// arm gives the keys their effect again at the end of the latest delay, and ignores the ends of earlier
// delays. If the delay took more than twice its planned time, the program was stuck, and typed keys may
// still be unread. arm then starts a new delay.
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
