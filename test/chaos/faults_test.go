package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// fault is one disturbance: begin starts it and returns what ends it. Both return
// once it has begun or ended, whatever that takes.
type fault struct {
	name string
	// lasts is between how long and how long.
	lasts [2]time.Duration
	begin func(ctx context.Context, rng *rand.Rand) (end func(context.Context) error, what string, err error)
}

// schedule has faults happen one after another until a deadline: which, how long and
// how far apart is told by the seed. What a fault hits is found when it begins.
type schedule struct {
	rng    *rand.Rand
	faults []fault
	gap    [2]time.Duration
	after  func() // at the end of each
	spans  []span
}

func between(rng *rand.Rand, d [2]time.Duration) time.Duration {
	return d[0] + time.Duration(rng.Int64N(int64(d[1]-d[0])+1))
}

// run runs the schedule until the deadline. The last fault is ended before it
// returns.
func (s *schedule) run(ctx context.Context, h *history, deadline time.Time) error {
	for len(s.faults) > 0 {
		gap, f, lasts := between(s.rng, s.gap), s.faults[s.rng.IntN(len(s.faults))], time.Duration(0)
		lasts = between(s.rng, f.lasts)
		own := rand.New(rand.NewPCG(s.rng.Uint64(), 0)) // what happens within one changes no other
		if pauses(ctx, gap); ctx.Err() != nil || !time.Now().Before(deadline) {
			return ctx.Err()
		}
		if err := s.one(ctx, h, f, own, lasts); err != nil {
			return err
		}
	}
	pauses(ctx, time.Until(deadline))
	return ctx.Err()
}

func (s *schedule) one(ctx context.Context, h *history, f fault, rng *rand.Rand, lasts time.Duration) error {
	begun := h.now()
	end, what, err := f.begin(ctx, rng)
	if err != nil {
		return fmt.Errorf("begin %s: %w", f.name, err)
	}
	pauses(ctx, lasts)
	// A fault that cannot be ended would leave the rest of the tests with it.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := end(ending); err != nil {
		return fmt.Errorf("end %s %s: %w", f.name, what, err)
	}
	s.spans = append(s.spans, span{f.name + " " + what, begun, h.now()})
	if s.after != nil {
		s.after()
	}
	return nil
}

// brief is how long most faults last.
var brief = [2]time.Duration{1 * time.Second, 8 * time.Second}

// kills ends a process at once and starts it again after a while.
func kills(name string, pick func(context.Context, *rand.Rand) (*process, error)) fault {
	return fault{name, brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		p, err := pick(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		return p.start, p.name, p.kill()
	}}
}

// pausesOf stops a process and has it go on after a while.
func pausesOf(name string, pick func(context.Context, *rand.Rand) (*process, error)) fault {
	return fault{name, [2]time.Duration{2 * time.Second, 14 * time.Second}, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		p, err := pick(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		return func(context.Context) error { return p.resume() }, p.name, p.pause()
	}}
}

// repeats does something every now and then for as long as a fault lasts.
func repeats(name string, every [2]time.Duration, do func(context.Context, *rand.Rand) error) fault {
	return fault{name, brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			for times := 0; ; times++ {
				if pauses(ctx, between(rng, every)); ctx.Err() != nil {
					done <- nil
					return
				}
				if err := do(ctx, rng); err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
		}()
		return func(context.Context) error { stop(); return <-done }, "", nil
	}}
}
