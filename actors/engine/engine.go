// Package engine decides requests and owns their records. An engine replies to agents
// and connectors, changes each request's one record by compare-and-set, sends out the
// effects of each change through the outbox, and acts when a timer fires. Any number of
// engines share the work; no pending request is held in an engine's memory alone.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Options configure an engine.
type Options struct {
	// Edge is the connection to the account of agents and connectors, Store the one to
	// the account of the stores. On a server without accounts they are the same.
	Edge, Store *bus.Conn
	Replicas    int
	System      *actors.System
	Version     string
	// VoiceTimeout, if not 0, replaces the voice timeout of the settings.
	VoiceTimeout time.Duration
	// Host is this machine's name, as in the requests made on it; Home is its user's home
	// directory. The policy checks a call from another host without Home, and does not
	// follow links in its paths.
	Host, Home string
	// Own are nod's own files besides those at the usual places. Agents may not write
	// them.
	Own []string
	// Projects reads the rules of projects on this machine; nil means that they have none.
	Projects ProjectRules
	// Lease is how long a client or a worker counts as present after its last sign of
	// life; 0 is 30 s. The broker ends a lease, even if no engine runs.
	Lease time.Duration
	// AckWait is how long after the last sign of life a change or a timer is given to
	// another engine, or a claimed prompt to another worker; 0 is 10 s. The queues have one
	// value, so all engines must give the same.
	AckWait time.Duration
	// Wall is this machine's clock; nil is time.Now. It only serves to detect that the
	// clock was set or that the machine slept; time is measured by the monotonic clock.
	// Tests set it.
	Wall func() time.Time
	Log  *slog.Logger
}

const (
	// openCalls bounds the calls that an engine handles at a time. Further callers get
	// UNAVAILABLE, and try again.
	openCalls = 4096
	// callTimeout bounds the work on one call. It is longer than the agent's timeout for a
	// hop: electing a leader takes the broker up to 10 s, and the agent repeats the call
	// meanwhile.
	callTimeout = 15 * time.Second
	// settingsEvery is how often settings are read even if the watch reports no change.
	// An engine that cannot read them allows nothing without a person after staleAfter.
	settingsEvery = 5 * time.Second
	staleAfter    = 15 * time.Second
	// sweepEvery is the pause between sweeps.
	sweepEvery = 10 * time.Minute

	defaultLease   = 30 * time.Second
	defaultAckWait = 10 * time.Second
)

// Engine is a running engine.
type Engine struct {
	Options
	store   *bus.Store
	prompts *bus.Prompts

	records  *actors.Lanes // by record: requests, answers, withdrawals, fired timers
	sessions *actors.Lanes // by call
	outbox   *actors.Lanes // by record: the effects of its newest version

	settings settings
	retained retention
	freezes  freezeState
	clock    clock
	cache    sessionCache
	standing standingCache
	activity activityBuffer
	lines    promptLines
	ahead    scanCache
	counts   openCounts
	service  *bus.Service

	stop       []func()
	background context.Context // of the work beside calls; ends with Stop
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
}

// Start opens the stores, creates missing ones, and serves. It waits for JetStream until
// ctx ends.
func Start(ctx context.Context, o Options) (*Engine, error) {
	o.Lease, o.AckWait = cmp.Or(o.Lease, defaultLease), cmp.Or(o.AckWait, defaultAckWait)
	if o.Wall == nil {
		o.Wall = time.Now
	}
	e := &Engine{Options: o}
	var err error
	if e.store, err = bus.OpenStore(ctx, o.Store, o.Replicas); err != nil {
		return nil, err
	}
	if e.prompts, err = bus.OpenPrompts(ctx, o.Store, o.Replicas); err != nil {
		return nil, err
	}
	e.prompts.AckWait = e.AckWait
	e.clock.read, e.clock.wall = e.store.ReadClock, o.Wall
	if err := bus.Retry(ctx, e.clock.set); err != nil {
		return nil, err
	}
	if err := errors.Join(e.readSettings(ctx), e.readFrozen(ctx)); err != nil {
		return nil, err
	}
	e.records, e.sessions, e.outbox = o.System.Lanes("engine-records"), o.System.Lanes("engine-sessions"), o.System.Lanes("engine-outbox")
	if err := e.run(ctx); err != nil {
		return nil, errors.Join(err, e.halt(ctx))
	}
	return e, nil
}

