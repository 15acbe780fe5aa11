package telegram

import "time"

// Sleeps simulates that the machine sleeps: only the wall clock advances.
func (c *Carrier) Sleeps(d time.Duration) { c.backlog.jump(d, 0) }

// Runs simulates that time passes while the machine runs.
func (c *Carrier) Runs(d time.Duration) { c.backlog.jump(d, d) }

func (b *backlog) jump(wall, ran time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.clock
	b.clock = func() moment {
		now := before()
		return moment{now.wall.Add(wall), now.ran + ran}
	}
}
