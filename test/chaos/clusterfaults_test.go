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
		c.killsAsTold("kill -9 of the workers as Telegram takes a message", messageTaken, c.workers[:]...),
		c.killsAsTold("kill -9 of the workers before Telegram edits a message", messageUnedited, c.workers[:]...),
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

// slowDisk returns a fault that suspends a server again and again, for 200 to 800 ms each time, as if each
// sync to the server's disk took that long.
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

// The method splits returns the network faults: partitions and, if the network paths are proxies, delays.
func (c *cluster) splits() []fault {
	all := []fault{
		c.split("a server is cut off from everything", func(n int) []way { return append(c.routesOf(n), c.clientsOf(n)...) }),
		c.split("a server is cut off from the others", c.routesOf),
		c.split("two servers are cut off from each other", func(n int) []way {
			other := (n + 1) % servers
			return []way{c.ways[fmt.Sprint("n", n)][other], c.ways[fmt.Sprint("n", other)][n]}
		}),
		c.split("clients are cut off from a server", c.clientsOf),
		c.split("an engine is cut off", func(n int) []way { ways := c.ways[fmt.Sprint("engine", n)]; return ways[:] }),
	}
	if c.net == nil {
		all = append(all, c.far())
	}
	return all
}

// The method split returns a fault that cuts network paths. The function target chooses the number of a
// server or of an engine. The function ways returns the network paths to cut for this number.
func (c *cluster) split(name string, ways func(n int) []way) fault {
	return fault{name, [2]time.Duration{3 * time.Second, 20 * time.Second}, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		n := c.target(ctx, rng)
		end, err := cut(ways(n))
		return end, fmt.Sprint(n), err
	}}
}

// The method far returns a fault that delays all packets to and from a server.
func (c *cluster) far() fault {
	return fault{"a server is far away", brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		n := c.target(ctx, rng)
		ways, d := append(c.routesOf(n), c.clientsOf(n)...), between(rng, [2]time.Duration{20 * time.Millisecond, 200 * time.Millisecond})
		slow := func(d time.Duration) {
			for _, w := range ways {
				w.slow(d)
			}
		}
		slow(d)
		return func(context.Context) error { slow(0); return nil }, fmt.Sprint("n", n, " by ", d), nil
	}}
}

// target chooses a server and returns its number. In one of three cases it chooses any server. Otherwise
// it chooses the leader of a random stream or consumer.
func (c *cluster) target(ctx context.Context, rng *rand.Rand) int {
	any, what := rng.IntN(3*servers), led[rng.IntN(len(led))]
	if any < servers {
		return any
	}
	found, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.leader(found, what)
}

// routesOf returns the network paths between a server and the other servers, in both directions.
func (c *cluster) routesOf(n int) (ways []way) {
	for other := range servers {
		if other != n {
			ways = append(ways, c.ways[fmt.Sprint("n", n)][other], c.ways[fmt.Sprint("n", other)][n])
		}
	}
	return ways
}

// clientsOf returns the network paths from clients to a server.
func (c *cluster) clientsOf(n int) (ways []way) {
	for who, all := range c.ways {
		if len(who) > 2 { // skip n0 to n2, which are servers
			ways = append(ways, all[n])
		}
	}
	return ways
}

// The function cut cuts network paths. The returned function ends the cut.
func cut(ways []way) (end func(context.Context) error, err error) {
	for _, w := range ways {
		err = errors.Join(err, w.sever())
	}
	return func(context.Context) (err error) {
		for _, w := range ways {
			err = errors.Join(err, w.mend())
		}
		return err
	}, err
}

// The method rolling returns a fault that restarts every server, engine and worker, one after another.
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

// The method settles waits until every stream and consumer has a leader again, at most for 20 s.
func (c *cluster) settles(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, what := range led {
		c.leader(ctx, what)
	}
}

// clocks returns faults that step the wall clock of one process by up to ten minutes. When such a fault
// ends, it steps the clock back.
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

// fullDisks returns a fault that fills the disk of one server. When the fault ends, it restarts the server,
// because a server that has failed to write keeps its streams offline until a restart.
func (c *cluster) fullDisks() []fault {
	return []fault{{"a full disk", brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		n := c.target(ctx, rng)
		ballast := filepath.Join(c.store(n), "ballast")
		end := func(ctx context.Context) error {
			return errors.Join(os.Remove(ballast), c.servers[n].kill(), c.servers[n].start(ctx))
		}
		return end, c.servers[n].name, fill(ballast)
	}}}
}

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

// The method crashes returns a fault that kills the process nod up, which contains the engine, the server and
// the worker.
func (e *embedded) crashes() []fault {
	kill := kills("kill -9 of nod up", func(context.Context, *rand.Rand) (*process, error) { return e.up, nil })
	all := []fault{
		kill,
		e.killsAsTold("kill -9 of nod up as Telegram takes a message", messageTaken, e.up),
		e.killsAsTold("kill -9 of nod up before Telegram edits a message", messageUnedited, e.up),
	}
	for i := range all {
		all[i].lasts = [2]time.Duration{0, 2 * time.Second}
	}
	return all
}
