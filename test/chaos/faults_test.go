package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
)

// fault is a disturbance. The function begin starts the fault. It returns what the fault affects, and a
// function that ends the fault. begin returns once the fault has begun, and the returned function once it
// has ended.
type fault struct {
	name string
	// lasts has the shortest and the longest duration of the fault.
	lasts [2]time.Duration
	begin func(ctx context.Context, rng *rand.Rand) (end func(context.Context) error, what string, err error)
}

// schedule runs faults one after another until a deadline. The field rng determines the order, the durations
// and the pauses of the faults. Each fault chooses what it affects when it begins.
type schedule struct {
	rng    *rand.Rand
	faults []fault
	gap    [2]time.Duration
	after  func() // a function that schedule calls when a fault ends
	spans  []span
}

func between(rng *rand.Rand, d [2]time.Duration) time.Duration {
	return d[0] + time.Duration(rng.Int64N(int64(d[1]-d[0])+1))
}

// The method run runs faults until the deadline, and returns when the last fault has ended. If ctx ends
// first, run returns the error of ctx.
func (s *schedule) run(ctx context.Context, h *history, deadline time.Time) error {
	for len(s.faults) > 0 {
		gap, f, lasts := between(s.rng, s.gap), s.faults[s.rng.IntN(len(s.faults))], time.Duration(0)
		lasts = between(s.rng, f.lasts)
		own := rand.New(rand.NewPCG(s.rng.Uint64(), 0)) // each fault gets a random generator of its own, so that its choices do not change later faults
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
	// The fault must end even if ctx has ended, because it would otherwise affect later tests.
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

// brief has the shortest and the longest duration of most faults.
var brief = [2]time.Duration{1 * time.Second, 8 * time.Second}

// The function kills returns a fault that kills a process. When the fault ends, it starts the process again.
func kills(name string, pick func(context.Context, *rand.Rand) (*process, error)) fault {
	return fault{name, brief, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		p, err := pick(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		return p.start, p.name, p.kill()
	}}
}

// These are calls to Telegram. While a worker makes such a call, a fault kills the worker.
var (
	// messageTaken is a call that Telegram executes, but whose reply no worker gets.
	messageTaken = telegramtest.Fault{Method: "sendMessage", Done: true}
	// messageUnedited is an edit that fails. The message therefore does not get its buttons or its
	// outcome.
	messageUnedited = telegramtest.Fault{Method: "editMessageText"}
)

// killsAsTold returns a fault that kills processes during their next call to Telegram of the given kind, or
// after 3 s if they make no such call. At its end the fault starts the processes again.
func (s *site) killsAsTold(name string, call telegramtest.Fault, victims ...*process) fault {
	return fault{name, brief, func(ctx context.Context, _ *rand.Rand) (func(context.Context) error, string, error) {
		killed := make(chan error, 1)
		kill := sync.OnceFunc(func() {
			var errs []error
			for _, p := range victims {
				errs = append(errs, p.kill())
			}
			killed <- errors.Join(errs...)
		})
		call.Then = kill
		s.phone.Fail(call)
		unused := time.AfterFunc(3*time.Second, kill)
		defer unused.Stop()
		start := func(ctx context.Context) error {
			var errs []error
			for _, p := range victims {
				errs = append(errs, p.start(ctx))
			}
			return errors.Join(errs...)
		}
		return start, "", <-killed
	}}
}

// pausesOf returns a fault that suspends a process (SIGSTOP). At its end the fault resumes the
// process.
func pausesOf(name string, pick func(context.Context, *rand.Rand) (*process, error)) fault {
	return fault{name, [2]time.Duration{2 * time.Second, 14 * time.Second}, func(ctx context.Context, rng *rand.Rand) (func(context.Context) error, string, error) {
		p, err := pick(ctx, rng)
		if err != nil {
			return nil, "", err
		}
		return func(context.Context) error { return p.resume() }, p.name, p.pause()
	}}
}

// The function repeats returns a fault that calls the function do repeatedly. The pauses are random, between
// every[0] and every[1].
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
