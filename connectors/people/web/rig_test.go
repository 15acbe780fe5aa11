package web_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// everybody contains the settings of most tests. Ann and Bob may answer on the web and at the terminal;
// Eve must not.
const everybody = `{` + permissions + `"join_identical": false, "remember_denials_seconds": 0}, "approvers": {"people": [
	{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}, {"connector": "terminal", "user_id": "ann"}]},
	{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}, {"connector": "terminal", "user_id": "bob"}]}
]}}`

// permissions is the text in the settings after which the function under inserts a rule.
const permissions = `"permissions": {`

// under returns the settings everybody with an additional rule.
func under(rule string) []byte {
	return []byte(strings.Replace(everybody, permissions, permissions+rule+", ", 1))
}

// rig is a whole nod with its web inbox, in the process of the test.
type rig struct {
	*require.Assertions
	t     *testing.T
	ctx   context.Context
	dir   string
	nod   *embed.Nod
	web   *embed.Web // the inbox of Ann, Bob and Eve
	at    string     // the address to which to connect; empty means the inbox's URL
	asker *bus.Asker
	conns []*bus.Conn
}

func start(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	r := &rig{Assertions: require.New(t), t: t, ctx: ctx, dir: t.TempDir()}
	t.Cleanup(func() { r.down(); cancel() })
	r.up("127.0.0.1:0")
	return r
}

// up starts nod. It also starts an inbox, unless addr is empty.
func (r *rig) up(addr string) {
	r.t.Helper()
	var listen *httpserve.Listen
	if addr != "" {
		listen = &httpserve.Listen{Addr: addr}
	}
	var err error
	r.nod, err = embed.Start(r.ctx, embed.Options{
		DataDir: r.dir, SyncInterval: time.Second, Settings: []byte(everybody), Web: listen, Log: quiet(),
	})
	r.NoError(err)
	r.web = r.nod.Web()
	r.asker = bus.NewAsker(r.connect(roles.AgentID("local")), "local")
}

func (r *rig) connect(id roles.ID) *bus.Conn {
	r.t.Helper()
	conn, err := r.nod.Connect(r.ctx, id)
	r.NoError(err)
	r.conns = append(r.conns, conn)
	return conn
}

// down stops nod and closes all its connections. The stored data stay.
func (r *rig) down() {
	if r.nod == nil {
		return
	}
	r.asker.Close()
	for _, c := range r.conns {
		c.Close()
	}
	r.NoError(r.nod.Stop(context.Background()))
	r.nod, r.conns = nil, nil
}

// quiet returns a logger that discards its lines, because the tests cause failures. With NOD_TEST_LOG=1
// the logger shows the lines.
func quiet() *slog.Logger {
	if os.Getenv("NOD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// asks sends a request that no rule decides.
func (r *rig) asks(session, id, input string) *bus.OpenRequest {
	r.t.Helper()
	return r.submits(deploy(session, id, input))
}

func (r *rig) submits(request schemas.Request) *bus.OpenRequest {
	r.t.Helper()
	open, err := r.asker.Submit(r.ctx, request)
	r.NoError(err)
	r.NotZero(open.Receipt.Revision, "%s was decided at once", open.Key)
	return open
}

// shell returns a Bash call, for which nod can store lasting rules.
func shell(session, id, command string) schemas.Request {
	r := deploy(session, id, `{}`)
	r.ActionDetails = fmt.Appendf(nil, `{"command":%q,"cwd":"/app"}`, command)
	r.Title, r.ToolName, r.ActionType, r.Project = "Use Bash", "Bash", schemas.ActionCommand, "/app"
	return r
}

// deploy returns a call whose input contains the request's id, so that no two calls are identical.
func deploy(session, id, input string) schemas.Request {
	input = strings.Replace(fmt.Sprintf(`{"call":%q,`, id)+input[1:], ",}", "}", 1)
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use Deploy", ToolName: "Deploy",
		ActionType: schemas.ActionOther, ActionDetails: []byte(input), Options: schemas.DefaultOptions(),
	}
}

// question returns an agent's question with options to choose from.
func question(id, text string, options ...schemas.Option) schemas.Request {
	r := deploy("S", id, `{}`)
	r.Kind, r.Title, r.ToolName, r.Options = schemas.KindQuestion, "Question", "", options
	r.ActionDetails = fmt.Appendf(nil, `{"question":%q}`, text)
	return r
}

// pours sends many requests at once, in five sessions. The function wait returns when all are stored.
func (r *rig) pours(n int, input string) (wait func()) {
	const askers = 8
	errs := make(chan error, n)
	var all sync.WaitGroup
	for first := range askers {
		all.Go(func() {
			for i := first; i < n; i += askers {
				_, err := r.asker.Submit(r.ctx, deploy(fmt.Sprint("S", i%5), fmt.Sprint("r", i), input))
				errs <- err
			}
		})
	}
	return func() {
		r.t.Helper()
		all.Wait()
		close(errs)
		for err := range errs {
			r.NoError(err)
		}
	}
}

// another returns a rig with another inbox of the same nod.
func (r *rig) another(change ...func(*web.Options)) *rig {
	r.t.Helper()
	system := actors.NewSystem(quiet())
	o := web.Options{DataDir: r.t.TempDir(), Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: quiet()}
	for _, c := range change {
		c(&o)
	}
	w, err := embed.OpenWeb(r.ctx, system, r.connect(roles.ConnectorID(web.Name)), o)
	r.NoError(err)
	r.t.Cleanup(func() {
		r.NoError(w.Stop(context.Background()))
		system.Stop()
	})
	other := *r
	other.web = w
	return &other
}

// terminal answers a request through the terminal connector.
func (r *rig) terminal(user, session, id, option string) {
	r.t.Helper()
	desk := connector.NewDesk(r.connect(roles.ConnectorID("terminal")), "terminal")
	p, _, err := desk.Show(r.ctx, session, id)
	r.NoError(err)
	_, err = desk.Answer(r.ctx, schemas.Answer{
		SessionID: session, PendingID: id, Digest: p.Digest, OptionID: option, From: schemas.From{UserID: user},
	})
	r.NoError(err)
}

// token returns the token of a new login link.
func (r *rig) token(user string) string {
	r.t.Helper()
	_, token, ok := strings.Cut(r.web.Link(user), "/#login=")
	r.True(ok)
	return token
}

// answer is the inbox's response to an HTTP request.
type answer struct {
	status  int
	body    string
	header  http.Header
	cookies []*http.Cookie
}

// does sends an HTTP request. The functions in change may alter the request before it is sent.
func (r *rig) does(method, path, body string, change ...func(*http.Request)) answer {
	r.t.Helper()
	return r.doesBy(http.DefaultClient, method, path, body, change...)
}

func (r *rig) doesBy(client *http.Client, method, path, body string, change ...func(*http.Request)) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, cmp.Or(r.at, r.web.URL())+path, strings.NewReader(body))
	r.NoError(err)
	req.Host = strings.TrimPrefix(strings.TrimPrefix(r.web.URL(), "http://"), "https://")
	for _, c := range change {
		c(req)
	}
	resp, err := client.Do(req)
	r.NoError(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	r.NoError(err)
	return answer{resp.StatusCode, string(data), resp.Header, resp.Cookies()}
}

// login uses a new login link and returns the session's cookie.
func (r *rig) login(user string) *http.Cookie {
	r.t.Helper()
	got := r.does("POST", "/login", `{"token":"`+r.token(user)+`"}`)
	r.Equal(http.StatusNoContent, got.status, got.body)
	r.Len(got.cookies, 1)
	return got.cookies[0]
}

func with(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(c) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}
