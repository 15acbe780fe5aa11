package bus_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// reflection is a harmless request, which its sender combines with a reply subject on which the
// sender has no right to publish. The replying service or server publishes the reply with its own
// rights.
type reflection struct {
	how   string
	ask   func(t *testing.T, nc *nats.Conn, reply string)
	where []string
}

func asking(subject, body string) func(*testing.T, *nats.Conn, string) {
	return func(t *testing.T, nc *nats.Conn, reply string) {
		require.NoError(t, nc.PublishRequest(subject, reply, []byte(body)))
	}
}

const (
	nextOfTg = "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.tg"
	infoOfTg = "$JS.API.CONSUMER.INFO.permission_prompts.tg"
)

// acknowledging fetches a prompt of the connector tg and acknowledges it. The server confirms the
// acknowledgement on the subject in the parameter reply.
func acknowledging(t *testing.T, nc *nats.Conn, reply string) {
	prompt, err := nc.Request(nextOfTg, nil, 5*time.Second)
	require.NoError(t, err)
	require.NoError(t, nc.PublishRequest(prompt.Reply, reply, []byte("+ACK")))
}

// emptyPull empties the queue of the connector tg and then pulls from it once more. The server
// replies to this pull on the subject in the parameter reply.
func emptyPull(t *testing.T, nc *nats.Conn, reply string) {
	for status := ""; status != "404"; {
		prompt, err := nc.Request(nextOfTg, []byte(`{"no_wait":true}`), 5*time.Second)
		require.NoError(t, err)
		status = prompt.Header.Get("Status")
	}
	asking(nextOfTg, `{"no_wait":true}`)(t, nc, reply)
}

func deliverTo(t *testing.T, nc *nats.Conn, target string) {
	require.NoError(t, nc.Publish("$JS.API.CONSUMER.CREATE.permission_log.x", fmt.Appendf(nil, `{"stream_name":"permission_log",`+
		`"config":{"name":"x","deliver_subject":%q,"deliver_policy":"all","ack_policy":"none"}}`, target)))
}

// reflectionsOfAWorker returns requests that a worker may send to the server, each with a reply
// subject to which the server must not send.
func reflectionsOfAWorker() []reflection {
	stored := []string{theRecord, theTimer, theSettings, theLog}
	return []reflection{
		{"its consumer's info", asking(infoOfTg, ""), stored},
		{"an acknowledgement", acknowledging, stored},
		{"a pull", asking(nextOfTg, ""), append(stored,
			"nod.v1.prompt.wa.s.9", "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.wa")},
		{"an empty pull", emptyPull, append(stored,
			"$JS.API.CONSUMER.DELETE.permission_prompts.wa",
			"$JS.API.STREAM.PURGE.permission_prompts", "$JS.API.STREAM.DELETE.permission_prompts",
			"$JS.API.STREAM.PURGE.KV_pending_permissions", "$JS.API.STREAM.DELETE.KV_pending_permissions")},
	}
}

// reflectionsOfAnAgent returns requests that an agent normally may not send. In these attacks the
// rights allow them, so that the accounts alone must stop the attacks.
func reflectionsOfAnAgent() []reflection {
	stored := []string{theRecord, theTimer, theSettings, theLog}
	return []reflection{
		{"a stream's info", asking("$JS.API.STREAM.INFO.KV_pending_permissions", ""), stored},
		{"an unknown stream's info", asking("$JS.API.STREAM.INFO.nothing", ""), stored},
		{"the account's info", asking("$JS.API.INFO", ""), stored},
		{"a service's info", asking("$SRV.INFO.nod-engine", ""), stored},
		{"a ping", asking("$SRV.PING", ""), stored},
		{"a request", asking("nod.v1.request.ada.s.9", ""), stored},
		{"a consumer's delivery", deliverTo, []string{theRecord, theTimer, theSettings}},
	}
}

func TestRepliesOfTheServerCannotWriteToTheStores(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	onlyLong(t, "TestEnginesPublishNoReplyBeyondTheirRights has the same rights")
	inBothModes(t, func(t *testing.T, m mode) {
		for _, attack := range []struct {
			by          roles.ID
			rights      layout
			reflections []reflection
			later       []string // each of these requests gets a reply, which shows that the server has handled the attack
		}{
			{asTg, asShipped, reflectionsOfAWorker(), []string{infoOfTg, nextOfTg}},
			{asAda, looseRights, reflectionsOfAnAgent(), []string{"$JS.API.INFO", "$SRV.INFO.nod-engine", "nod.v1.request.ada.s.8"}},
		} {
			shipped := startLayout(t, m, attack.rights)
			shipped.serveEngine()
			engine, attacker := shipped.jetstream(asEngineStore), shipped.as(attack.by)
			for _, r := range attack.reflections {
				for _, target := range r.where {
					t.Run(fmt.Sprintf("%s: %s onto %s", attack.by, r.how, target), func(t *testing.T) {
						shipped.feed(engine)
						before := shipped.stores(engine)
						r.ask(t, attacker, target)
						shipped.asked(attacker, attack.later...)
						require.Equal(t, before, shipped.stores(engine))
						require.NoError(t, attacker.LastError(), "the rights stopped the attack, not the layout")

						if m == operatorMode {
							return // the accounts are the same in both modes, so it is enough to show with nkeys that the attack succeeds in a single account
						}
						one := startLayout(t, m, attack.rights, oneAccount)
						one.serveEngine()
						engine := one.jetstream(asEngineStore)
						before = one.stores(engine)
						r.ask(t, one.as(attack.by), target)
						require.Eventually(t, func() bool { return before != one.stores(engine) }, 10*time.Second, time.Millisecond,
							"in one account this attack must succeed, or its failure proves nothing")
					})
				}
			}
		}
	})
}

