package telegram

import "time"

// Sleeps has the machine sleep: only the time on the wall goes on.
func (c *Carrier) Sleeps(d time.Duration) { c.late.jump(d, 0) }

// Runs has time pass while the machine runs.
func (c *Carrier) Runs(d time.Duration) { c.late.jump(d, d) }

func (g *gate) jump(wall, ran time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.clock
	g.clock = func() moment {
		now := before()
		return moment{now.wall.Add(wall), now.ran + ran}
	}
}
