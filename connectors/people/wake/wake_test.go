package wake_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/wake"
	"github.com/nodbus/nod/schemas"
)

var kinds = []wake.Kind{wake.Webhook, wake.Ntfy, wake.Form, wake.JSON}

func TestTheSuite(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			peopletest.Run(t, peopletest.Features{Outgoing: true}, func(t *testing.T) peopletest.Rig { return newReceiver(t, kind) }, token, webhookSecret, webhookSecret[6:])
		})
	}
}

func asks(command string) schemas.Prompt {
	details, err := schemas.Encode(map[string]string{"command": command})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	now := time.Now().UTC()
	return schemas.Prompt{
		SessionID: "s1", PendingID: "p1", Recipient: peopletest.Ann, Agent: "local", Digest: "d1", Risk: schemas.RiskHigh, Deadline: now.Add(time.Hour),
		Request: schemas.Request{
			Type: schemas.TypeRequest, SessionID: "s1", PendingID: "p1", Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
			ActionType: schemas.ActionCommand, ActionDetails: details, Project: "/home/ann/app", CreatedAt: now, Options: schemas.DefaultOptions(),
		},
	}
}

// open creates a carrier on r. The function change changes the settings of Ann's target.
func open(t *testing.T, r *receiver, change func(*wake.Target)) *wake.Carrier {
	s := wake.Settings{WebURL: inbox, Targets: []wake.Target{r.target(peopletest.Ann)}}
	change(&s.Targets[0])
	c, err := wake.New(s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return c
}

func unchanged(*wake.Target) {}

func asError(t *testing.T, err error) people.Error {
	var e *people.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.NotContains(t, err.Error(), "127.0.0.1")
	return people.Error{After: e.After, Permanent: e.Permanent, Unreachable: e.Unreachable}
}

// All attempts to send a notification have the same webhook-id. The notification about the outcome has a
// different id.
func TestRetriesHaveTheSameWebhookID(t *testing.T) {
	r := newReceiver(t, wake.Webhook)
	c := open(t, r, unchanged)
	p := asks("make")
	id := func() string { return r.last().header.Get("webhook-id") }
	r.Break(peopletest.Lost)
	_, err := c.Prompt(t.Context(), p)
	require.Equal(t, people.Error{}, asError(t, err))
	first := id()
	p.Repeat = true
	ref, err := open(t, r, unchanged).Prompt(t.Context(), p) // a new carrier, as after a restart
	require.NoError(t, err)
	require.Equal(t, first, id())
	p.Decision = &schemas.Decision{Outcome: schemas.Denied}
	require.NoError(t, c.Settle(t.Context(), ref, p))
	require.NotEqual(t, first, id())
	other := asks("make")
	other.PendingID = "p2"
	_, err = c.Prompt(t.Context(), other)
	require.NoError(t, err)
	require.NotEqual(t, first, id())
}

// A receiver can detect that a call was changed, delayed or signed with another key.
func TestAChangedWebhookDoesNotVerify(t *testing.T) {
	r := newReceiver(t, wake.Webhook)
	_, err := open(t, r, unchanged).Prompt(t.Context(), asks("make"))
	require.NoError(t, err)
	m := r.last()
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	require.NoError(t, err)
	require.NoError(t, verifier.Verify(m.body, m.header))
	require.Error(t, verifier.Verify(append(m.body, ' '), m.header))
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		changed := m.header.Clone()
		changed.Set(name, strings.Replace(changed.Get(name), "1", "2", 1)+"0")
		require.Error(t, verifier.Verify(m.body, changed), name)
	}
	other, err := standardwebhooks.NewWebhook("whsec_" + strings.Repeat("A", 32))
	require.NoError(t, err)
	require.Error(t, other.Verify(m.body, m.header))
}

// The npm library of Standard Webhooks accepts a webhook and refuses a changed webhook.
func TestTheJavaScriptLibraryVerifiesAWebhook(t *testing.T) {
	if os.Getenv("NOD_WEBHOOK_TEST_NPM") == "" {
		t.Skip("it needs npm and the network: NOD_WEBHOOK_TEST_NPM=1 go test ./connectors/people/wake -run JavaScript")
	}
	r := newReceiver(t, wake.Webhook)
	_, err := open(t, r, unchanged).Prompt(t.Context(), asks("make"))
	require.NoError(t, err)
	dir := peopletest.Packages(t, "standardwebhooks@1.1.1")
	m := r.last()
	headers, err := json.Marshal(map[string]string{
		"webhook-id": m.header.Get("webhook-id"), "webhook-timestamp": m.header.Get("webhook-timestamp"), "webhook-signature": m.header.Get("webhook-signature"),
	})
	require.NoError(t, err)
	verify := func(body string) ([]byte, error) {
		node := exec.Command("node", "-e", `const { Webhook } = require("standardwebhooks"); new Webhook(process.argv[1]).verify(process.argv[2], JSON.parse(process.argv[3]))`,
			webhookSecret, body, string(headers))
		node.Dir = dir
		return node.CombinedOutput()
	}
	out, err := verify(string(m.body))
	require.NoError(t, err, string(out))
	out, err = verify(strings.Replace(string(m.body), "high", "low", 1))
	require.Error(t, err)
	require.Contains(t, string(out), "No matching signature found")
}

