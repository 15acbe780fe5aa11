// Package bench compares nod with an implementation of the same work in plain NATS callbacks, called
// "bare". Both make the same durable writes, on the same server, in one process:
//
//	go test -run xxx -bench . ./test/bench
//
// The implementations take turns, so that a change in the speed of the machine affects both. These
// metrics are ratios of medians:
//
//   - latency/bare is nod's time for a request over bare's time, one request at a time.
//   - throughput/bare is nod's requests per second over bare's, with 64 sessions that ask
//     at the same time.
//   - latency/writes is nod's time for a request over the time for the durable writes that
//     every design needs: the record with its timer, and the decision.
package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
)

const (
	inFlight = 64
	batch    = 256 // the number of requests in one batch of all sessions
)

func BenchmarkAutomatic(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]bench.Work{"nod": r.nod.Automatic, "bare": r.bare.Automatic})
	})
}

func BenchmarkHuman(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]bench.Work{"nod": r.nod.Person, "bare": r.bare.Person, "writes": r.bare.Writes})
	})
}

// BenchmarkHumanSubscribeSync is like BenchmarkHuman, but the bare implementation's asker waits for its
// decision with SubscribeSync, as NATS's own examples do. SubscribeSync allocates a queue for 65,536
// messages, which is half a megabyte.
func BenchmarkHumanSubscribeSync(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]bench.Work{"nod": r.nod.Person, "bare": r.bare.PersonSync})
	})
}

// bySync runs a benchmark with three kinds of sync. With sync_always, the server syncs to disk before it
// acknowledges a message. With sync_interval, it may sync up to 2 minutes later. With sync_group, nod's
// server syncs many messages at once, and the bare implementation uses sync_always.
func bySync(b *testing.B, run func(*testing.B, *rig)) {
	for name, interval := range map[string]time.Duration{"sync_group": bus.SyncGroup, "sync_always": bus.SyncAlways, "sync_interval": 2 * time.Minute} {
		b.Run(name, func(b *testing.B) { run(b, newRig(b, interval)) })
	}
}

// compare measures each kind of work in turn, first with one request at a time, then with batches of requests
// from many sessions.
func (r *rig) compare(b *testing.B, works map[string]bench.Work) {
	b.Run("one", func(b *testing.B) {
		times := map[string][]time.Duration{}
		for b.Loop() {
			for name, w := range works {
				start := time.Now()
				require.NoError(b, w(r.ctx, "bench"))
				times[name] = append(times[name], time.Since(start))
			}
		}
		b.ReportMetric(float64(median(times["nod"]).Microseconds()), "nod-µs")
		b.ReportMetric(float64(median(times["bare"]).Microseconds()), "bare-µs")
		for name := range works {
			if name != "nod" {
				b.ReportMetric(ratio(times["nod"], times[name]), "latency/"+name)
			}
		}
	})
	b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
		times := map[string][]time.Duration{}
		for b.Loop() {
			for name, w := range works {
				if name != "writes" {
					times[name] = append(times[name], r.batch(b, w))
				}
			}
		}
		b.ReportMetric(batch/median(times["nod"]).Seconds(), "nod/s")
		b.ReportMetric(batch/median(times["bare"]).Seconds(), "bare/s")
		b.ReportMetric(ratio(times["bare"], times["nod"]), "throughput/bare")
	})
}

func (r *rig) batch(b *testing.B, w bench.Work) time.Duration {
	c, err := bench.AtOnce(r.ctx, w, inFlight, batch)
	require.NoError(b, err)
	return time.Duration(batch / c.Rate * float64(time.Second))
}

func median(d []time.Duration) time.Duration { return bench.Median(d) }

func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

// rig is a running nod and a running bare implementation.
type rig struct {
	ctx  context.Context
	nod  *bench.Nod
	bare *bench.Bare
	url  string // the address of a server that has the stores of nod or of the bare implementation
}

func newRig(b *testing.B, interval time.Duration) *rig {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	var over atomic.Bool // if true, a request that fails no longer fails the benchmark
	fail := func(err error) {
		if !over.Load() {
			b.Error(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	o := embed.Options{Log: quiet}
	bare := interval
	if interval == bus.SyncGroup {
		bare = bus.SyncAlways
	}
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: bare, Log: quiet})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Close()) })
	if o.URL = server.URL(); interval == bus.SyncGroup {
		o.URL, o.DataDir = "", b.TempDir()
	}
	r := &rig{ctx: ctx, url: server.URL()}
	r.nod, err = bench.StartNod(ctx, o, fail)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.nod.Close()) })
	r.bare, err = bench.StartBare(ctx, server.URL(), fail)
	require.NoError(b, err)
	b.Cleanup(r.bare.Close)
	b.Cleanup(func() { over.Store(true) })
	return r
}