// run starts the background work, and then serves calls.
func (e *Engine) run(ctx context.Context) error {
	background, cancel := context.WithCancel(context.Background())
	e.background, e.cancel = background, cancel
	e.countOpen()
	if err := e.watch(ctx, background); err != nil {
		return err
	}
	e.every(background, settingsEvery, func(ctx context.Context) { e.refresh(ctx) })
	e.every(background, clockEvery, e.readClock)
	e.retainLog(ctx)
	e.every(background, settingsEvery, e.retainLog)
	e.every(background, sweepEvery, e.sweep)
	e.tasks.Go(func() { e.sweep(background) })
	for _, q := range []struct {
		open   func(context.Context, time.Duration) (*bus.Queue, error)
		handle func(*bus.Delivery)
	}{{e.store.Records.Outbox, e.takeVersion}, {e.store.Records.Due, e.takeDue}} {
		queue, err := q.open(ctx, e.AckWait)
		if err != nil {
			return err
		}
		stop, err := queue.Consume(q.handle)
		if err != nil {
			return err
		}
		e.stop = append(e.stop, stop)
	}
	var err error
	e.service, err = e.Edge.Serve(bus.ServiceOptions{
		Name: "nod-engine", Version: e.Version, Description: "decides and remembers",
		Open: openCalls, Stats: e.stats,
	}, e.endpoints()...)
	if err != nil {
		return err
	}
	e.every(background, settingsEvery, e.renewAlive)
	e.every(background, storeActiveEvery, e.storeActivities)
	return e.announceAlive(ctx)
}

// watch starts to follow changes of settings, sessions and presence.
func (e *Engine) watch(ctx, background context.Context) error {
	for bucket, changed := range map[*bus.Bucket]func(key string, revision uint64){
		e.store.Settings: func(string, uint64) { e.settingsChanged() },
		e.store.Sessions: func(key string, revision uint64) {
			e.cache.changed(key, revision)
			e.standing.changed(key, revision)
		},
		e.store.Presence: func(key string, revision uint64) {
			e.activity.heard(key, revision)
			e.cache.forget(key)
		},
	} {
		if err := bus.Retry(ctx, func(context.Context) error { return bucket.Watch(background, changed) }); err != nil {
			return err
		}
	}
	e.stop = append(e.stop, e.Store.OnReconnect(e.cache.missed), e.Store.OnReconnect(e.standing.missed), e.Store.OnReconnect(e.activity.missed), e.Store.OnReconnect(e.settingsChanged))
	var newest uint64
	err := bus.Retry(ctx, func(ctx context.Context) (err error) {
		newest, err = e.store.Sessions.Newest(ctx)
		return err
	})
	if err != nil {
		return err
	}
	e.cache.changed("", newest) // changes before the watch are not reported
	// Read settings and freezes again: they may have changed before the watch began.
	return errors.Join(e.readSettings(ctx), e.readFrozen(ctx))
}

