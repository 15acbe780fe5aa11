package actors

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// Job is one message for a lane.
type Job interface {
	// Run does the work. ctx ends when the lanes are stopped the hard way.
	Run(ctx context.Context)
	// Failed is called after Run panicked, to tell whoever waits.
	Failed(reason any)
}

// Lanes runs jobs: those of one key one after another in the order in which
// they were sent, those of different keys in parallel.
//
// Each key with open jobs has a child actor. The parent counts each child's open
// jobs, and at zero has it wait for another key, or stops it where enough wait:
// making a child costs about as much as handling its few messages. A child that
// stopped itself when idle would lose, silently, what was sent before the parent
// heard of it.
type Lanes struct {
	sys    *System
	pid    *actor.PID
	cancel context.CancelFunc
	gone   chan struct{}
}

// The messages of a Lanes parent.
type (
	submitted struct {
		key string
		job Job
	}
	finished struct{ key string }
	drain    struct{ drained chan struct{} }
)

// maxIdle is how many children wait for a key.
const maxIdle = 64

// Lanes starts a set of lanes. The name is the actor's.
func (s *System) Lanes(name string) *Lanes {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lanes{sys: s, cancel: cancel, gone: make(chan struct{})}
	p := &parent{sys: s, ctx: ctx, gone: l.gone, open: map[string]*lane{}}
	props := actor.PropsFromProducer(func() actor.Actor { return p },
		actor.WithDispatcher(s.warm), actor.WithSupervisor(resume(s.log)), actor.WithGuardian(resume(s.log)))
	l.pid = s.sys.Root.SpawnPrefix(props, name)
	return l
}

// Send queues a job on its key's lane. It never blocks: intake is bounded
// before it, where a caller can be told.
func (l *Lanes) Send(key string, j Job) { l.sys.sys.Root.Send(l.pid, submitted{key, j}) }

// Stop waits until every open job has run, or until ctx ends, which ends the
// contexts of the jobs that are left. No job may be sent after it.
func (l *Lanes) Stop(ctx context.Context) error {
	drained := make(chan struct{})
	l.sys.sys.Root.Send(l.pid, drain{drained})
	defer func() {
		l.cancel()
		l.sys.sys.Root.Stop(l.pid)
		<-l.gone
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: jobs are still running: %w", l.pid.Id, ctx.Err())
	}
}

// parent hands jobs to its lanes and counts them.
type parent struct {
	sys     *System
	ctx     context.Context
	gone    chan struct{}
	open    map[string]*lane
	idle    []*actor.PID
	waiters []chan struct{}
}

type lane struct {
	pid  *actor.PID
	jobs int
}

func (p *parent) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case submitted:
		l := p.open[m.key]
		if l == nil {
			l = &lane{pid: p.child(c)}
			p.open[m.key] = l
		}
		l.jobs++
		c.Send(l.pid, m)
	case finished:
		l := p.open[m.key]
		if l.jobs--; l.jobs > 0 {
			break
		}
		delete(p.open, m.key)
		if len(p.idle) < maxIdle {
			p.idle = append(p.idle, l.pid)
		} else {
			c.Stop(l.pid)
		}
	case drain:
		p.waiters = append(p.waiters, m.drained)
	case *actor.Stopped:
		close(p.gone)
	}
	if len(p.open) == 0 {
		for _, w := range p.waiters {
			close(w)
		}
		p.waiters = nil
	}
}

// child is one that no key has.
func (p *parent) child(c actor.Context) *actor.PID {
	if last := len(p.idle) - 1; last >= 0 {
		pid := p.idle[last]
		p.idle = p.idle[:last]
		return pid
	}
	w := &worker{ctx: p.ctx, parent: c.Self()}
	return c.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }, actor.WithDispatcher(p.sys.warm)))
}

// worker is one lane.
type worker struct {
	ctx    context.Context
	parent *actor.PID
}

func (w *worker) Receive(c actor.Context) {
	m, ok := c.Message().(submitted)
	if !ok {
		return
	}
	defer func() {
		// The count must come right whatever the job did.
		c.Send(w.parent, finished{m.key})
		if reason := recover(); reason != nil {
			m.job.Failed(reason)
			panic(reason) // the supervisor logs it and resumes the lane
		}
	}()
	m.job.Run(w.ctx)
}
