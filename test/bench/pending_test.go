package bench

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

var (
	pendingRequests = flag.Int("pending", 10_000, "how many requests BenchmarkPending leaves pending")
	heapProfile     = flag.String("heap", "", "a file for the heap profile of BenchmarkPending with all requests pending")
)

// BenchmarkPending runs the parts of nod up in one process: the server, the engine, the web inbox
// and the viewer of the terminal. It leaves requests pending, lists them and denies them by a
// freeze. Its metrics are:
//
//   - B/pending: the bytes of heap for each pending request
//   - first-page-ms: the time for the first page of the list
//   - next-page-ms: the mean time for each further page
//   - frozen-ack-ms: the time until nod acknowledges the freeze
//   - told/s: the denials that the viewer of the terminal gets each second after the freeze's call
//   - told-cpu-us: the CPU time of the whole process for each of these denials
//
// One run:
//
//	go test -run xxx -bench Pending$ -benchtime 1x ./test/bench
func BenchmarkPending(b *testing.B) {
	for b.Loop() {
		leavePending(b, *pendingRequests)
	}
}

func leavePending(b *testing.B, pending int) {
	ctx := b.Context()
	quiet := slog.New(slog.DiscardHandler)
	n, err := embed.Start(ctx, embed.Options{DataDir: b.TempDir(), Web: &httpserve.Listen{Addr: "127.0.0.1:0"}, Log: quiet, Settings: []byte(bench.Settings)})
	require.NoError(b, err)
	defer func() { require.NoError(b, n.Stop(context.Background())) }()
	terminal, err := n.Connect(ctx, roles.ConnectorID("terminal"))
	require.NoError(b, err)
	defer terminal.Close()
	system := actors.NewSystem(quiet)
	defer system.Stop()
	var shown, told atomic.Int64
	all := make(chan struct{}, 2)
	viewer, err := connector.View(ctx, system, terminal, "terminal", quiet, func(p schemas.Prompt) {
		count := &shown
		if p.Decision != nil {
			count = &told
		}
		if count.Add(1) == int64(pending) {
			all <- struct{}{}
		}
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, viewer.Stop(context.Background())) }()

	before := heap()
	submit(b, n, pending)
	<-all
	b.ReportMetric(float64(heap()-before)/float64(pending), "B/pending")
	writeHeapProfile(b)

	desk := connector.NewDesk(terminal, "terminal")
	listAll(b, desk, pending)

	began, cpu := time.Now(), bench.CPUTime()
	_, err = desk.Freeze(ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}})
	require.NoError(b, err)
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "frozen-ack-ms")
	<-all
	b.ReportMetric(float64(pending)/time.Since(began).Seconds(), "told/s")
	b.ReportMetric(float64((bench.CPUTime()-cpu).Microseconds())/float64(pending), "told-cpu-us")
}

// submit sends requests that no rule decides, 1,000 in each session.
func submit(b *testing.B, n *embed.Nod, pending int) {
	conn, err := n.Connect(b.Context(), roles.AgentID("local"))
	require.NoError(b, err)
	defer conn.Close()
	asker := bus.NewAsker(conn, "local")
	defer asker.Close()
	var work sync.WaitGroup
	for part := range inFlight {
		work.Go(func() {
			for i := part; i < pending; i += inFlight {
				r, err := asker.Submit(b.Context(), bench.Request(fmt.Sprint("S", i/1000), "Frobnicate", fmt.Sprintf(`{"command":"rm -rf build%06d","cwd":"/workspace"}`, i), schemas.ActionOther))
				if err != nil {
					b.Error(err)
					return
				}
				r.Drop()
			}
		})
	}
	work.Wait()
}

func listAll(b *testing.B, desk *connector.Desk, pending int) {
	listed, pages, began := 0, 0, time.Now()
	require.NoError(b, desk.EachPending(b.Context(), schemas.Query{}, func(page []schemas.Prompt) error {
		if pages++; pages == 1 {
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "first-page-ms")
			began = time.Now()
		}
		listed += len(page)
		return nil
	}))
	require.Equal(b, pending, listed)
	if pages > 1 {
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000/float64(pages-1), "next-page-ms")
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // one collection leaves the content of each sync.Pool alive, and the next collection frees it
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func writeHeapProfile(b *testing.B) {
	if *heapProfile == "" {
		return
	}
	f, err := os.Create(*heapProfile)
	require.NoError(b, err)
	require.NoError(b, pprof.Lookup("heap").WriteTo(f, 0))
	require.NoError(b, f.Close())
}
