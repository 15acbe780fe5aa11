// Package engine decides requests and owns their records. An engine replies to agents and connectors,
// changes each record by compare-and-set, publishes each change through the outbox, and acts when a
// timer fires. Any number of engines can share the work, because all pending requests are in the
// stores.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

// Options configure an engine.
type Options struct {
	// Edge is the connection to the NATS account of agents and connectors, and Store is the connection
	// to the account of the stores. On a server without accounts they are the same connection.
	Edge, Store *bus.Conn
	Replicas    int
	System      *actors.System
	Version     string
	// VoiceTimeout, if not 0, replaces the voice timeout of the settings.
	VoiceTimeout time.Duration
	// Host is this machine's name in requests from this machine, and Home is the home directory of its
	// user. For a call from another host, the policy uses neither Home nor the symbolic links of this
	// machine.
	Host, Home string
	// Own lists further files and directories of nod, such as an unusual data directory. The
	// policy denies agents to write them.
	Own []string
	// Channels describe the settings of the people connectors that this engine knows. The engine
	// refuses settings for an unknown connector. If another engine stores such settings, this engine
	// keeps its earlier settings, and fails at its next start.
	Channels []schemas.ChannelSettings
	// Projects reads the rules of projects on this machine; nil means that projects have no rules.
	Projects ProjectRules
	// Lease is how long a client or a worker counts as present after its last renewal; 0 means
	// 30 s. The broker ends the lease, even without a running engine.
	Lease time.Duration
	// AckWait is how long a queue waits for a sign of life from the engine or worker that
	// handles a message. After that time the queue delivers the message again. 0 means 10 s.
	// All engines share the queues, so they must have the same value.
	AckWait time.Duration
	// Wall is this machine's clock; nil means time.Now. The engine compares it with the monotonic clock,
	// to notice that the clock was set or that the machine slept. Only tests set it.
	Wall func() time.Time
	// RecordsKept is the age from which on decisions are listed from the log instead of the records; 0
	// means the age at which the broker removes records. Only tests set it.
	RecordsKept time.Duration
	// Logged, if not nil, is called with each entry that this engine has added to the log. It
	// must not block.
	Logged func(*schemas.LogEntry)
	// Traces, if not nil, chooses which requests are traced and takes their spans.
	Traces traces.Tracer
	Log    *slog.Logger
}

const (
	// openCalls bounds the calls that an engine handles at a time. Further calls get
	// UNAVAILABLE.
	openCalls = 4096
	// callTimeout bounds the work on one call. It is longer than a caller waits, because the broker may
	// take 10 s to elect a leader. Meanwhile the caller repeats the call.
	callTimeout = 15 * time.Second
	// settingsEvery is the interval at which an engine reads settings and freezes even if the watch
	// reports no change. An engine that cannot read them for staleAfter allows nothing without a
	// person.
	settingsEvery = 5 * time.Second
	staleAfter    = 15 * time.Second
	// sweepEvery is the interval of the sweep, which repairs records that lost a timer or a
	// prompt.
	sweepEvery = 10 * time.Minute

	defaultLease   = 30 * time.Second
	defaultAckWait = 10 * time.Second
)

// Engine is a running engine. Each field depends only on the fields above it.
type Engine struct {
	*base
	holdings    *holdings
	life        *recordLife
	effects     *effects
	intake      *intake
	withdrawals *withdrawals
	connectors  *connectors
	admin       *admin

	stop   []func()
	cancel context.CancelFunc
}

// base holds the stores, connections and caches that all parts of an engine share.
type base struct {
	Options
	store   *bus.Store
	prompts *bus.Prompts

	records  *actors.Lanes // requests, answers, withdrawals and fired timers; one lane per record
	sessions *actors.Lanes // all calls that do not name a request; one lane per call
	outbox   *actors.Lanes // the effects of the newest version of a record; one lane per record

	settings     settings
	freezes      freezeState
	restored     watchedCache[schemas.Restored]
	sessionCache watchedCache[schemas.Session]
	lockCache    watchedCache[*schemas.Lock]
	standing     standingCache
	retained     retention
	clock        clock
	activity     activityBuffer
	counts       openCounts
	service      *bus.Service

	background context.Context // the context of work outside calls; the method Stop cancels it
	tasks      sync.WaitGroup
}

// holdings stores the permissions and standing answers of sessions and agents.
type holdings struct{ *base }

// recordLife changes records: it stores a request as a question or as a waiter of another question,
// decides questions, and publishes decisions.
type recordLife struct {
	*base
	holdings *holdings
}

// effects does the work that follows the change of a record: the outbox, fired timers, the
// order of prompts, and the sweep.
type effects struct {
	*base
	holdings *holdings
	life     *recordLife
	lines    promptLines
	asked    askedLog
}

type intake struct {
	*base
	holdings *holdings
	life     *recordLife
	exposed  exposures
	reading  chan struct{} // has an element for each file that is being read
}

type withdrawals struct {
	*base
	holdings *holdings
	life     *recordLife
}

// connectors serves connectors: people's answers, queries, presence, workers and shown
// prompts.
type connectors struct {
	*base
	holdings *holdings
	life     *recordLife
	effects  *effects
	ahead    scanCache
	// readingLog has an element while a page of the log is made. Only one page is made at a time,
	// because decisions take precedence over the history.
	readingLog chan struct{}
}

type admin struct {
	*base
	holdings *holdings
	effects  *effects
}

