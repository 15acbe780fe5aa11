package bench

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

// flood is the number of pending requests of the busy session.
var flood = flag.Int("flood", 3000, "how many pending requests one session has, to be withdrawn")

// BenchmarkFlood withdraws all requests of one session, with 1 caller and with 16 callers. At
// the same time, other sessions send four requests a second. Their prompts go to the phone of
// the same approver, and the phone's channel needs 10 ms for each call. The metric
// worst-delay-s is the longest time from a request of another session to its prompt on the
// phone.
//
//	go test -run xxx -bench Flood -benchtime 1x ./test/bench
func BenchmarkFlood(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			for b.Loop() {
				withdrawAll(b, callers)
			}
		})
	}
}

// phone is a carrier that needs 10 ms for each call. It passes each prompt to the function shown.
type phone struct {
	shown func(schemas.Prompt)
	calls atomic.Int64
}

func (*phone) Run(ctx context.Context, _ people.Desk) error {
	<-ctx.Done()
	return ctx.Err()
}

func (p *phone) Prompt(_ context.Context, prompt schemas.Prompt) (people.Ref, error) {
	p.calls.Add(1)
	time.Sleep(10 * time.Millisecond) // a real channel needs about this time
	p.shown(prompt)
	return people.Ref(prompt.PendingID), nil
}

func (p *phone) Settle(context.Context, people.Ref, schemas.Prompt) error {
	p.calls.Add(1)
	time.Sleep(10 * time.Millisecond)
	return nil
}

func withdrawAll(b *testing.B, callers int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
	require.NoError(b, err)
	defer func() { require.NoError(b, server.Close()) }()
	n, err := embed.Start(ctx, embed.Options{URL: server.URL(), Log: quiet, Settings: []byte(`{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"telegram","user_id":"1"}]}]}}`)})
	require.NoError(b, err)
	defer func() { require.NoError(b, n.Stop(context.Background())) }()
	var other sync.Map // for each request of another session, by its id, the time when it was sent
	came := make(chan time.Duration, 10000)
	p := &phone{shown: func(prompt schemas.Prompt) {
		if at, ok := other.LoadAndDelete(prompt.PendingID); ok {
			came <- time.Since(at.(time.Time))
		}
	}}
	defer serve(b, ctx, n, telegram.Name, p)()
	agent, err := n.Connect(ctx, roles.AgentID("local"))
	require.NoError(b, err)
	defer agent.Close()
	asker := bus.NewAsker(agent, "local")
	defer asker.Close()

	submit := func(session string, i int) string {
		asked, err := asker.Submit(ctx, bench.Request(session, "Frobnicate", fmt.Sprintf(`{"n":%d}`, i), schemas.ActionOther))
		require.NoError(b, err)
		return asked.PendingID
	}
	ids := make(chan string, *flood)
	start := time.Now()
	for i := range *flood {
		ids <- submit("flood", i)
	}
	close(ids)
	b.Logf("asked %d in %v", *flood, time.Since(start))

	over := make(chan struct{})
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			id := bus.NewID()
			other.Store(id, time.Now())
			r := bench.Request(fmt.Sprint("other-", asked/8), "Frobnicate", fmt.Sprintf(`{"n":%d}`, asked), schemas.ActionOther) // 8 requests of each session: few enough to be prompted at once
			r.PendingID = id
			if _, err := asker.Submit(ctx, r); err != nil {
				b.Error(err)
			}
			asked++
		}
	})
	calls := p.calls.Load()
	start = time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for id := range ids {
				if _, err := asker.Withdraw(ctx, "flood", id, "over"); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	close(over)
	asking.Wait()
	var worst time.Duration
	for range asked {
		select {
		case d := <-came:
			worst = max(worst, d)
		case <-time.After(5 * time.Minute):
			b.Fatal("a question did not reach the phone")
		}
	}
	b.ReportMetric(float64(*flood)/took.Seconds(), "withdrawals/s")
	b.ReportMetric(worst.Seconds(), "worst-delay-s")
	b.ReportMetric(float64(asked), "asked")
	b.ReportMetric(float64(p.calls.Load()-calls), "calls")
}
