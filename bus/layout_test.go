package bus_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// layout changes the shipped configuration of a server. If an attack fails on the shipped
// configuration, this proves something only if the same attack succeeds on a weaker one. Each attack
// therefore also runs on a layout that weakens the configuration.
type layout struct {
	config func(string) string
	scope  func(*jwt.UserScope) // in operator mode, changes the rights that a signing key gives
}

func (l layout) text(config string) string {
	if l.config == nil {
		return config
	}
	return l.config(config)
}

var asShipped = layout{}

var usersBlock = regexp.MustCompile(`(?s)users: \[\n(.*?)\n?    \]\n`)

// oneAccount puts all users into one account and keeps their rights. It works only for nkeys.
var oneAccount = layout{config: func(config string) string {
	var users strings.Builder
	for _, m := range usersBlock.FindAllStringSubmatch(config, -1) {
		users.WriteString(m[1] + "\n")
	}
	head, _, _ := strings.Cut(config, "accounts {")
	text := head + "accounts { ONE { jetstream: enabled, users: [\n" + users.String() + "] } }\n"
	// Without imports between accounts there are no mappings, so the rights must name the original
	// subjects.
	return strings.ReplaceAll(text, "_NOD.consumer_info.", "$JS.API.CONSUMER.INFO.permission_prompts.")
}}

// looseRights lets agents send any request to the server and to the services. It also lets engines reply
// to any subject that is not denied.
var looseRights = layout{
	config: func(config string) string {
		for _, agent := range []string{"ada", "bob"} {
			config = strings.ReplaceAll(config, `"nod.v1.await.`+agent+`"`, `"nod.v1.await.`+agent+`", "$JS.API.>", "$SRV.>"`)
		}
		return looseEngine.config(config)
	},
	scope: func(s *jwt.UserScope) {
		if s.Role == "agent" {
			s.Template.Pub.Allow.Add("$JS.API.>", "$SRV.>")
		}
		looseEngine.scope(s)
	},
}

// looseEngine lets engines reply to any subject, by allow_responses. A deny rule names the subjects that
// engines must not use.
var looseEngine = layout{
	config: func(config string) string {
		return regexp.MustCompile(`(?s)(# engine\n.*?)deny: \[\]\}\n(.*?)(      \}\})`).
			ReplaceAllString(config, `${1}deny: ["nod.v1.answer.>", "nod.v1.request.>"]}`+"\n"+`${2}        allow_responses: true`+"\n"+`${3}`)
	},
	scope: func(s *jwt.UserScope) {
		if s.Role == "engine" {
			s.Template.Pub.Deny.Add("nod.v1.answer.>", "nod.v1.request.>")
			s.Template.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}
		}
	},
}

// startLayout runs a server with keys for all roles, and makes the stores. The server has the shipped
// configuration with the changes of the layouts.
func startLayout(t *testing.T, m mode, layouts ...layout) *guarded {
	t.Helper()
	if m == operatorMode {
		g := startAccounts(t, layouts...)
		g.makeStores()
		return g
	}
	dir := t.TempDir()
	keys, users := keysOf(t, dir, everybody()...)
	text := roles.Config{Users: users, StoreDir: dir}.String()
	for _, l := range layouts {
		text = l.text(text)
	}
	g := &guarded{t: t, dir: dir, url: startText(t, text).ClientURL(), keys: keys}
	g.makeStores()
	return g
}

const (
	theRecord   = "$KV.pending_permissions.s.1"
	theTimer    = "nod.v1.timer.s.1"
	theSettings = "$KV.permission_settings.settings"
	theLog      = "nod.v1.log.s"
	theDecision = "nod.v1.decision.bob.s.1"
	theAnswer   = "nod.v1.answer.terminal.s.1"
)