// serveEngine replies to every request with an answer message, which a real engine never does. If
// such a reply reached a subject for answers, an engine would accept it as a person's answer.
func (g *guarded) serveEngine() *nats.Conn {
	g.t.Helper()
	nc := g.as(asEngine)
	service, err := micro.AddService(nc, micro.Config{Name: "nod-engine", Version: "1.0.0"})
	require.NoError(g.t, err)
	require.NoError(g.t, service.AddEndpoint("request", micro.HandlerFunc(func(r micro.Request) {
		_ = r.Respond([]byte(`{"type":"nod.v1.answer"}`)) // a refusal shows in LastError of the connection
	}), micro.WithEndpointSubject("nod.v1.request.*.*.*")))
	require.NoError(g.t, nc.Flush())
	return nc
}

func (g *guarded) listen(id roles.ID, subject string) (*nats.Conn, *nats.Subscription) {
	g.t.Helper()
	nc := g.as(id)
	sub, err := nc.SubscribeSync(subject)
	require.NoError(g.t, err)
	require.NoError(g.t, nc.Flush())
	require.NoError(g.t, nc.LastError())
	return nc, sub
}

// The sender of a request chooses the reply subject. Even so, an engine publishes no reply on a
// subject outside its own rights.
func TestEnginesPublishNoReplyBeyondTheirRights(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		targets := []string{theAnswer, "nod.v1.request.bob.s.7", "nod.v1.manage.terminal.settings"}
		attack := func(g *guarded, engine *nats.Conn, target string) (heard *nats.Subscription, refused bool) {
			other, heard := g.listen(asEngine, target)
			before := engine.LastError()
			ada := g.as(asAda)
			require.NoError(t, ada.PublishRequest("nod.v1.request.ada.s.9", target, nil))
			g.asked(ada, "nod.v1.request.ada.s.8") // the endpoint replies to one request after another, so after this reply it has handled the attack
			require.NoError(t, other.Flush())
			return heard, refusedSince(t, engine, before)
		}
		shipped := startLayout(t, m, asShipped)
		engine := shipped.serveEngine()
		for _, target := range targets {
			heard, refused := attack(shipped, engine, target)
			require.True(t, refused, target)
			requireSilent(t, heard)
		}

		// If an engine replies by allow_responses, the reply passes although a deny rule names its
		// subject.
		loose := startLayout(t, m, looseEngine)
		engine = loose.serveEngine()
		for _, target := range targets {
			heard, _ := attack(loose, engine, target)
			_, err := heard.NextMsg(5 * time.Second)
			require.NoError(t, err, "with allow_responses this attack on %s must succeed, or its failure proves nothing", target)
		}
	})
}

func requireSilent(t *testing.T, s *nats.Subscription) {
	t.Helper()
	n, _, err := s.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
}

// The rights of an engine allow decisions, so they do not prevent a reply on another agent's decision
// subject. Engines must therefore check the reply subject themselves.
func TestOwnReplyRefusesAnotherAgentsDecisionSubject(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startLayout(t, m, asShipped)
		_, heard := g.listen(asBob, theDecision)
		g.serveEngine() // unlike a real engine, this one does not check the reply subject
		ada := g.as(asAda)
		require.NoError(t, ada.PublishRequest("nod.v1.request.ada.s.9", theDecision, nil))
		_, err := heard.NextMsg(5 * time.Second)
		require.NoError(t, err, "rights alone would have to stop this, and OwnReply could go")
		require.False(t, roles.OwnReply("nod.v1.request.ada.s.9", theDecision))
	})
}

// A worker can direct the server's replies, and its own prompts, to subjects on which an engine or an
// agent listens. These messages never have the type that the engine or agent expects there.
func TestAWorkerCannotForgeMessagesOfNod(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startLayout(t, m, asShipped)
		engine, tg := g.jetstream(asEngineStore), g.as(asTg)
		for _, target := range []struct {
			subject string
			reader  roles.ID
			expects string
		}{
			{theAnswer, asEngine, schemas.TypeAnswer},
			{"nod.v1.request.bob.s.9", asEngine, schemas.TypeRequest},
			{"nod.v1.manage.terminal.settings", asEngine, schemas.TypeSettingsChange},
			{theDecision, asBob, schemas.TypeDecision},
		} {
			_, heard := g.listen(target.reader, target.subject)
			for _, r := range reflectionsOfAWorker() {
				g.feed(engine)
				r.ask(t, tg, target.subject)
				msg, err := heard.NextMsg(5 * time.Second)
				require.NoError(t, err, "%s onto %s: if nothing arrives any more, so much the better", r.how, target.subject)
				var body struct {
					Type string `json:"type"`
				}
				_ = json.Unmarshal(msg.Data, &body) // a message with an empty body has no type
				require.NotEqual(t, target.expects, body.Type, "%s onto %s", r.how, target.subject)
			}
		}
	})
}

// A message may name a subject for its trace. The server sends the trace there only if the message's
// sender may publish on that subject.
func TestTraceDestinationsObeyTheSendersRights(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startLayout(t, m, asShipped)
		_, heard := g.listen(asEngine, "nod.v1.answer.>")
		g.serveEngine()
		ada := g.as(asAda)
		msg := nats.NewMsg("nod.v1.request.ada.s.9")
		msg.Header.Set("Nats-Trace-Dest", theAnswer)
		require.NoError(t, ada.PublishMsg(msg))
		require.NoError(t, ada.Flush())
		require.ErrorIs(t, ada.LastError(), nats.ErrPermissionViolation)
		requireSilent(t, heard)
	})
}
