// Package engine decides and remembers. An engine answers what agents and
// connectors ask, keeps each request's one record by compare-and-set, tells
// what follows from it through the outbox, and acts when a timer fires. Any
// number of engines share the work; nothing undecided is in one's memory.
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

// Options are what an engine needs.
type Options struct {
	// Edge is the connection to the account of agents and connectors; Store to
	// the account of the stores. On a server without accounts they are one.
	Edge, Store *bus.Conn
	Replicas    int
	System      *actors.System
	Version     string
	// VoiceTimeout overrides the settings' where it is not 0.
	VoiceTimeout time.Duration
	// Host and Home are this machine's name, as requests made on it say it, and
	// its user's home. Paths of calls from another host are judged without them,
	// and links in them are not followed.
	Host, Home string
	// Own are nod's own files, which agents may not write, besides those at the
	// usual places.
	Own []string
	// Projects are the rules of projects on this machine; nil is none.
	Projects ProjectRules
	// Lease is how long a client or a worker counts as there after it last said
	// so; 0 is 30 s. The broker ends it, whoever is alive.
	Lease time.Duration
	// AckWait is how long an engine may take over a change or a timer, or a worker over a
	// prompt that it has claimed, before another gets it; 0 is 10 s. It counts from the
	// last sign of life. It is the queues' own: all engines give the same.
	AckWait time.Duration
	// Wall is this machine's clock; nil is time.Now. It only tells that a reading of
	// the broker's clock may hold no more: what is later is told by the monotonic
	// clock. Tests set it.
	Wall func() time.Time
	Log  *slog.Logger
}

const (
	// openCalls bounds the calls an engine has open; more are told to ask again.
	openCalls = 4096
	// callTimeout bounds the work on one call. It is longer than an asker's hop:
	// a broker's election takes up to 10 s, and the asker asks again meanwhile.
	callTimeout = 15 * time.Second
	// settingsEvery is how often settings are read whatever the watch says, and
	// staleAfter how long an engine that cannot read them allows by itself.
	settingsEvery = 5 * time.Second
	staleAfter    = 15 * time.Second
	// sweepEvery is the pause between sweeps.
	sweepEvery = 10 * time.Minute

	defaultLease   = 30 * time.Second
	defaultAckWait = 10 * time.Second
)

// Engine is one running engine.
type Engine struct {
	Options
	store   *bus.Store
	prompts *bus.Prompts

	records  *actors.Lanes // by record: asks, answers, withdrawals, due timers
	sessions *actors.Lanes // by session: presence; by connector: its workers
	outbox   *actors.Lanes // by record: what follows from its newest version

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
	background context.Context // of what goes on beside calls, until Stop
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
}

// Start opens the stores, making what is missing, and serves. It waits for
// JetStream as long as ctx allows.
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

// run starts what works in the background, and then answers calls.
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

// watch hears of changed settings and sessions, and of who is active, from now on.
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
	e.cache.changed("", newest) // of what came before nothing is known
	// What changed before the watch was there.
	return errors.Join(e.readSettings(ctx), e.readFrozen(ctx))
}

// every calls f each time that d has passed, until ctx ends.
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

// Stop takes no new work, answers every open call, and returns when the last
// job has run or ctx ends. The connections and the actor system stay open.
func (e *Engine) Stop(ctx context.Context) error {
	err := e.service.Drain(ctx)
	return errors.Join(err, e.halt(ctx))
}

// halt ends what run has started.
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

// stats are added to the service's statistics.
func (e *Engine) stats() any {
	return map[string]any{"settings_revision": e.settings.now().revision, "frozen_revision": e.freezes.obeyed(), "sessions_revision": e.cache.newest()}
}

// endpoints are the subjects that an engine answers.
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

// call is a bus call as a job: answered exactly once, whatever happens.
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

// delivery is a queue's message as a job: it comes again unless it was done.
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

// retryAfter is 100 ms, doubled with each time up to a minute.
func retryAfter(times uint64) time.Duration {
	return min(100*time.Millisecond<<min(times, 10), time.Minute)
}
