package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// observed is a server with stores, a record, the connections of an engine, and an observer.
type observed struct {
	*guarded
	nc     *nats.Conn
	js     jetstream.JetStream
	engine jetstream.JetStream
}

const recordKey = "s.1"

func startObserved(t *testing.T, m mode) *observed {
	t.Helper()
	g := startIn(t, m)
	dial := func(id roles.ID) *bus.Conn {
		c, err := bus.Connect(t.Context(), bus.Options{URL: g.url, Creds: g.keys.Path(id), Inbox: id.InboxPrefix(), Name: id.String(), Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	store, err := bus.OpenStore(t.Context(), dial(asEngineStore), 1)
	require.NoError(t, err)
	_, err = bus.OpenPrompts(t.Context(), dial(asEngineStore), 1)
	require.NoError(t, err)
	stop, err := store.Records.ServeWatches(dial(asEngine))
	require.NoError(t, err)
	t.Cleanup(stop)
	o := &observed{guarded: g, nc: g.as(asObserver), js: g.jetstream(asObserver), engine: g.jetstream(asEngineStore)}
	o.writes(recordKey)
	return o
}

func (o *observed) writes(key string) {
	o.t.Helper()
	_, err := o.engine.Publish(o.t.Context(), "$KV.pending_permissions."+key, []byte(`{"type":"nod.v1.record"}`))
	require.NoError(o.t, err)
}

// state describes all streams and consumers, except for watches, which end by themselves.
func (o *observed) state() string {
	o.t.Helper()
	owner := o.jetstream(asOwnerStore)
	told := ""
	for stream := range owner.ListStreams(o.t.Context()).Info() {
		told += fmt.Sprintln(stream.Config.Name, stream.State.Msgs, stream.State.LastSeq, stream.State.NumDeleted)
		s, err := owner.Stream(o.t.Context(), stream.Config.Name)
		require.NoError(o.t, err)
		for c := range s.ListConsumers(o.t.Context()).Info() {
			if c.Config.Metadata["nod-observer"] == "" {
				told += fmt.Sprintln(" ", c.Name, c.Delivered, c.AckFloor, c.NumAckPending, c.Paused)
			}
		}
	}
	return told
}

// An observer may make the calls that the nats command makes for `nats kv` and `nats stream`.
func TestAnObserverLooks(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		o := startObserved(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		kv, err := o.js.KeyValue(ctx, "pending_permissions")
		require.NoError(t, err)
		entry, err := kv.Get(ctx, recordKey)
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"nod.v1.record"}`, string(entry.Value()))
		keys, err := kv.Keys(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{recordKey}, keys)
		history, err := kv.History(ctx, recordKey)
		require.NoError(t, err)
		require.Len(t, history, 1)

		watch, err := kv.WatchAll(ctx)
		require.NoError(t, err)
		require.Equal(t, recordKey, (<-watch.Updates()).Key())
		require.Nil(t, <-watch.Updates(), "all present keys have been reported")
		o.writes("s.2")
		require.Equal(t, "s.2", (<-watch.Updates()).Key())
		require.NoError(t, watch.Stop())
		records, err := o.jetstream(asOwnerStore).Stream(ctx, roles.RecordsBucket)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			info, err := records.Info(ctx)
			return err == nil && info.State.Consumers == 0
		}, 30*time.Second, 10*time.Millisecond, "a stopped watch is deleted")

		info, err := o.js.AccountInfo(ctx)
		require.NoError(t, err)
		require.Positive(t, info.Streams)
		names := map[string]bool{}
		for s := range o.js.ListStreams(ctx).Info() {
			names[s.Config.Name] = true
		}
		require.True(t, names["permission_log"] && names["KV_permission_settings"] && names["permission_prompts"], names)

		log, err := o.js.Stream(ctx, "permission_log")
		require.NoError(t, err)
		_, err = o.engine.Publish(ctx, theLog, []byte("first"))
		require.NoError(t, err)
		logged, err := log.GetMsg(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, "first", string(logged.Data))
		require.NoError(t, o.nc.LastError())

		c, err := bus.Connect(ctx, bus.Options{URL: o.url, Creds: o.keys.Path(asObserver), Inbox: asObserver.InboxPrefix(), Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		ahead, err := c.ServerAhead(ctx)
		require.NoError(t, err)
		require.Less(t, ahead.Abs(), 10*time.Second)
	})
}

// An observer receives the calls of agents, the decisions, the views and the log. It receives no
// answers, which may contain a code word. It also receives no calls of the owner and of connectors,
// which may contain codes and settings.
func TestAnObserverHearsWhatAgentsAskAndEnginesSay(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startIn(t, m)
		nc := g.as(asObserver)
		heard, err := nc.SubscribeSync("nod.v1.>")
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
		says := func(id roles.ID, subject string) {
			c := g.as(id)
			require.NoError(t, c.Publish(subject, []byte("x")))
			require.NoError(t, c.Flush())
			require.NoError(t, c.LastError(), subject)
		}
		for _, hidden := range []struct {
			id      roles.ID
			subject string
		}{
			{asTerminal, "nod.v1.answer.terminal.s.1"}, {asWeb, "nod.v1.manage.web.pass"}, {asTg, "nod.v1.manage.tg.pair"},
			{asOwner, "nod.v1.manage.terminal.settings"}, {asTg, "nod.v1.shown.tg"}, {asEngineStore, "nod.v1.prompt.tg.s.1"},
		} {
			says(hidden.id, hidden.subject)
		}
		for _, visible := range []struct {
			id      roles.ID
			subject string
		}{
			{asAda, "nod.v1.request.ada.s.1"}, {asAda, "nod.v1.withdraw.ada.s.1"}, {asEngine, "nod.v1.decision.ada.s.1"},
			{asEngine, "nod.v1.view.s.1"}, {asEngine, "nod.v1.notice.ada.s"}, {asEngineStore, theLog},
		} {
			says(visible.id, visible.subject)
			m, err := heard.NextMsg(30 * time.Second)
			require.NoError(t, err, visible.subject)
			require.Equal(t, visible.subject, m.Subject)
		}
	})
}

// An observer finds engines and connectors, and queries an engine. The engine's replies pass from one
// account to another. An engine sends no reply to any other subject than an observer's inbox.
func TestAnObserverAsksServices(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startIn(t, m)
		engine, err := bus.Connect(t.Context(), bus.Options{URL: g.url, Creds: g.keys.Path(asEngine), Inbox: asEngine.InboxPrefix(), Name: "engine", Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(engine.Close)
		_, err = engine.Serve(bus.ServiceOptions{Name: "nod-engine", Version: "1.0.0", Open: 8}, bus.Endpoint{
			Name: "query", Verb: "query", Tokens: 2, Handle: func(c *bus.Call) { c.Reply(schemas.Page{Type: schemas.TypePage}) },
		})
		require.NoError(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, engine.Flush(soon))
		tg := g.as(asTg)
		_, err = micro.AddService(tg, micro.Config{Name: "nod-connector-tg", Version: "1.0.0"})
		require.NoError(t, err)
		require.NoError(t, tg.Flush(), "the server has the service's subscriptions")
		nc := g.as(asObserver)
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			answers, err := nc.SubscribeSync(nc.NewInbox())
			require.NoError(t, err)
			require.NoError(t, nc.PublishRequest("$SRV."+verb, answers.Subject, nil))
			found := map[string]bool{}
			for range 2 {
				m, err := answers.NextMsg(30 * time.Second)
				require.NoError(t, err, verb)
				var s struct{ Name string }
				require.NoError(t, json.Unmarshal(m.Data, &s))
				found[s.Name] = true
			}
			require.Equal(t, map[string]bool{"nod-engine": true, "nod-connector-tg": true}, found)
		}
		page, err := nc.Request("nod.v1.query.observer.pending", []byte(`{"type":"nod.v1.query"}`), 30*time.Second)
		require.NoError(t, err)
		require.Contains(t, string(page.Data), schemas.TypePage)
		for _, reply := range []string{theDecision, "nod.v1.answer.terminal.s.1", "$JS.API.STREAM.DELETE.permission_log"} {
			ear, err := g.as(asOwner).SubscribeSync("nod.v1.>")
			require.NoError(t, err)
			require.NoError(t, nc.PublishRequest("nod.v1.query.observer.pending", reply, nil))
			require.NoError(t, nc.PublishRequest("$SRV.PING", reply, nil))
			_, err = nc.Request("nod.v1.query.observer.pending", []byte(`{"type":"nod.v1.query"}`), 30*time.Second)
			require.NoError(t, err)
			for range 3 { // the subscription ear gets only the three queries that the observer itself sends
				if m, err := ear.NextMsg(time.Second); err == nil {
					require.Equal(t, "nod.v1.query.observer.pending", m.Subject)
				}
			}
		}
	})
}

// If an observer's JetStream request would change something, it is refused or has no effect, whatever
// its body and its reply subject are.
func TestAnObserverChangesNothing(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		o := startObserved(t, m)
		_, err := o.engine.CreateConsumer(t.Context(), roles.RecordsBucket, jetstream.ConsumerConfig{
			Durable: "nod-outbox", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "$KV.pending_permissions.>",
		})
		require.NoError(t, err)
		before := o.state()
		const create = "$JS.API.CONSUMER.CREATE.KV_pending_permissions."
		body := func(config string) []byte {
			return []byte(`{"stream_name":"KV_pending_permissions","config":{` + config + `}}`)
		}
		toMe := `"deliver_subject":"_INBOX.observer.x","filter_subject":"$KV.pending_permissions.>"`
		for _, c := range []struct {
			what, subject string
			body          []byte
		}{
			{"deliver into the settings", create + "a.$KV.pending_permissions.>", body(`"deliver_subject":"$KV.permission_settings.settings","filter_subject":"$KV.pending_permissions.>"`)},
			{"deliver into a timer", create + "a.$KV.pending_permissions.>", body(`"deliver_subject":"nod.v1.timer.s.1","filter_subject":"$KV.pending_permissions.>"`)},
			{"no inbox", create + "a.$KV.pending_permissions.>", body(`"filter_subject":"$KV.pending_permissions.>"`)},
			{"timers", create + "a.$KV.pending_permissions.>", body(`"deliver_subject":"_INBOX.observer.x","filter_subject":"nod.v1.timer.>"`)},
			{"change the outbox", create + "nod-outbox.$KV.pending_permissions.>", body(toMe + `,"durable_name":"nod-outbox"`)},
			{"delete the outbox", "$JS.API.CONSUMER.DELETE.KV_pending_permissions.nod-outbox", nil},
			{"not JSON", create + "a.$KV.pending_permissions.>", []byte("{")},
		} {
			m, err := o.nc.Request(c.subject, c.body, 30*time.Second)
			require.NoError(t, err, c.what)
			require.Contains(t, string(m.Data), `"error"`, c.what)
			require.Equal(t, before, o.state(), c.what)
		}
		for _, subject := range []string{
			"$JS.API.STREAM.PURGE.KV_pending_permissions", "$JS.API.STREAM.DELETE.permission_log", "$JS.API.STREAM.UPDATE.permission_log",
			"$JS.API.STREAM.MSG.DELETE.permission_log", "$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.SNAPSHOT.KV_permission_settings",
			"$JS.API.STREAM.INFO.KV_permission_settings", "$JS.API.STREAM.MSG.GET.KV_permission_settings",
			"$JS.API.STREAM.MSG.GET.KV_permission_sessions", "$JS.API.DIRECT.GET.KV_permission_settings.$KV.permission_settings.settings",
			"$JS.API.CONSUMER.CREATE.KV_permission_settings.a.$KV.permission_settings.>", "$JS.API.CONSUMER.CREATE.permission_prompts.a",
			"$JS.API.CONSUMER.DURABLE.CREATE.KV_pending_permissions.a", "$JS.API.CONSUMER.MSG.NEXT.KV_pending_permissions.nod-outbox",
			"$JS.API.CONSUMER.PAUSE.KV_pending_permissions.nod-outbox", "$JS.ACK.KV_pending_permissions.nod-outbox.1.1.1.1.1",
			"$KV.pending_permissions.s.1", theDecision, theAnswer, "nod.v1.query.observer.settings", "nod.v1.manage.observer.freeze",
			"nod.v1.query.terminal.pending", "$SYS.REQ.SERVER.PING",
		} {
			require.False(t, mayPublish(t, o.nc, subject), subject)
		}
		for _, reply := range []string{theRecord, theTimer, theSettings, theLog, "$JS.API.STREAM.PURGE.KV_pending_permissions", "$JS.API.STREAM.DELETE.permission_log"} {
			for _, subject := range []string{"$JS.API.STREAM.INFO.permission_log", "$JS.API.STREAM.LIST", "$JS.API.STREAM.MSG.GET.KV_pending_permissions", create + "b.$KV.pending_permissions.>"} {
				require.NoError(t, o.nc.PublishRequest(subject, reply, []byte(`{"seq":1}`)))
				_, err := o.nc.Request(subject, []byte(`{"seq":1}`), 30*time.Second)
				require.NoError(t, err, subject)
			}
			require.Equal(t, before, o.state(), "reply set to %s", reply)
		}
	})
}
