package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/connectors/people/whatsapp"
	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

const (
	chats   = 50
	rounds  = 20 // the number of requests; each of them is shown in every chat
	latency = 50 * time.Millisecond
	// atOnce is the number of prompts that a worker sends at the same time. Without this limit, one
	// worker would serve all chats at the same time, and more workers would not be faster.
	atOnce = 1
)

// service is the in-memory service of a channel that shows questions in chats.
type service struct {
	channel string
	url     string
	start   func(id string)                                            // a function that opens a person's chat
	open    func(url string, log *slog.Logger) (people.Carrier, error) // a function that makes a carrier, which calls the service at the URL
	check   func() []string                                            // a function that lists the calls that the service refused
	close   func()
}

// services returns functions that each start the service of one channel.
func services() []func() *service {
	return []func() *service{
		func() *service {
			s := telegramtest.New(telegramToken)
			s.Unlimited()
			start := func(id string) { n, _ := strconv.ParseInt(id, 10, 64); s.Start(n) } // ParseInt cannot fail, because the ids are numbers
			open := func(url string, log *slog.Logger) (people.Carrier, error) {
				return telegram.New(url, telegramToken, log)
			}
			return &service{telegram.Name, s.URL(), start, open, s.Rejected, s.Close}
		},
		func() *service {
			s := slacktest.New()
			s.Unlimited()
			open := func(url string, log *slog.Logger) (people.Carrier, error) {
				return slack.New(url, slacktest.BotToken, slacktest.AppToken, log)
			}
			return &service{slack.Name, s.URL(), s.Start, open, s.Rejected, s.Close}
		},
		func() *service {
			s := discordtest.New()
			s.Unlimited()
			open := func(url string, log *slog.Logger) (people.Carrier, error) {
				return discord.New(url, discordtest.Token, log)
			}
			return &service{discord.Name, s.URL(), s.Start, open, s.Rejected, s.Close}
		},
		func() *service {
			s := whatsapptest.New()
			s.Unlimited()
			open := func(url string, log *slog.Logger) (people.Carrier, error) {
				return whatsapp.New(whatsapp.Options{
					BaseURL: url, PhoneNumberID: whatsapptest.Number, Token: whatsapptest.Token, AppSecret: whatsapptest.AppSecret,
					VerifyToken: whatsapptest.VerifyToken, Listen: "127.0.0.1:0", Log: log,
				})
			}
			return &service{whatsapp.Name, s.URL(), s.Start, open, s.Rejected, s.Close}
		},
	}
}

const telegramToken = "777:AAsecretsecretsecretsecretsecretsec"

// The function far starts a proxy that delays each call to a service like a slow network, and returns the
// proxy's address.
func far(b *testing.B, address string) string {
	target, err := url.Parse(address)
	require.NoError(b, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // this logger drops the errors of calls that end because their worker ends
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(latency):
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	b.Cleanup(server.Close)
	return server.URL + target.Path
}

// BenchmarkWorkers compares one worker of a connector with two and with four. The workers show 20
// prompts in each of 50 chats, over a network that needs 50 ms for each call. On Discord, each worker
// needs a further call for its first prompt to a person, because it must open the conversation.
//
//	go test -run xxx -bench Workers -benchtime 1x ./test/bench
//
// The metric 2-workers is the time of one worker divided by the time of two workers. The metric
// 4-workers is the same for four workers.
func BenchmarkWorkers(b *testing.B) {
	for _, open := range services() {
		s := open()
		s.close()
		b.Run(s.channel, func(b *testing.B) {
			var one, two, four []time.Duration
			for b.Loop() {
				one = append(one, deliver(b, open, 1))
				two = append(two, deliver(b, open, 2))
				four = append(four, deliver(b, open, 4))
			}
			b.ReportMetric(float64(chats*rounds)/median(one).Seconds(), "prompts/s")
			b.ReportMetric(ratio(one, two), "2-workers")
			b.ReportMetric(ratio(one, four), "4-workers")
		})
	}
}

// deliver returns the time in which the given number of workers shows every request in every chat.
func deliver(b *testing.B, open func() *service, workers int) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
	require.NoError(b, err)
	defer func() { require.NoError(b, server.Close()) }()
	phones := open()
	defer phones.close()
	n, err := embed.Start(ctx, embed.Options{URL: server.URL(), Log: quiet, Settings: everyChat(b, phones)})
	require.NoError(b, err)
	defer func() { require.NoError(b, n.Stop(context.Background())) }()

	shown := make(chan struct{})
	var left atomic.Int64
	left.Store(chats * rounds)
	address := far(b, phones.url)
	for range workers {
		c, err := phones.open(address, quiet)
		require.NoError(b, err)
		defer serve(b, ctx, n, phones.channel, narrowed(narrow{c, make(chan struct{}, atOnce), func() {
			if left.Add(-1) == 0 {
				close(shown)
			}
		}}))()
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
	case <-time.After(5 * time.Minute):
		require.Zero(b, left.Load(), "prompts were not shown")
	}
	took := time.Since(start)
	require.Empty(b, phones.check())
	require.Zero(b, left.Load(), "each prompt is shown once")
	return took
}

// everyChat opens all chats, and returns settings with an approver for each chat.
func everyChat(b *testing.B, phones *service) []byte {
	settings, open := schemas.Settings{Approvers: &schemas.Approvers{}}, rounds
	settings.Permissions.OpenPrompts = &open
	for i := range chats {
		id := fmt.Sprint(4711000 + i)
		phones.start(id)
		settings.Approvers.People = append(settings.Approvers.People, schemas.Approver{
			Name: fmt.Sprint("person ", i), Identities: []schemas.Identity{{Connector: phones.channel, UserID: id}},
		})
	}
	data, err := json.Marshal(settings)
	require.NoError(b, err)
	return data
}

// serve starts a worker with its own actor system and connection, like a process of its own. The
// returned function ends all three.
func serve(b *testing.B, ctx context.Context, n *embed.Nod, channel string, c people.Carrier) (stop func()) {
	quiet := slog.New(slog.DiscardHandler)
	conn, err := n.Connect(ctx, roles.ConnectorID(channel))
	require.NoError(b, err)
	sys := actors.NewSystem(quiet)
	w, err := connector.Work(ctx, sys, conn, channel, c, quiet)
	require.NoError(b, err)
	return func() {
		require.NoError(b, w.Stop(context.Background()))
		sys.Stop()
		conn.Close()
	}
}

// narrow is a carrier that sends at most cap(room) prompts at the same time, and calls the function done for
// each shown prompt.
type narrow struct {
	people.Carrier
	room chan struct{}
	done func()
}

func (n narrow) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	n.room <- struct{}{}
	defer func() { <-n.room }()
	ref, err := n.Carrier.Prompt(ctx, p)
	if _, revises := n.Carrier.(people.Reviser); !revises && err == nil {
		n.done()
	}
	return ref, err
}

// revising is a carrier of the type narrow, for a channel that can edit messages. A prompt counts as shown
// when it has its buttons.
type revising struct{ narrow }

// narrowed returns n as a people.Reviser if n's carrier is a people.Reviser.
func narrowed(n narrow) people.Carrier {
	if _, revises := n.Carrier.(people.Reviser); revises {
		return revising{n}
	}
	return n
}

func (r revising) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	r.room <- struct{}{}
	defer func() { <-r.room }()
	err := r.Carrier.(people.Reviser).Revise(ctx, ref, p)
	if err == nil {
		r.done()
	}
	return err
}
