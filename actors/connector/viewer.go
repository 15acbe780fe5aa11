package connector

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// snapshotTimeout is the time limit for reading all pending requests once.
const snapshotTimeout = 30 * time.Second

// A viewer whose connection knows several servers reads all pending requests again at intervals. An
// interval is snapshotEvery plus, for each pending request, snapshotEach.
const (
	snapshotEvery = 8 * time.Second
	snapshotEach  = 4 * time.Millisecond
)

// untilSnapshot returns the pause between one snapshot of the pending requests and the next. The
// parameter pending is the number of requests in the snapshot. After a failed snapshot the pause is
// 0. The pause does not depend on how long the snapshot took, because snapshots are slow while
// servers fail, and the next one is then needed soon.
func untilSnapshot(pending int, err error) time.Duration {
	if err != nil {
		return 0
	}
	return snapshotEvery + time.Duration(pending)*snapshotEach
}

// Viewer receives all pending requests, and then each change of a request once, in the order of the
// request's revisions. After a reconnect, the viewer reads all pending requests again. It also reads
// the outcomes of the requests that were decided during the interruption.
type Viewer struct {
	desk *Desk
	show func(schemas.Prompt)
	log  *slog.Logger

	lanes *actors.Lanes
	stops []func()
	tasks sync.WaitGroup

	mu    sync.Mutex
	shown map[string]shownVersion
	next  time.Time // the time at which the pending requests must be read next
}

// shownVersion describes the newest version of a request that was shown.
type shownVersion struct {
	revision uint64
	open     bool // whether the request was pending in that version
}

// View starts a viewer, which calls the function show for each version of a request. The calls for
// one request come one after another, and those for different requests in parallel. The function show
// must not block for long. View fails if the pending requests cannot be read before ctx ends.
func View(ctx context.Context, sys *actors.System, conn *bus.Conn, connector string, log *slog.Logger, show func(schemas.Prompt)) (*Viewer, error) {
	v := &Viewer{
		desk: NewDesk(conn, connector), show: show, log: log,
		lanes: sys.Lanes("viewer-" + connector), shown: map[string]shownVersion{},
	}
	// The viewer subscribes before it reads the requests, so that it misses no change in between.
	stop, err := conn.Subscribe(schemas.ViewSubject("*", "*"), v.onView)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.Background())
	v.stops = append(v.stops, stop, cancel, conn.OnReconnect(func() {
		v.tasks.Go(func() { v.snapshot(background) })
	}))
	v.stops = append(v.stops, conn.Pulse(func(ctx context.Context) error {
		if v.due() {
			v.tasks.Go(func() { v.snapshot(background) })
		}
		_, err := v.desk.Settings(ctx)
		return err
	}))
	if _, err := v.read(ctx); err != nil {
		v.Stop(ctx)
		return nil, err
	}
	return v, nil
}

// due reports whether the viewer must read the pending requests again although its connection was
// never interrupted. It must do so at intervals, because messages get lost while servers cannot reach
// each other.
func (v *Viewer) due() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Now().Before(v.next) {
		return false
	}
	v.next = time.Now().Add(snapshotTimeout) // until then, no other goroutine starts a snapshot, unless this one ends earlier
	return true
}

func (v *Viewer) snapshot(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	pending, err := v.read(ctx)
	if err != nil && ctx.Err() == nil {
		v.log.Warn("viewer: the pending requests could not be read; trying again", "error", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.next = time.Now().Add(untilSnapshot(pending, err))
}

// read shows all pending requests, page by page, and returns their number. It also queues the
// outcomes of those requests that the viewer has last shown as pending and that are decided now.
func (v *Viewer) read(ctx context.Context) (pending int, err error) {
	ended := v.pendingKeys()
	err = v.desk.EachPending(ctx, schemas.Query{}, func(page []schemas.Prompt) error {
		pending += len(page)
		for _, p := range page {
			delete(ended, p.Key())
		}
		return v.showPage(ctx, page)
	})
	if err != nil {
		return pending, err
	}
	for key := range ended {
		session, id, _ := strings.Cut(key, ".")
		p, _, err := v.desk.Show(ctx, session, id)
		if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
			continue // the request's record is no longer kept
		}
		if err != nil {
			return pending, err
		}
		v.enqueue(p)
	}
	return pending, nil
}

// showPage shows a page of requests, and waits until all of them are shown. Without this wait,
// requests would pile up in memory if the function show were slow.
func (v *Viewer) showPage(ctx context.Context, page []schemas.Prompt) error {
	done := make(chan struct{}, len(page))
	for _, p := range page {
		v.lanes.Send(p.Key(), viewJob{v, p, done})
	}
	for range page {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (v *Viewer) pendingKeys() map[string]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	open := map[string]bool{}
	for key, s := range v.shown {
		if s.open {
			open[key] = true
		}
	}
	return open
}

func (v *Viewer) onView(m bus.Message) {
	if key, ok := schemas.Tokens(m.Subject, "view", 2); ok && v.isKnown(schemas.Key(key[0], key[1]), m.Revision) {
		return // most messages arrive twice: at once, and a second time from the outbox
	}
	var p schemas.Prompt
	if err := schemas.Load(m.Data, &p); err != nil {
		v.log.Warn("viewer: a malformed view was ignored", "error", err)
		return
	}
	v.enqueue(p)
}

func (v *Viewer) enqueue(p schemas.Prompt) { v.lanes.Send(p.Key(), viewJob{v, p, nil}) }

type viewJob struct {
	*Viewer
	prompt schemas.Prompt
	done   chan<- struct{} // gets a value after the job, and so needs a buffer; may be nil
}

func (j viewJob) Run(context.Context) {
	if j.done != nil {
		defer func() { j.done <- struct{}{} }()
	}
	if j.recordIfNewer() {
		j.show(j.prompt)
	}
}

func (viewJob) Failed(any) {}

// isKnown reports whether this version of a request, or a newer version, was shown. A message whose
// header has no revision has the revision 0 and counts as new.
func (v *Viewer) isKnown(key string, revision uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return revision != 0 && revision <= v.shown[key].revision
}

// recordIfNewer reports whether the version is newer than the last shown version, and if so,
// records it as shown. An hour after a request's decision, recordIfNewer deletes its notes about
// the request, because no older version can arrive after that time.
func (j viewJob) recordIfNewer() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := j.prompt.Key()
	if j.prompt.Revision <= j.shown[key].revision {
		return false
	}
	j.shown[key] = shownVersion{j.prompt.Revision, j.prompt.Decision == nil}
	if j.prompt.Decision != nil {
		time.AfterFunc(time.Hour, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(j.shown, key)
		})
	}
	return true
}

// Stop shows the queued requests and then ends the viewer. If ctx ends first, it returns an error.
func (v *Viewer) Stop(ctx context.Context) error {
	for _, stop := range v.stops {
		stop()
	}
	v.tasks.Wait()
	return v.lanes.Stop(ctx)
}
