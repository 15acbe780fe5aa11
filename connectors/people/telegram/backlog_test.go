package telegram

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// nod shows that a request expired only after it has received all updates from Telegram.
func TestExpiriesWaitUntilTheBacklogIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(*backlog) // called before and after Telegram says that no update is left
		holds         bool
	}{
		"at once":                       {holds: false},
		"while the next poll is open":   {after: func(b *backlog) { b.jump(pollFor, pollFor) }, holds: false},
		"after a poll that never ended": {after: func(b *backlog) { b.jump(drainedFor, drainedFor) }, holds: true},
		"after a short sleep":           {after: func(b *backlog) { b.jump(5*time.Second, 0) }, holds: true},
		"after a long sleep":            {after: func(b *backlog) { b.jump(24*time.Hour, 0) }, holds: true},
		"after the clock was set back":  {after: func(b *backlog) { b.jump(-24*time.Hour, 0) }, holds: true},
		"when the clock is set a bit":   {after: func(b *backlog) { b.jump(time.Second, 0) }, holds: false},
		"asked before a sleep":          {before: func(b *backlog) { b.jump(time.Minute, 0) }, holds: true},
		"asked long ago":                {before: func(b *backlog) { b.jump(drainedFor, drainedFor) }, holds: true},
		"after the receiver ended":      {after: func(b *backlog) { b.forget(false) }, holds: true},
		"if a clock counts its sleep":   {after: func(b *backlog) { b.jump(time.Hour, time.Hour) }, holds: true},
	} {
		b := newBacklog()
		assert.True(t, b.holdsExpiry(), "at first")
		asked := b.now()
		if c.before != nil {
			c.before(b)
		}
		assert.Equal(t, c.before == nil, b.drained(asked), name)
		if c.after != nil {
			c.after(b)
		}
		assert.Equal(t, c.holds, b.holdsExpiry(), name)
	}
}

// nod delays the message that a request expired by at most holdFor, except while it cannot reach
// Telegram.
func TestExpiriesWaitForTheBacklogForALimitedTime(t *testing.T) {
	t.Parallel()
	b := newBacklog()
	for range 10 {
		assert.True(t, b.holdsExpiry())
		b.jump(holdFor-time.Second, holdFor-time.Second)
		assert.True(t, b.holdsExpiry())
		b.forget(true)
	}
	assert.True(t, b.holdsExpiry())
	b.jump(holdFor, 0)
	assert.True(t, b.holdsExpiry(), "a machine receives nothing while it sleeps")
	b.forget(false)
	b.jump(holdFor, holdFor)
	assert.False(t, b.holdsExpiry())
	assert.True(t, b.drained(b.now()))
	b.forget(false)
	assert.True(t, b.holdsExpiry(), "the next expiry is held back anew")
}