// A notification contains the payload only if the target's setting says so, and then contains the
// whole payload or nothing of it.
func TestThePayloadNeedsItsSetting(t *testing.T) {
	for _, kind := range kinds {
		r := newReceiver(t, kind)
		c := open(t, r, func(s *wake.Target) { s.Payload = true })
		_, err := c.Prompt(t.Context(), asks("make clean"))
		require.NoError(t, err)
		require.Contains(t, r.last().text, "make clean", kind)
		p := asks("make " + strings.Repeat("x", 30000))
		p.PendingID = "p2"
		_, err = c.Prompt(t.Context(), p)
		require.NoError(t, err)
		require.Contains(t, r.last().text, "too long", kind)
		require.NotContains(t, r.last().text, "xxx", kind)
		require.Contains(t, r.last().text, inbox+"/#/session/s1", kind)
	}
}

// The priority depends on the risk. A risk that this version does not know counts as high.
func TestThePriorityFollowsTheRisk(t *testing.T) {
	for kind, want := range map[wake.Kind][]float64{wake.Ntfy: {3, 4, 5, 5, 1}, wake.JSON: {-1, 0, 1, 1, -2}} {
		r := newReceiver(t, kind)
		c := open(t, r, unchanged)
		var got []float64
		for _, risk := range []schemas.Risk{schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh, "new", "ended"} {
			p := asks("make")
			if p.Risk = risk; risk == "ended" {
				p.Decision = &schemas.Decision{Outcome: schemas.Allowed}
			}
			_, err := c.Prompt(t.Context(), p)
			require.NoError(t, err)
			var body struct{ Priority float64 }
			require.NoError(t, json.Unmarshal(r.last().body, &body))
			got = append(got, body.Priority)
		}
		require.Equal(t, want, got, kind)
	}
}

// A target with after_seconds gets no notification before that time. The time counts from the
// request, so it does not start again after a restart. If the clock of the agent is wrong and the
// request seems to come from the future, the notification is due at once.
func TestALaterTargetWaitsForItsTime(t *testing.T) {
	r := newReceiver(t, wake.Ntfy)
	later := func(s *wake.Target) { s.AfterSeconds = 120 }
	p := asks("make")
	p.Request.CreatedAt = time.Now().Add(-20 * time.Second)
	_, err := open(t, r, later).Prompt(t.Context(), p)
	require.InDelta(t, 100*time.Second, asError(t, err).After, float64(5*time.Second))
	p.Request.CreatedAt = p.Request.CreatedAt.Add(-80 * time.Second)
	_, err = open(t, r, later).Prompt(t.Context(), p)
	require.InDelta(t, 20*time.Second, asError(t, err).After, float64(5*time.Second))
	require.Empty(t, r.Read(peopletest.Ann))
	for n, at := range []time.Duration{-120 * time.Second, time.Hour} {
		p.Request.CreatedAt = time.Now().Add(at)
		_, err = open(t, r, later).Prompt(t.Context(), p)
		require.NoError(t, err)
		require.Len(t, r.Read(peopletest.Ann), n+1)
	}
}

// Redirects are not followed: another host never gets a message or a secret.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, code))
		defer redirecting.Close()
		c := open(t, newReceiver(t, wake.Webhook), func(s *wake.Target) { s.URL = redirecting.URL })
		_, err := c.Prompt(t.Context(), asks("make"))
		require.True(t, asError(t, err).Permanent)
	}
}

// The HTTP status of the reply decides whether and when the worker tries again.
func TestRepliesAreToldApart(t *testing.T) {
	for reply, want := range map[string]people.Error{
		"410 ":        {Unreachable: true},
		"429 30":      {After: 30 * time.Second},
		"429 ":        {After: time.Second},
		"503 30":      {After: 30 * time.Second},
		"503 ":        {},
		"503 x":       {},
		"500 30":      {},
		"408 ":        {},
		"404 ":        {Permanent: true},
		"429 -5":      {After: time.Second},
		"429 9e9":     {After: time.Second},
		"503 9999999": {After: 24 * time.Hour},
	} {
		code, after, _ := strings.Cut(reply, " ")
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			status := map[string]int{"410": 410, "429": 429, "503": 503, "500": 500, "408": 408, "404": 404}[code]
			w.WriteHeader(status)
		}))
		c := open(t, newReceiver(t, wake.Ntfy), func(t *wake.Target) { t.URL = s.URL })
		_, err := c.Prompt(t.Context(), asks("make"))
		require.Equal(t, want, asError(t, err), reply)
		s.Close()
	}
}

// An error, and the check of nod doctor, name the target but not its address or its secret.
func TestErrorsNameTheTargetOnly(t *testing.T) {
	r := newReceiver(t, wake.Form)
	gone := httptest.NewServer(nil)
	gone.Close()
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(gone.URL+"/secret-path"), 0o600))
	c := open(t, r, func(s *wake.Target) { s.URL, s.URLFile = "", file })
	_, err := c.Prompt(t.Context(), asks("make"))
	require.ErrorContains(t, err, "wake "+peopletest.Ann)
	require.NotContains(t, err.Error(), "secret-path")
	err = c.Check(t.Context())
	require.ErrorContains(t, err, "wake "+peopletest.Ann)
	require.NotContains(t, err.Error(), "secret-path")
	require.NoError(t, open(t, r, unchanged).Check(t.Context()))
	p := asks("make")
	p.Recipient = "unknown"
	_, err = c.Prompt(t.Context(), p)
	require.ErrorContains(t, err, `no target "unknown"`)
	require.True(t, asError(t, err).Permanent)
}
