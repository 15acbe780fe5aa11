package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed"
)

// Options configure Run.
type Options struct {
	Dir      string // the directory in which Run makes a temporary directory for the stores, which it removes at the end
	Quick    bool   // whether to measure fewer requests in one round, and at most 1,000 pending requests
	Version  string // nod's version
	Progress func(step string)
}

// size has the numbers of rounds and of requests of each measurement.
type size struct {
	rounds   int   // the rounds of which each result is the median
	one      int   // the number of requests that are sent one after another
	many     int   // the number of requests of all sessions together
	sessions []int // the numbers of sessions that ask at the same time
	pending  []int // the numbers of pending requests
}

func (o *Options) size() size {
	if o.Quick {
		return size{1, 40, 1000, []int{64, 1000}, []int{1000}}
	}
	return size{5, 100, 3000, []int{64, 1000}, []int{10_000, 100_000}}
}

// Run measures two sides in turns. One side is nod with a server in SyncGroup. The other side is
// callbacks on bare NATS with a server that syncs each write. When ctx ends, it stops and returns
// ctx's error.
func Run(ctx context.Context, o Options) (Report, error) { return measure(ctx, o, o.size()) }

func measure(ctx context.Context, o Options, s size) (Report, error) {
	report := newReport(o.Version, o.Quick)
	dir, err := os.MkdirTemp(o.Dir, "nod-bench-")
	if err != nil {
		return report, fmt.Errorf("make a directory for the measures: %w", err)
	}
	r := &run{Options: o, size: s, dir: dir, report: &report}
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	err = r.all(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	err = bus.JoinErrors(err, r.stop(), os.RemoveAll(dir))
	report.end()
	return report, err
}

// run is the state of one call of Run.
type run struct {
	Options
	size   size
	dir    string
	report *Report
	cancel context.CancelCauseFunc

	nod    *Nod
	bare   *Bare
	server *bus.Server
}

func (r *run) all(ctx context.Context) (err error) {
	r.Progress("the disk")
	if r.report.Disk, err = measureDisk(ctx, r.dir); err != nil {
		return err
	}
	if err := r.start(ctx, true); err != nil {
		return err
	}
	if err := r.decisions(ctx); err != nil {
		return err
	}
	submitted := 0
	for _, n := range r.size.pending {
		if err := r.pending(ctx, n, n-submitted); err != nil {
			return err
		}
		submitted = n
		if err := r.restart(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// fail ends the run with an error from background work.
func (r *run) fail(err error) { r.cancel(err) }

// start starts nod and bare NATS. If the parameter answers is true, nod's approver answers the
// requests that are shown.
func (r *run) start(ctx context.Context, answers bool) (err error) {
	if err := r.startBare(ctx); err != nil {
		return err
	}
	r.nod, err = r.startNod(ctx, answers)
	return err
}

func (r *run) startNod(ctx context.Context, answers bool) (*Nod, error) {
	return startNod(ctx, embed.Options{DataDir: filepath.Join(r.dir, "nod"), Log: slog.New(slog.DiscardHandler)}, r.fail, answers)
}

func (r *run) startBare(ctx context.Context) (err error) {
	r.server, err = bus.Embed(ctx, bus.EmbedOptions{DataDir: filepath.Join(r.dir, "bare"), SyncInterval: bus.SyncAlways, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		r.bare, err = StartBare(ctx, r.server.URL(), r.fail)
	}
	return err
}

func (r *run) stop() error { return errors.Join(r.stopNod(), r.stopBare()) }

func (r *run) stopNod() (err error) {
	if r.nod != nil {
		err = r.nod.Close()
	}
	r.nod = nil
	return err
}

func (r *run) stopBare() (err error) {
	if r.bare != nil {
		r.bare.Close()
	}
	if r.server != nil {
		err = r.server.Close()
	}
	r.bare, r.server = nil, nil
	return err
}

// decisions measures decisions by rules and by people, one at a time and many at once.
func (r *run) decisions(ctx context.Context) error {
	for _, kind := range []struct {
		name      string
		nod, bare Work
	}{
		{"automatic decision", r.nod.Automatic, r.bare.Automatic},
		{"a person's decision", r.nod.Person, r.bare.Person},
	} {
		r.Progress(kind.name + ", one at a time")
		nod, bare, err := r.inTurns(kind.nod, kind.bare, func(w Work) (Cost, error) { return OneByOne(ctx, w, r.size.one) })
		if err != nil {
			return err
		}
		r.add(eachRow(kind.name+", one at a time", nod, bare))
		for _, sessions := range r.size.sessions {
			name := fmt.Sprintf("%s, %s sessions at once", kind.name, thousands(sessions))
			r.Progress(name)
			nod, bare, err := r.inTurns(kind.nod, kind.bare, func(w Work) (Cost, error) { return AtOnce(ctx, w, sessions, max(r.size.many, 3*sessions)) })
			if err != nil {
				return err
			}
			r.add(rateRow(name, nod, bare))
		}
	}
	return nil
}

// inTurns measures nod and bare NATS in turns, so that a change in the machine's speed affects both.
// It discards the first measurement of each side.
func (r *run) inTurns(nod, bare Work, measure func(Work) (Cost, error)) (Cost, Cost, error) {
	var costs [2][]Cost
	for round := range r.size.rounds + 1 {
		for i, w := range []Work{nod, bare} {
			untilIdle()
			c, err := measure(w)
			if err != nil {
				return Cost{}, Cost{}, err
			}
			if round > 0 {
				costs[i] = append(costs[i], c)
			}
		}
	}
	return medianCost(costs[0]), medianCost(costs[1]), nil
}

// submitters is the number of sessions that send requests at the same time to make pending requests.
const submitters = 64

// perSession is the number of pending requests of a session. It is below nod's limit of 4,096.
const perSession = 1000

// pending measures a person's decision while n requests are pending. Before that, it submits the
// missing requests, whose number is the parameter more.
func (r *run) pending(ctx context.Context, n, more int) error {
	r.Progress(fmt.Sprintf("%s pending requests are submitted", thousands(n)))
	session := func(_, i int) string { return strconv.Itoa((n - more + i) / perSession) }
	nod, err := atOnce(ctx, r.nod.Submit, more, submitters, session)
	if err != nil {
		return err
	}
	bare, err := atOnce(ctx, r.bare.Submit, more, submitters, session)
	if err != nil {
		return err
	}
	r.add(rateRow("requests that stay pending, up to "+thousands(n), nod, bare))
	r.Progress(fmt.Sprintf("a person's decision with %s pending", thousands(n)))
	nod, bare, err = r.inTurns(r.nod.Person, r.bare.Person, func(w Work) (Cost, error) { return OneByOne(ctx, w, r.size.one) })
	if err != nil {
		return err
	}
	r.add(eachRow(fmt.Sprintf("a person's decision, %s pending", thousands(n)), nod, bare))
	return nil
}

// restart measures, with n pending requests, how long each side takes from its start to a person's
// first decision. For this measurement, nod's approver does not read the pending requests. After it,
// restart measures listings of the pending requests and the memory that the requests take. With the
// largest n, it also measures a freeze.
func (r *run) restart(ctx context.Context, n int) error {
	r.Progress(fmt.Sprintf("restart with %s pending", thousands(n)))
	if err := r.stop(); err != nil {
		return err
	}
	empty, began := heap(), time.Now()
	if err := r.startBare(ctx); err != nil {
		return err
	}
	if err := r.bare.Person(ctx, "bench"); err != nil {
		return err
	}
	bare, withBare := time.Since(began), heap()
	began = time.Now()
	var err error
	if r.nod, err = r.startNod(ctx, false); err != nil {
		return err
	}
	if err := r.nod.personWithoutViewer(ctx, "bench"); err != nil {
		return err
	}
	r.add(timeRow(fmt.Sprintf("restart with %s pending, to the first decision", thousands(n)), time.Since(began), bare))
	if err := r.stopNod(); err != nil {
		return err
	}
	if r.nod, err = r.startNod(ctx, true); err != nil {
		return err
	}
	if err := r.pages(ctx, n); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("memory with %s pending", thousands(n)))
	untilIdle() // waits until the approver's viewer has read the pending requests
	r.add(bytesRow(fmt.Sprintf("memory with %s pending, after a restart", thousands(n)), heap()-withBare, withBare-empty))
	if n < r.size.pending[len(r.size.pending)-1] {
		return nil
	}
	return r.freeze(ctx, n)
}

func (r *run) add(row Row) { r.report.Measured = append(r.report.Measured, row) }

// thousands writes a number with a comma before each group of three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