// makeStores makes the streams as an engine does, each with one message. It queues a prompt for each of
// the connectors tg and wa.
func (g *guarded) makeStores() {
	g.t.Helper()
	ctx, js := context.Background(), g.jetstream(asEngineStore)
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "KV_pending_permissions", MaxMsgsPerSubject: 1, AllowRollup: true, AllowMsgTTL: true, AllowMsgSchedules: true,
			Subjects: []string{"$KV.pending_permissions.>", "nod.v1.timer.>", "nod.v1.due.>"}},
		{Name: "KV_permission_settings", MaxMsgsPerSubject: 1, Subjects: []string{"$KV.permission_settings.>"}},
		{Name: "permission_log", Subjects: []string{"nod.v1.log.>"}},
		{Name: "permission_prompts", Retention: jetstream.WorkQueuePolicy, Subjects: []string{"nod.v1.prompt.>"}},
	} {
		_, err := js.CreateStream(ctx, cfg)
		require.NoError(g.t, err)
	}
	for _, subject := range []string{theRecord, theTimer, theSettings, theLog} {
		_, err := js.Publish(ctx, subject, []byte(`{"type":"as it was"}`))
		require.NoError(g.t, err)
	}
	for _, worker := range []string{"tg", "wa"} {
		_, err := js.CreateConsumer(ctx, "permission_prompts", jetstream.ConsumerConfig{
			Durable: worker, FilterSubject: "nod.v1.prompt." + worker + ".>", AckPolicy: jetstream.AckExplicitPolicy,
		})
		require.NoError(g.t, err)
		_, err = js.Publish(ctx, "nod.v1.prompt."+worker+".s.1", []byte(`{"type":"nod.v1.prompt"}`))
		require.NoError(g.t, err)
	}
}

// stores describes all state that an attack could change: the messages and consumers of every stream,
// except for the connector tg's progress with its own prompts. If nothing has changed, two descriptions
// are equal.
func (g *guarded) stores(js jetstream.JetStream) string {
	ctx := context.Background()
	told := map[string]any{}
	for _, name := range []string{"KV_pending_permissions", "KV_permission_settings", "permission_log", "permission_prompts"} {
		stream, err := js.Stream(ctx, name)
		var info *jetstream.StreamInfo
		if err == nil {
			info, err = stream.Info(ctx, jetstream.WithSubjectFilter(">"))
		}
		if err != nil {
			assert.ErrorIs(g.t, err, jetstream.ErrStreamNotFound)
			told[name] = "gone"
			continue
		}
		subjects := info.State.Subjects
		maps.DeleteFunc(subjects, func(s string, _ uint64) bool { return strings.HasPrefix(s, "nod.v1.prompt.tg.") })
		told[name] = []any{info.State.LastSeq, info.State.Consumers, subjects}
	}
	if wa, err := js.Consumer(ctx, "permission_prompts", "wa"); err == nil {
		told["wa"] = []any{wa.CachedInfo().Delivered.Consumer, wa.CachedInfo().NumAckPending, wa.CachedInfo().NumPending}
	} else if !errors.Is(err, jetstream.ErrStreamNotFound) {
		assert.ErrorIs(g.t, err, jetstream.ErrConsumerNotFound)
	}
	return fmt.Sprint(told) // fmt prints maps sorted by key, so equal states give equal texts
}

func (g *guarded) feed(js jetstream.JetStream) {
	g.t.Helper()
	_, err := js.Publish(context.Background(), "nod.v1.prompt.tg.s."+rand.Text(), []byte(`{"type":"nod.v1.prompt"}`))
	require.NoError(g.t, err)
}

// asked sends requests on nc and waits for the replies. After these replies, the receivers have
// handled all earlier requests on nc.
func (g *guarded) asked(nc *nats.Conn, questions ...string) {
	g.t.Helper()
	for range 3 {
		for _, q := range questions {
			_, err := nc.Request(q, []byte(`{"no_wait":true}`), 5*time.Second)
			require.NoError(g.t, err, q)
		}
	}
}