// every calls f each time d has passed, until ctx ends.
func (e *Engine) every(ctx context.Context, d time.Duration, f func(context.Context)) {
	e.tasks.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Stop takes no new work, replies to every open call, and returns after the last job or
// when ctx ends. The connections and the actor system stay open.
func (e *Engine) Stop(ctx context.Context) error {
	err := e.service.Drain(ctx)
	return errors.Join(err, e.halt(ctx))
}

// halt ends the work that run has started.
func (e *Engine) halt(ctx context.Context) error {
	for _, stop := range e.stop {
		stop()
	}
	if e.cancel != nil {
		e.cancel()
	}
	e.tasks.Wait()
	if e.service != nil {
		e.announceStop(ctx)
	}
	return errors.Join(e.records.Stop(ctx), e.sessions.Stop(ctx), e.outbox.Stop(ctx))
}

// stats returns the engine's revisions, for the service's statistics.
func (e *Engine) stats() any {
	return map[string]any{"settings_revision": e.settings.now().revision, "frozen_revision": e.freezes.obeyed(), "sessions_revision": e.cache.newest()}
}

// endpoints are the subjects that an engine serves.
func (e *Engine) endpoints() []bus.Endpoint {
	byRecord := func(t []string) string { return schemas.Key(t[1], t[2]) }
	byPeer := func(t []string) string { return t[0] + "." + bus.NewID() }
	lane := func(l *actors.Lanes, key func([]string) string, run func(context.Context, *bus.Call) error) func(*bus.Call) {
		return func(c *bus.Call) { l.Send(key(c.Tokens), callJob{c, run}) }
	}
	return []bus.Endpoint{
		{Name: "request", Verb: "request", Tokens: 3, Handle: lane(e.records, byRecord, e.ask)},
		{Name: "withdraw", Verb: "withdraw", Tokens: 3, Handle: lane(e.records, byRecord, e.withdraw)},
		{Name: "grant", Verb: "grant", Tokens: 1, Handle: lane(e.sessions, byPeer, e.share)},
		{Name: "gate", Verb: "gate", Tokens: 1, Handle: lane(e.sessions, byPeer, e.gate)},
		{Name: "session", Verb: "session", Tokens: 1, Handle: lane(e.sessions, byPeer, e.ownSession)},
		{Name: "passed", Verb: "passed", Tokens: 1, Handle: lane(e.sessions, byPeer, e.hostResolved)},
		{Name: "await", Verb: "await", Tokens: 1, Handle: lane(e.sessions, byPeer, e.await)},
		{Name: "answer", Verb: "answer", Tokens: 3, Handle: lane(e.records, byRecord, e.answer)},
		{Name: "presence", Verb: "presence", Tokens: 1, Handle: lane(e.sessions, byPeer, e.presence)},
		{Name: "register", Verb: "register", Tokens: 1, Handle: lane(e.sessions, byPeer, e.register)},
		{Name: "shown", Verb: "shown", Tokens: 1, Handle: lane(e.sessions, byPeer, e.shown)},
		{Name: "delivery", Verb: "delivery", Tokens: 1, Handle: lane(e.sessions, byPeer, e.delivery)},
		{Name: "query", Verb: "query", Tokens: 2, Handle: lane(e.sessions, byPeer, e.query)},
		{Name: "manage", Verb: "manage", Tokens: 2, Handle: lane(e.sessions, byPeer, e.manage)},
	}
}

// callJob handles a bus call in a lane. The call gets exactly one reply, even after a
// panic.
type callJob struct {
	*bus.Call
	run func(context.Context, *bus.Call) error
}

func (c callJob) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.run(ctx, c.Call); err != nil {
		c.Fail(err)
	}
}

func (c callJob) Failed(reason any) { c.Fail(fmt.Errorf("panic: %v", reason)) }

// deliveryJob handles a queue's message in a lane. The message is delivered again unless
// the job succeeds.
type deliveryJob struct {
	*bus.Delivery
	log *slog.Logger
	run func(context.Context) error
}

func (d deliveryJob) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.run(ctx); err != nil {
		if !errors.Is(err, errRearmed) {
			d.log.Warn("engine: what follows from a record is tried again", "subject", d.Subject, "times", d.Times, "error", err)
		}
		d.Again(retryAfter(d.Times))
		return
	}
	d.Done()
}

func (d deliveryJob) Failed(any) { d.Again(retryAfter(d.Times)) }

// retryAfter returns the pause before the next delivery: 100 ms, doubled with each
// delivery, at most a minute.
func retryAfter(times uint64) time.Duration {
	return min(100*time.Millisecond<<min(times, 10), time.Minute)
}
