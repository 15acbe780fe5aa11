package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/schemas"
)

// settleWithin is the time limit for the remaining stories after the load and the faults have ended.
const settleWithin = bound + 10*time.Second

// The method endure runs stories under faults until the deadline. It then waits until the remaining stories
// have ended and the viewers are up to date, and returns the evidence for the checks.
func (w *world) endure(ctx context.Context, seed uint64, faults *schedule, deadline time.Time) (*evidence, error) {
	loadCtx, stop := context.WithDeadline(ctx, deadline)
	defer stop()
	life, end := context.WithCancel(ctx)
	defer end()
	go w.eyes.watch(life, w.place.telegram())
	var strands sync.WaitGroup
	var told atomic.Uint64
	for range *flagStories {
		strands.Go(func() {
			for loadCtx.Err() == nil {
				w.tell(life, seed, told.Add(1))
				if *flagRequests > 0 && w.requests() >= *flagRequests {
					stop()
				}
			}
		})
	}
	faults.after = func() { strands.Go(func() { w.afterFault(life) }) }
	failed := faults.run(loadCtx, w.history, deadline)
	if loadCtx.Err() != nil {
		failed = nil // the end of the load stops the schedule of faults, which is no failure
	}
	done := make(chan struct{})
	go func() { strands.Wait(); close(done) }()
	w.log("the load has ended")
	settled := time.NewTimer(time.Until(deadline) + settleWithin)
	defer settled.Stop()
	select {
	case <-done:
	case <-settled.C:
	}
	w.log("stories still running: " + strings.Join(w.activeStories(), " "))
	e := &evidence{Began: w.began, Faults: faults.spans}
	w.quiesce(ctx)
	e.End = w.now()
	w.log("everything is shown")
	end()
	<-done
	if failed != nil {
		return nil, failed
	}
	reading, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	e.Stored, err = w.readStores(reading)
	e.Events, e.Phone = w.sorted(), w.place.telegram().Chat(carlID)
	w.log("the stores are read")
	return e, err
}

func (w *world) log(what string) { w.say(fmt.Sprintf("%8.3f %s", w.now().Seconds(), what)) }

// The method tell runs one story to its end. The parameters seed and number determine the story. After 90 s
// the function tell stops the story, and nobody answers the story's pending requests any more.
func (w *world) tell(ctx context.Context, seed, number uint64) {
	rng := rand.New(rand.NewPCG(seed, 1000+number))
	sum := 0
	for _, s := range stories {
		sum += s.weight
	}
	pick := rng.IntN(sum)
	for _, kind := range stories {
		if pick -= kind.weight; pick >= 0 {
			continue
		}
		s := &story{world: w, name: fmt.Sprintf("%s-%d", kind.kind, number), session: fmt.Sprintf("S%d", number), rng: rng}
		w.setActive(s.name, true)
		defer w.setActive(s.name, false)
		told, cancel := context.WithTimeout(ctx, 90*time.Second)
		defer cancel()
		kind.tell(s, told)
		s.asks.Wait() // until each asker has its decision, or the time limit of the story is over
		return
	}
}

func (w *world) setActive(name string, begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[name] = begins; !begins {
		delete(w.active, name)
	}
}

func (w *world) activeStories() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sortedKeys(w.active)
}

func (w *world) requests() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.groups)
}

// quiesce waits until the viewers of Ann and Bob show exactly the pending requests. It waits at most for
// the time bound.
func (w *world) quiesce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	_ = every(ctx, 200*time.Millisecond, func() bool { // a viewer that still differs after the time bound is reported by a check
		for _, p := range []*person{w.ann(), w.bob()} {
			if open, err := p.lags(ctx); open || err != nil {
				return false
			}
		}
		return true
	})
}

// The method lags reports whether the pending requests in the person's viewer differ from those in nod's
// list.
func (p *person) lags(ctx context.Context) (bool, error) {
	pending, err := p.desk.Pending(ctx, schemas.Query{})
	if err != nil {
		return false, err
	}
	open := map[string]bool{}
	for _, prompt := range pending {
		open[prompt.Key()] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.shown {
		if !open[key] {
			return true, nil
		}
		delete(open, key)
	}
	return len(open) > 0, nil
}

// figures are the numbers of a scenario in the table in docs/chaos.md.
type figures struct {
	requests, faults, violations int
	p50, p99, worst              time.Duration // the times from an approver's answer until the asker has the decision
}

func (f figures) String() string {
	return fmt.Sprintf("%d | %d | %d | %s | %s | %s", f.requests, f.faults, f.violations, f.p50, f.p99, f.worst)
}

func (e *evidence) figures(violations int) figures {
	asked := map[string]bool{}
	var waits []time.Duration
	groups := by(e.Events, func(ev *event) string { return ev.Group })
	for _, ev := range e.Events {
		if ev.Op == opAsk {
			asked[ev.key()] = true
		}
		if ev.Op != opHear || ev.Decision == nil || ev.Decision.By.Kind != schemas.ByHuman {
			continue
		}
		if said := saidAt(groups[ev.Group], ev); said != never {
			waits = append(waits, ev.Return-max(said, ev.Call))
		}
	}
	slices.Sort(waits)
	at := func(share float64) time.Duration {
		if len(waits) == 0 {
			return 0
		}
		return waits[min(len(waits)-1, int(share*float64(len(waits))))].Round(time.Millisecond)
	}
	return figures{len(asked), len(e.Faults), violations, at(0.5), at(0.99), at(1)}
}

// saidAt returns the time at which an approver sent the answer that made the decision in the event heard.
// If no answer's result has this decision, it returns the time of the approver's last answer before
// heard. If there is no such answer, it returns the constant never.
func saidAt(group []*event, heard *event) time.Duration {
	said := never
	for _, ev := range group {
		if (ev.Op == opAnswer || ev.Op == opPress) && ev.Who == heard.Decision.By.Name && ev.Call <= heard.Return {
			if d := ev.told(); d != nil && d.DecisionID == heard.Decision.DecisionID {
				return ev.Call
			}
			said = ev.Call
		}
	}
	return said
}

// story describes the events of a violation's request or group, and the faults in the time of these events.
func (e *evidence) story(v violation) string {
	group, session := v.Key, ""
	for _, ev := range e.Events {
		if ev.Group != "" && (ev.Group == v.Key || ev.about(v.Key)) {
			group, session = ev.Group, ev.Session
		}
	}
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	first, last := never, time.Duration(0)
	viewed := map[string]bool{} // of the views of one state, the first view of each viewer is enough
	for _, ev := range e.Events {
		if look := fmt.Sprint(ev.Who, ev.key(), ev.Decision == nil); ev.Op == opView {
			if viewed[look] {
				continue
			}
			viewed[look] = true
		}
		own := ev.about(v.Key) || v.Key == group && ev.Group == group
		// The story leaves out views of other requests. It has events of other groups only if they are about
		// the whole session.
		if own || ev.Group == group && ev.Op != opView && ruled[group] == "" || ev.Session == session && ev.ID == "" {
			lines = append(lines, line{ev.Call, ev.String()})
			first = min(first, ev.Call)
			if ev.Return != never {
				last = max(last, ev.Return)
			}
		}
	}
	for _, f := range e.Faults {
		if f.End+bound > first && f.Begin < last+bound {
			lines = append(lines, line{f.Begin, f.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for i, l := range lines {
		if i == 50 {
			fmt.Fprintf(&b, "  and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", l.text)
	}
	if d := e.Stored.decision(v.Key); d != nil {
		fmt.Fprintf(&b, "  stored: %s\n", words(d))
	}
	return b.String()
}
