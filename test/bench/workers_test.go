package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

const (
	botToken = "777:AAsecretsecretsecretsecretsecretsec"
	chats    = 200
	rounds   = 2 // the number of requests; each chat shows each request
	latency  = 50 * time.Millisecond
	// atOnce is how many prompts a worker sends at the same time. Without this limit, one worker would
	// serve all chats at the same time, and more workers would not be faster.
	atOnce = 1
)

// BenchmarkWorkers compares four workers of the Telegram connector with one. They show prompts in 200
// chats. The fake Telegram server needs 50 ms for each call.
//
//	go test -run xxx -bench Workers -benchtime 1x ./test/bench
//
// The metric scale-out is the time of one worker divided by the time of four.
func BenchmarkWorkers(b *testing.B) {
	var one, four []time.Duration
	for b.Loop() {
		one = append(one, deliver(b, 1))
		four = append(four, deliver(b, 4))
	}
	prompts := float64(chats * rounds)
	b.ReportMetric(prompts/median(one).Seconds(), "1-worker/s")
	b.ReportMetric(prompts/median(four).Seconds(), "4-workers/s")
	b.ReportMetric(ratio(one, four), "scale-out")
}

// deliver returns the time that this number of workers needs to show every request in every chat.
func deliver(b *testing.B, workers int) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
	require.NoError(b, err)
	defer func() { require.NoError(b, server.Close()) }()
	phones := telegramtest.New(botToken)
	defer phones.Close()
	phones.Unlimited()
	phones.Latency(latency)
	n, err := embed.Start(ctx, embed.Options{URL: server.URL(), Log: quiet, Settings: everyChat(b, phones)})
	require.NoError(b, err)
	defer func() { require.NoError(b, n.Stop(context.Background())) }()

	shown := make(chan struct{})
	var left atomic.Int64
	left.Store(chats * rounds)
	for range workers {
		c, err := telegram.New(phones.URL(), botToken, quiet)
		require.NoError(b, err)
		defer serve(b, ctx, n, narrow{c, make(chan struct{}, atOnce), func() {
			if left.Add(-1) == 0 {
				close(shown)
			}
		}})()
	}
	agent, err := n.Connect(ctx, roles.AgentID("local"))
	require.NoError(b, err)
	defer agent.Close()
	asker := bus.NewAsker(agent, "local")
	defer asker.Close()

	start := time.Now()
	for i := range rounds {
		_, err := asker.Submit(ctx, bench.Request("bench", "Frobnicate", fmt.Sprintf(`{"n":%d}`, i), schemas.ActionOther))
		require.NoError(b, err)
	}
	select {
	case <-shown:
	case <-time.After(2 * time.Minute):
		require.Zero(b, left.Load(), "prompts were not shown")
	}
	took := time.Since(start)
	require.Empty(b, phones.Rejected())
	require.Equal(b, chats*rounds, phones.Calls("sendMessage"), "each prompt is shown once")
	return took
}

// everyChat opens all chats. It returns settings with an approver for each chat.
func everyChat(b *testing.B, phones *telegramtest.Server) []byte {
	settings := schemas.Settings{Approvers: &schemas.Approvers{}}
	for id := int64(1); id <= chats; id++ {
		phones.Start(id)
		settings.Approvers.People = append(settings.Approvers.People, schemas.Approver{
			Name: fmt.Sprint("person ", id), Identities: []schemas.Identity{{Connector: telegram.Name, UserID: fmt.Sprint(id)}},
		})
	}
	data, err := json.Marshal(settings)
	require.NoError(b, err)
	return data
}

// serve starts a worker with a separate actor system and connection, like a separate process.
// stop ends the worker, its actor system and its connection.
func serve(b *testing.B, ctx context.Context, n *embed.Nod, c people.Carrier) (stop func()) {
	quiet := slog.New(slog.DiscardHandler)
	conn, err := n.Connect(ctx, roles.ConnectorID(telegram.Name))
	require.NoError(b, err)
	sys := actors.NewSystem(quiet)
	w, err := connector.Work(ctx, sys, conn, telegram.Name, c, quiet)
	require.NoError(b, err)
	return func() {
		require.NoError(b, w.Stop(context.Background()))
		sys.Stop()
		conn.Close()
	}
}

// narrow is a carrier that sends at most cap(room) prompts at the same time. When a prompt has its
// buttons, narrow calls done.
type narrow struct {
	*telegram.Carrier
	room chan struct{}
	done func()
}

func (n narrow) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	n.room <- struct{}{}
	defer func() { <-n.room }()
	return n.Carrier.Prompt(ctx, p)
}

func (n narrow) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	n.room <- struct{}{}
	defer func() { <-n.room }()
	err := n.Carrier.Revise(ctx, ref, p)
	if err == nil {
		n.done()
	}
	return err
}