func newEngine(o Options) *Engine {
	b := &base{Options: o}
	b.settings.read, b.freezes.read, b.restored.read = b.loadSettings, b.loadFreezes, b.loadRestored
	b.sessionCache.read, b.lockCache.read = b.loadSession, b.loadLock
	h := &holdings{b}
	l := &recordLife{b, h}
	f := &effects{base: b, holdings: h, life: l}
	return &Engine{
		base: b, holdings: h, life: l, effects: f,
		intake:      &intake{base: b, holdings: h, life: l, reading: make(chan struct{}, maxReading)},
		withdrawals: &withdrawals{b, h, l},
		connectors:  &connectors{base: b, holdings: h, life: l, effects: f, readingLog: make(chan struct{}, 1)},
		admin:       &admin{b, h, f},
	}
}

// Start starts an engine: it opens the stores, creates missing ones, and serves calls. It waits
// for JetStream until ctx ends. After an error, all work of the engine has stopped.
func Start(ctx context.Context, o Options) (*Engine, error) {
	o.Lease, o.AckWait = cmp.Or(o.Lease, defaultLease), cmp.Or(o.AckWait, defaultAckWait)
	if o.Wall == nil {
		o.Wall = time.Now
	}
	e := newEngine(o)
	var err error
	if e.store, err = bus.OpenStore(ctx, o.Store, o.Replicas); err != nil {
		return nil, err
	}
	if e.prompts, err = bus.OpenPrompts(ctx, o.Store, o.Replicas); err != nil {
		return nil, err
	}
	e.store.Log.Observe = o.Logged
	e.store.Log.Redact.SecretFile = func(path string) bool {
		p := e.settings.now().policy
		return p == nil || p.IsSecretFile(path)
	}
	e.prompts.AckWait = e.AckWait
	e.clock.read, e.clock.wall = e.store.ReadClock, o.Wall
	if err := bus.Retry(ctx, e.clock.set); err != nil {
		return nil, err
	}
	if err := errors.Join(e.readSettings(ctx), e.readFrozen(ctx), e.readRestored(ctx)); err != nil {
		return nil, err
	}
	e.records, e.sessions, e.outbox = o.System.Lanes("engine-records"), o.System.Lanes("engine-sessions"), o.System.Lanes("engine-outbox")
	if err := e.run(ctx); err != nil {
		return nil, errors.Join(err, e.halt(ctx))
	}
	return e, nil
}

func (e *Engine) run(ctx context.Context) error {
	background, cancel := context.WithCancel(context.Background())
	e.background, e.cancel = background, cancel
	e.effects.countOpen()
	if err := e.watch(ctx, background); err != nil {
		return err
	}
	e.every(background, settingsEvery, func(ctx context.Context) { e.refresh(ctx) })
	e.every(background, clockEvery, e.readClock)
	e.retainLog(ctx)
	e.every(background, settingsEvery, e.retainLog)
	e.tasks.Go(func() { e.checkpointLog(background) })
	e.every(background, checkpointEvery, e.checkpointLog)
	e.every(background, sweepEvery, e.effects.sweep)
	e.tasks.Go(func() { e.effects.sweep(background) })
	for _, q := range []struct {
		open   func(context.Context, time.Duration) (*bus.Queue, error)
		handle func(*bus.Delivery)
	}{{e.store.Records.Outbox, e.effects.takeVersion}, {e.store.Records.Due, e.effects.takeDue}} {
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
	stopWatches, err := e.store.Records.ServeWatches(e.Edge)
	if err != nil {
		return err
	}
	e.stop = append(e.stop, stopWatches)
	e.every(background, settingsEvery, e.renewAlive)
	e.every(background, storeActiveEvery, e.storeActivities)
	return e.announceAlive(ctx)
}

// watch starts to follow changes of settings, sessions and presence.
func (e *Engine) watch(ctx, background context.Context) error {
	for bucket, caches := range map[*bus.Bucket][]watcher{
		e.store.Settings: {&e.settings, &e.freezes, refresher{e.base}},
		e.store.Sessions: {&e.sessionCache, &e.standing},
		e.store.Presence: {&e.lockCache, &e.activity},
	} {
		changed := func(key string, revision uint64) {
			for _, c := range caches {
				c.changed(key, revision)
			}
		}
		if err := bus.Retry(ctx, func(context.Context) error { return bucket.Watch(background, changed) }); err != nil {
			return err
		}
		for _, c := range caches {
			e.stop = append(e.stop, e.Store.OnReconnect(c.missed))
		}
	}
	newest, err := e.store.Sessions.Newest(ctx)
	if err != nil {
		return err
	}
	e.sessionCache.changed("", newest) // the session cache need not handle reports of changes up to the revision in newest
	// Settings and freezes may have changed before the watch began.
	return errors.Join(e.readSettings(ctx), e.readFrozen(ctx))
}

// watcher is notified of the changes in a bucket.
type watcher interface {
	// changed is called after a change of a key.
	changed(key string, revision uint64)
	// missed is called after a reconnection, when reports of changes may have been lost.
	missed()
}

// refresher reads settings and freezes as soon as the broker reports their change.
type refresher struct{ *base }

func (r refresher) changed(string, uint64) { r.refresh(context.Background()) }
func (r refresher) missed()                { r.refresh(context.Background()) }

// every calls f in a goroutine at intervals of d, until ctx ends.
func (e *base) every(ctx context.Context, d time.Duration, f func(context.Context)) {
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

// Stop refuses new work, replies to every open call, and returns after the last job. If ctx
// ends first, it returns an error. The connections and the actor system stay open.
func (e *Engine) Stop(ctx context.Context) error {
	err := e.service.Drain(ctx)
	return errors.Join(err, e.halt(ctx))
}

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
