package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

type picks = func(context.Context, *rand.Rand) (*process, error)

func oneOf(processes []*process) picks {
	return func(_ context.Context, rng *rand.Rand) (*process, error) {
		return processes[rng.IntN(len(processes))], nil
	}
}

func (c *cluster) crashes() []fault {
	return []fault{
		kills("kill -9 of a server", c.led), kills("kill -9 of a server", c.led),
		kills("kill -9 of an engine", oneOf(c.engines[:])), kills("kill -9 of a worker", oneOf(c.workers[:])),
		fault{"kill -9 of a server and an engine", brief, c.killsBoth},
	}
}

func (c *cluster) killsBoth(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
	s, err := c.led(ctx, rng)
	if err != nil {
		return nil, "", err
	}
	e := c.engines[rng.IntN(engines)]
	start := func(ctx context.Context) error { return errors.Join(s.start(ctx), e.start(ctx)) }
	return start, s.name + " and " + e.name, errors.Join(s.kill(), e.kill())
}

func (c *cluster) stops() []fault {
	return []fault{
		pausesOf("SIGSTOP of a server", c.led), pausesOf("SIGSTOP of a server", c.led),
		pausesOf("SIGSTOP of an engine", oneOf(c.engines[:])), pausesOf("SIGSTOP of a worker", oneOf(c.workers[:])),
		c.slowDisk(),
	}
}

// slowDisk is a server that stands still for 200 to 800 ms again and again, as one
// does whose disk takes as long for every sync.
func (c *cluster) slowDisk() fault {
	return fault{"a slow server", brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		p, err := c.led(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		pulse := repeats("", [2]time.Duration{200 * time.Millisecond, 600 * time.Millisecond}, func(ctx context.Context, rng *rand.Rand) error {
			err := p.pause()
			pauses(ctx, between(rng, [2]time.Duration{200 * time.Millisecond, 800 * time.Millisecond}))
			return errors.Join(err, p.resume())
		})
		end, _, err := pulse.begin(ctx, rng)
		return end, p.name, err
	}}
}

func (c *cluster) stepDowns() []fault {
	return []fault{repeats("leaders step down", [2]time.Duration{100 * time.Millisecond, 900 * time.Millisecond}, c.stepDown)}
}

// splits are partitions and delays.
func (c *cluster) splits() []fault {
	long := [2]time.Duration{3 * time.Second, 20 * time.Second}
	return []fault{
		{"a server is cut off from everything", long, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			n, err := c.target(ctx, rng)
			return c.cut(append(c.routesOf(n), c.clientsOf(n)...)), fmt.Sprint("n", n), err
		}},
		{"a server is cut off from the others", long, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			n, err := c.target(ctx, rng)
			return c.cut(c.routesOf(n)), fmt.Sprint("n", n), err
		}},
		{"two servers are cut off from each other", long, func(_ context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			a := rng.IntN(servers)
			b := (a + 1) % servers
			return c.cut([]*link{c.ways[fmt.Sprint("n", a)][b], c.ways[fmt.Sprint("n", b)][a]}), fmt.Sprintf("n%d n%d", a, b), nil
		}},
		{"clients are cut off from a server", long, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			n, err := c.target(ctx, rng)
			return c.cut(c.clientsOf(n)), fmt.Sprint("n", n), err
		}},
		{"an engine is cut off", long, func(_ context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			who := fmt.Sprint("engine", rng.IntN(engines))
			links := c.ways[who]
			return c.cut(links[:]), who, nil
		}},
		{"a server is far away", brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			n, err := c.target(ctx, rng)
			return c.delay(append(c.routesOf(n), c.clientsOf(n)...), between(rng, [2]time.Duration{20 * time.Millisecond, 200 * time.Millisecond})), fmt.Sprint("n", n), err
		}},
	}
}

// target is the number of a server that led picks.
func (c *cluster) target(ctx context.Context, rng *rand.Rand) (n int, err error) {
	p, err := c.led(ctx, rng)
	for i, s := range c.servers {
		if s == p {
			n = i
		}
	}
	return n, err
}

// routesOf are the links between a server and the others, in both directions.
func (c *cluster) routesOf(n int) (links []*link) {
	for other := range servers {
		if other != n {
			links = append(links, c.ways[fmt.Sprint("n", n)][other], c.ways[fmt.Sprint("n", other)][n])
		}
	}
	return links
}

// clientsOf are the links of clients to a server.
func (c *cluster) clientsOf(n int) (links []*link) {
	for who, ways := range c.ways {
		if len(who) > 2 { // the servers are n0 to n2
			links = append(links, ways[n])
		}
	}
	return links
}

func (c *cluster) cut(links []*link) (end func(context.Context) error) {
	for _, l := range links {
		l.sever()
	}
	return func(context.Context) error {
		for _, l := range links {
			l.mend()
		}
		return nil
	}
}

func (c *cluster) delay(links []*link, d time.Duration) (end func(context.Context) error) {
	for _, l := range links {
		l.slow(d)
	}
	return func(context.Context) error {
		for _, l := range links {
			l.slow(0)
		}
		return nil
	}
}

// rolling restarts every server and every engine, one after another.
func (c *cluster) rolling() []fault {
	return []fault{{"a rolling restart", [2]time.Duration{}, func(ctx context.Context, _ *rand.Rand) (func(context.Context) error, string, error) {
		end := func(context.Context) error { return nil }
		for _, p := range append(append(c.servers[:], c.engines[:]...), c.workers[:]...) {
			if err := errors.Join(p.stop(), p.start(ctx)); err != nil {
				return end, p.name, err
			}
			c.settles(ctx)
		}
		return end, "", nil
	}}}
}

// settles waits until all that has a leader has one again, for at most 20 seconds.
func (c *cluster) settles(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, what := range led {
		c.leader(ctx, what)
	}
}

// clocks step the wall clock of one process, by up to ten minutes, and back.
func (c *cluster) clocks() []fault {
	step := func(name string, pick picks) fault {
		return fault{name, [2]time.Duration{3 * time.Second, 12 * time.Second}, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
			p, err := pick(ctx, rng)
			if err != nil {
				return nil, "", err
			}
			by := time.Duration(rng.IntN(1200)-600) * time.Second
			return func(context.Context) error { return p.step(0) }, fmt.Sprint(p.name, " by ", by), p.step(by)
		}}
	}
	return []fault{step("the clock of an engine steps", oneOf(c.engines[:])), step("the clock of a worker steps", oneOf(c.workers[:]))}
}

// fullDisks fill the disk of one server, and after that restart it: a server that
// could not write takes its streams off until then.
func (c *cluster) fullDisks() []fault {
	return []fault{{"a full disk", brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		n, err := c.target(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		ballast := filepath.Join(c.store(n), "ballast")
		end := func(ctx context.Context) error {
			return errors.Join(os.Remove(ballast), c.servers[n].kill(), c.servers[n].start(ctx))
		}
		return end, c.servers[n].name, fill(ballast)
	}}}
}

// fill writes a file until there is no more room.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return nil
}

// crashes of an embedded nod are of all of it.
func (e *embedded) crashes() []fault {
	return []fault{kills("kill -9 of nod up", func(context.Context, *rand.Rand) (*process, error) { return e.up, nil })}
}
