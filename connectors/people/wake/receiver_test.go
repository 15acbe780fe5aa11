package wake_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/wake"
)

const (
	webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	token         = "tk_ann0123456789secret"
	inbox         = "https://nod.example.com"
)

// receiver is a server that gets the messages of all kinds of target. It is strict: it refuses a
// webhook whose signature the library of Standard Webhooks does not accept, and a message that exceeds
// the limits of ntfy.
type receiver struct {
	t    *testing.T
	kind wake.Kind
	*httptest.Server
	mu       sync.Mutex
	got      []received
	breaking []peopletest.Fault
	rejected []string
}

// received is a message that the receiver has accepted.
type received struct {
	user   string
	header http.Header
	body   []byte
	text   string // the fields of the decoded body, one after another
}

func newReceiver(t *testing.T, kind wake.Kind) *receiver {
	r := &receiver{t: t, kind: kind}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		require.Empty(t, r.rejected)
	})
	return r
}

// settings returns settings with a target for each person of package peopletest.
func (r *receiver) settings() wake.Settings {
	s := wake.Settings{WebURL: inbox}
	for _, user := range []string{peopletest.Ann, peopletest.Bob, peopletest.Mallory} {
		s.Targets = append(s.Targets, r.target(user))
	}
	return s
}

func (r *receiver) target(user string) wake.Target {
	secret := token
	if r.kind == wake.Webhook {
		secret = webhookSecret
	}
	file := filepath.Join(r.t.TempDir(), "secret")
	require.NoError(r.t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	t := wake.Target{Name: user, Kind: r.kind, URL: r.URL + "/" + user, SecretFile: file}
	switch r.kind {
	case wake.Ntfy:
		t.URL, t.Topic = r.URL, "nod-"+user
	case wake.Form, wake.JSON:
		t.Fields = []wake.Field{{"title", "{title}"}, {"message", "{text}"}, {"url", "{link}"}, {"priority", "{priority}"}, {"token", "{secret}"}, {"tag", "{event} {risk} {id} {project}"}}
		t.Headers = []wake.Field{{"X-Key", "key {secret}"}}
		t.Priorities = wake.Priorities{Low: -1, High: 1, Ended: -2}
	}
	return t
}

func (r *receiver) Open(log *slog.Logger) people.Carrier {
	c, err := wake.New(r.settings(), log)
	require.NoError(r.t, err)
	return c
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 20<<10))
	if err != nil {
		r.reject(w, err.Error())
		return
	}
	fault, breaks := r.fault()
	if breaks && fault != peopletest.Lost {
		fail(w, fault)
		return
	}
	got, err := r.accept(req, body)
	if err != nil {
		r.reject(w, err.Error())
		return
	}
	r.mu.Lock()
	r.got = append(r.got, got)
	r.mu.Unlock()
	if breaks {
		fail(w, fault)
	}
}

// fail makes one call fail. Cut and Lost end the connection without a reply.
func fail(w http.ResponseWriter, fault peopletest.Fault) {
	switch fault {
	case peopletest.Slow:
		w.Header().Set("Retry-After", strconv.Itoa(int(peopletest.SlowFor/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case peopletest.Broken:
		w.WriteHeader(http.StatusBadGateway)
	case peopletest.Locked:
		w.WriteHeader(http.StatusUnauthorized)
	case peopletest.Blocked:
		w.WriteHeader(http.StatusGone)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (r *receiver) fault() (peopletest.Fault, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.breaking) == 0 {
		return 0, false
	}
	fault := r.breaking[0]
	r.breaking = r.breaking[1:]
	return fault, true
}

func (r *receiver) reject(w http.ResponseWriter, why string) {
	r.mu.Lock()
	r.rejected = append(r.rejected, why)
	r.mu.Unlock()
	w.WriteHeader(http.StatusBadRequest)
}

// accept checks a call and decodes its body.
func (r *receiver) accept(req *http.Request, body []byte) (received, error) {
	got := received{user: strings.TrimPrefix(req.URL.Path, "/"), header: req.Header, body: body}
	if req.Method != http.MethodPost {
		return got, fmt.Errorf("a call with %s", req.Method)
	}
	if r.kind == wake.Form {
		form, err := url.ParseQuery(string(body))
		got.text = fmt.Sprint(form["title"], form["message"], form["url"], form["priority"], form["tag"])
		return got, orKey(err, req, form.Get("token"))
	}
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		return got, err
	}
	switch r.kind {
	case wake.Webhook:
		data := all["data"].(map[string]any)
		got.text = fmt.Sprint(all["type"], data)
		verifier, err := standardwebhooks.NewWebhook(webhookSecret)
		if err == nil {
			err = verifier.Verify(body, req.Header)
		}
		return got, err
	case wake.Ntfy:
		return r.acceptNtfy(req, got, all)
	}
	got.text = fmt.Sprint(all["title"], all["message"], all["url"], all["priority"], all["tag"])
	return got, orKey(nil, req, all["token"].(string))
}

// orKey returns err. If err is nil and the call has a wrong key, orKey returns an error with the key. The
// parameter said is the key in the body; another key is in a header.
func orKey(err error, req *http.Request, said string) error {
	if err == nil && (said != token || req.Header.Get("X-Key") != "key "+token) {
		return fmt.Errorf("the key is %q", said)
	}
	return err
}

// acceptNtfy checks the rules of ntfy's JSON publishing: a POST to the root, a known field in each
// member, a priority of 1 to 5 and a message that is no attachment.
func (r *receiver) acceptNtfy(req *http.Request, got received, all map[string]any) (received, error) {
	if req.URL.Path != "/" || req.Header.Get("Authorization") != "Bearer "+token {
		return got, fmt.Errorf("ntfy refuses %s with %q", req.URL.Path, req.Header.Get("Authorization"))
	}
	for name := range all {
		if !strings.Contains(" topic title message priority click ", " "+name+" ") {
			return got, fmt.Errorf("ntfy has no field %s", name)
		}
	}
	text, level := all["message"].(string), all["priority"].(float64)
	if len(text) > 4096 || text == "" || level < 1 || level > 5 {
		return got, fmt.Errorf("ntfy refuses a message of %d bytes with the priority %v", len(text), level)
	}
	got.user = strings.TrimPrefix(all["topic"].(string), "nod-")
	got.text = fmt.Sprint(all["title"], " ", text, " ", all["click"], " ", level)
	return got, nil
}

func (r *receiver) Read(user string) (messages []peopletest.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range r.got {
		if m.user == user {
			messages = append(messages, peopletest.Message{ID: strconv.Itoa(i), Text: m.text})
		}
	}
	return messages
}

func (r *receiver) Does(string, peopletest.Act) bool { return false }

func (r *receiver) Break(fault peopletest.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breaking = append(r.breaking, fault)
}

func (r *receiver) last() received {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.got) - 1; i >= 0; i-- {
		if r.got[i].user == peopletest.Ann {
			return r.got[i]
		}
	}
	r.t.Fatal("Ann got no message")
	return received{}
}
