package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// The tokens of the two configured agents.
const (
	localToken = "the-token-of-local"
	adaToken   = "the-token-of-ada"
)

// waitAtMost is the longest time for which a test waits for something to happen. During that time, it
// looks at intervals of tick.
const (
	waitAtMost = time.Minute
	tick       = 20 * time.Millisecond
)

// settings let Ann answer at the terminal. One rule allows a tool, and another denies a tool.
const settings = `{"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"]},
	"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`

// rig contains a whole nod and its HTTP API, both in the test's process. The test acts as the agents
// and as Ann, the approver.
type rig struct {
	*require.Assertions
	t     *testing.T
	ctx   context.Context
	dir   string
	nod   *embed.Nod
	api   *httpapi.Server
	desk  *connector.Desk
	owner *connector.Owner
	conns []*bus.Conn
	calls http.Client
}

func start(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	r := &rig{Assertions: require.New(t), t: t, ctx: ctx, dir: t.TempDir()}
	r.calls.Transport = checkedTransport{}
	keys, err := roles.OpenKeys(r.dir)
	r.NoError(err)
	r.NoError(keys.Ensure(roles.AgentID("local"), roles.AgentID("ada")))
	t.Cleanup(func() { r.down(); cancel() })
	r.up()

	options := httpapi.Options{Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Host: "devbox", User: "ann", Log: quiet()}
	for name, token := range map[string]string{"local": localToken, "ada": adaToken} {
		conn, err := bus.Join(ctx, bus.Place{DataDir: r.dir}, roles.AgentID(name), quiet())
		r.NoError(err)
		a, done := embed.HTTPAgent(conn, name, token)
		t.Cleanup(func() { done(); conn.Close() })
		options.Agents = append(options.Agents, a)
	}
	r.open(options)
	return r
}

func (r *rig) open(o httpapi.Options) {
	r.t.Helper()
	var err error
	r.api, err = httpapi.Open(o)
	r.NoError(err)
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r.NoError(r.api.Stop(ctx))
	})
}

// fake starts an API without a real nod, for one agent named local. The function change can change the
// options, for example the agent's Nod.
func fake(t *testing.T, change func(*httpapi.Options)) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{Assertions: require.New(t), t: t, ctx: t.Context()}
	r.calls.Transport = checkedTransport{}
	o := httpapi.Options{
		Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: quiet(),
		Agents: []httpapi.Agent{{Name: "local", Token: localToken}},
	}
	change(&o)
	r.open(o)
	return r
}

// up starts nod in the directory r.dir, which may contain the data of an earlier nod.
func (r *rig) up() {
	r.t.Helper()
	var err error
	r.nod, err = embed.Start(r.ctx, embed.Options{
		DataDir: r.dir, SyncInterval: time.Second, Settings: []byte(settings), EngineAlone: true, Log: quiet(),
	})
	r.NoError(err)
	r.desk = connector.NewDesk(r.connect(roles.ConnectorID("terminal")), "terminal")
	r.owner = connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), "terminal")
}

func (r *rig) connect(id roles.ID) *bus.Conn {
	r.t.Helper()
	conn, err := r.nod.Connect(r.ctx, id)
	r.NoError(err)
	r.conns = append(r.conns, conn)
	return conn
}

func (r *rig) down() {
	if r.nod == nil {
		return
	}
	for _, c := range r.conns {
		c.Close()
	}
	r.NoError(r.nod.Stop(context.Background()))
	r.nod, r.conns = nil, nil
}

// quiet returns a logger that discards everything. If NOD_TEST_LOG is set, the logger writes to stderr
// instead.
func quiet() *slog.Logger {
	if os.Getenv("NOD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

type answer struct {
	status int
	header http.Header
	body   string
}

// does makes an HTTP call with the token of the agent named local. The function change can change the
// call, for example its token.
func (r *rig) does(method, path, body string, change ...func(*http.Request)) answer {
	r.t.Helper()
	got, err := r.tries(r.ctx, method, path, body, change...)
	r.NoError(err)
	return got
}

func (r *rig) tries(ctx context.Context, method, path, body string, change ...func(*http.Request)) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.api.URL()+path, strings.NewReader(body))
	r.NoError(err)
	req.Header.Set("Authorization", "Bearer "+localToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	resp, err := r.calls.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data)}, err
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func asAda(r *http.Request) { r.Header.Set("Authorization", "Bearer "+adaToken) }

// later starts an HTTP call. It returns a function that waits for the response to this call.
func (r *rig) later(method, path, body string, change ...func(*http.Request)) func() answer {
	got := make(chan answer, 1)
	go func() {
		a, err := r.tries(r.ctx, method, path, body, change...)
		if err != nil {
			a.body = err.Error()
		}
		got <- a
	}()
	return func() answer {
		r.t.Helper()
		select {
		case a := <-got:
			return a
		case <-r.ctx.Done():
			r.NoError(r.ctx.Err())
			return answer{}
		}
	}
}

// deploy returns a request that no rule decides and that is identical to no other request.
func deploy(session, id string) string {
	return `{"session_id":"` + session + `","pending_id":"` + id + `","kind":"tool_call","title":"Use Deploy","tool_name":"Deploy",` +
		`"action_type":"other","action_details":{"to":"production","for":"` + id + `"}}`
}

// asks sends a request and returns its receipt. It fails the test unless the request is pending.
func (r *rig) asks(body string) schemas.Receipt {
	r.t.Helper()
	got := r.does("POST", "/api/v1/requests", body)
	r.Equal(http.StatusAccepted, got.status, got.body)
	var receipt schemas.Receipt
	r.NoError(schemas.Decode([]byte(got.body), &receipt))
	r.Equal("/api/v1/requests/"+receipt.SessionID+"."+receipt.PendingID, got.header.Get("Location"))
	return receipt
}

// decision returns the decision in a response. It fails the test if the status is not 200.
func (r *rig) decision(got answer) schemas.Decision {
	r.t.Helper()
	r.Equal(http.StatusOK, got.status, got.body)
	var d schemas.Decision
	r.NoError(schemas.Decode([]byte(got.body), &d))
	return d
}

// refused checks that a response is an error with this status and code, and that the error's message is
// one line. It returns the message.
func (r *rig) refused(got answer, status int, code schemas.Code) string {
	r.t.Helper()
	r.Equal(status, got.status, got.body)
	var e schemas.Error
	r.NoError(schemas.Decode([]byte(got.body), &e), got.body)
	r.Equal(code, e.Code, e.Message)
	r.NotContains(e.Message, "\n")
	return e.Message
}

// says makes Ann choose an option as her answer to the request whose receipt is q.
func (r *rig) says(q schemas.Receipt, option string) {
	r.t.Helper()
	_, err := r.desk.Answer(r.ctx, schemas.Answer{
		SessionID: q.SessionID, PendingID: q.PendingID, Digest: q.Digest, OptionID: option, From: schemas.From{UserID: "ann"},
	})
	r.NoError(err)
}

func (r *rig) pending() []schemas.Prompt {
	r.t.Helper()
	all, err := r.desk.Pending(r.ctx, schemas.Query{})
	r.NoError(err)
	return all
}

// pends waits until a session has exactly one pending request, and returns the request's prompt.
func (r *rig) pends(session string) (p schemas.Prompt) {
	r.t.Helper()
	r.Eventually(func() bool {
		all, err := r.desk.Pending(r.ctx, schemas.Query{SessionID: session})
		if err != nil || len(all) != 1 {
			return false
		}
		p = all[0]
		return true
	}, waitAtMost, tick)
	return p
}
