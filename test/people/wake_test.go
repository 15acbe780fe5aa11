package people

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people/wake"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// outgoing sets up nod with Ann as its approver and with tg as an outgoing channel. The rig has a key for the
// connector tg.
func outgoing(people string) func(*rig.Setup) {
	return func(s *rig.Setup) {
		s.Settings = `{"approvers": {"people": [{"name": "Ann", "identities": [` + people + `]}]}, "permissions": {"open_prompts": 0, "join_identical": false}}`
		s.Engine.Channels = []schemas.ChannelSettings{{Name: "tg", Schema: []byte(`{"type": "object"}`), Outgoing: true}}
	}
}

// A person who has only an outgoing channel cannot be asked, so nod refuses the request at once. No
// answer, freeze or login counts through an outgoing channel.
func TestAPersonWhoIsOnlyToldIsNotAsked(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, outgoing(`{"connector": "tg", "user_id": "phone"}`))
	env.Registers("tg", "worker", false)
	env.Agent("ada").Refused(rig.Deploy("S", "q"), schemas.CodeUndeliverable)

	env = rig.Start(t, outgoing(`{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "phone"}`))
	q := env.Agent("ada").Asks(rig.Deploy("S", "q"))
	phone := env.Person("tg", "phone")
	for _, option := range []string{"allow_once", "reject_once"} {
		_, err := phone.Says(q, option)
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "only tells people")
	}
	_, err := phone.Freeze(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "phone"}})
	env.Refusal(err, schemas.CodeForbidden)
	_, err = phone.LoginLink(env.Ctx, schemas.From{UserID: "phone"})
	env.Refusal(err, schemas.CodeForbidden)
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}})
	env.NoError(err)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}}) // an outgoing channel is no second device
	env.NoError(err)
	q.Ends(schemas.Denied)
}

// hooks is a server that counts webhooks by target, event and request. It does not reply to webhooks of the
// target "dead" until the test ends.
type hooks struct {
	*httptest.Server
	mu    sync.Mutex
	count map[string]int
	done  chan struct{}
}

func newHooks(t *testing.T) *hooks {
	s := &hooks{count: map[string]int{}, done: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Type string
			Data struct {
				Target string
				ID     string `json:"pending_id"`
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.count[fmt.Sprintf("%s %s %s", body.Data.Target, strings.TrimPrefix(body.Type, "nod.request."), body.Data.ID)]++
		s.mu.Unlock()
		if body.Data.Target == "dead" {
			<-s.done
		}
	}))
	t.Cleanup(func() { close(s.done); s.Close() })
	return s
}

func (s *hooks) times(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[what]
}

// wakeWorker starts a worker that sends wake-ups for tg.
func wakeWorker(env *rig.Env, s wake.Settings) *worker {
	carrier, err := wake.New(s, rig.Quiet())
	env.NoError(err)
	return startWorker(env, carrier)
}

// nod tells the first target at once and the second one later, each of them once, although two workers
// run and one of them is replaced. The second target does not hear of a request that ends before the
// target's time. A target that never replies does not delay the others.
func TestWakeupsAreStaggeredAndEndWithTheirRequest(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAPersonWhoIsOnlyToldIsNotAsked wakes people, and connectors/people/wake tests the delays")
	env := rig.Start(t, outgoing(`{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "dead"},
		{"connector": "tg", "user_id": "first"}, {"connector": "tg", "user_id": "later"}`))
	server := newHooks(t)
	file := filepath.Join(t.TempDir(), "key")
	env.NoError(os.WriteFile(file, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600))
	s := wake.Settings{WebURL: "https://nod.example.com"}
	for name, after := range map[string]int{"dead": 0, "first": 0, "later": 3} {
		s.Targets = append(s.Targets, wake.Target{Name: name, Kind: wake.Webhook, URL: server.URL, SecretFile: file, AfterSeconds: after})
	}
	wakeWorker(env, s)
	second := wakeWorker(env, s)
	ask := func(id string) *rig.Question {
		r := rig.Deploy("S", id)
		r.CreatedAt = time.Now()
		return env.Agent("ada").Asks(r)
	}
	waits := ask("waits")
	env.Soon("the first target is told", func() bool { return server.times("first waiting waits") == 1 })
	env.Zero(server.times("later waiting waits"))
	short := ask("short")
	env.Soon("the first target is told", func() bool { return server.times("first waiting short") == 1 })
	env.Ann().Denies(short)
	env.Soon("the first target hears the end", func() bool { return server.times("first ended short") == 1 })
	second.stop()
	wakeWorker(env, s)
	last := ask("last") // when this request reaches the second target, the earlier requests would have reached it too
	env.Soon("the second target is told", func() bool { return server.times("later waiting last") == 1 })
	env.Soon("the second target is told", func() bool { return server.times("later waiting waits") == 1 })
	env.Zero(server.times("later waiting short"), "the request ended before")
	env.Zero(server.times("later ended short"), "the end of a request of which the target was not told")
	for _, q := range []*rig.Question{waits, last} {
		env.Ann().Allows(q)
		env.Soon("both hear the end", func() bool {
			return server.times("first ended "+q.Receipt.PendingID) == 1 && server.times("later ended "+q.Receipt.PendingID) == 1
		})
	}
	for _, what := range []string{"first waiting waits", "first waiting short", "first waiting last", "later waiting waits", "later waiting last"} {
		env.Equal(1, server.times(what), what)
	}
	env.Positive(server.times("dead waiting waits"))
}
