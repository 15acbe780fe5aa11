package actors

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// Job is one message for a lane.
type Job interface {
	// Run does the work. If the time for Lanes.Stop runs out, ctx ends early.
	Run(ctx context.Context)
	// Failed is called with the panic's value if Run panics. If a caller waits for the job, Failed must
	// reply to it.
	Failed(reason any)
}

// Lanes runs jobs. Jobs with the same key run in the order in which they were sent, and jobs with
// different keys run in parallel.
//
// Each key with queued or running jobs has a child actor. A child without jobs is kept for another key,
// or stopped if maxIdle children are already idle. The parent stops the child, because a child that
// stopped itself would lose the jobs that are sent before the parent notices.
type Lanes struct {
	sys    *System
	pid    *actor.PID
	cancel context.CancelFunc
	gone   chan struct{}
}

// The messages that the parent actor of a set of lanes handles.
type (
	submitted struct {
		key string
		job Job
	}
	finished struct{ key string }
	drain    struct{ drained chan struct{} }
)

// maxIdle is the largest number of idle children that a parent keeps.
const maxIdle = 64

// Lanes starts a set of lanes. The parameter name becomes the name of the set's parent actor.
func (s *System) Lanes(name string) *Lanes {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lanes{sys: s, cancel: cancel, gone: make(chan struct{})}
	p := &parent{sys: s, ctx: ctx, gone: l.gone, open: map[string]*lane{}}
	props := actor.PropsFromProducer(func() actor.Actor { return p },
		actor.WithDispatcher(s.pool), actor.WithSupervisor(resume(s.log)), actor.WithGuardian(resume(s.log)))
	l.pid = s.sys.Root.SpawnPrefix(props, name)
	return l
}

// Send queues a job on the lane of its key. It never blocks and never refuses a job, so the caller
// must limit the number of jobs.
func (l *Lanes) Send(key string, j Job) { l.sys.sys.Root.Send(l.pid, submitted{key, j}) }

// Stop waits until every job has run. If ctx ends first, Stop cancels the context of the
// remaining jobs and returns an error. No job may be sent after Stop is called.
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

func (p *parent) child(c actor.Context) *actor.PID {
	if last := len(p.idle) - 1; last >= 0 {
		pid := p.idle[last]
		p.idle = p.idle[:last]
		return pid
	}
	w := &worker{ctx: p.ctx, parent: c.Self()}
	return c.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }, actor.WithDispatcher(p.sys.pool)))
}

// worker is the actor of one lane.
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
		// Even a job that has panicked counts as finished.
		c.Send(w.parent, finished{m.key})
		if reason := recover(); reason != nil {
			m.job.Failed(reason)
			panic(reason) // the supervisor logs the panic and resumes the lane
		}
	}()
	m.job.Run(w.ctx)
}
