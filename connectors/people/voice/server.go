package voice

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	maxTalks     = 64
	maxSessions  = 8
	maxMessage   = 16 << 10 // the longest message of a client, in bytes
	minToken     = 16       // the shortest token, in characters
	perSecond    = 20       // the limit for requests of all clients, per second
	burst        = 100
	utterances   = 5 // the limit for utterances of a client, per second
	speechWithin = 25 * time.Second
	idleAfter    = 40 * time.Second // a client that polls counts as gone after this time without a poll
)

var (
	errForbidden = errors.New(noLongerKnown)
	errTookOver  = errors.New(tookOver)
	errStopped   = errors.New("nod stops: connect again")
	errGone      = errors.New("the client has gone")
	errMalformed = errors.New("malformed: send text, in JSON")
)

var httpserveNames = httpserve.Server{
	Name: "the voice connector", Flag: "connectors.voice.listen in settings.json", Default: DefaultListen,
	PublicURL: "connectors.voice.public_url in settings.json",
}

// UserID returns the user id of the person with this token. The id is a hash, so it may be stored and
// shown.
func UserID(token string) string {
	sum := sha256.Sum256([]byte("nod voice " + token))
	return "v-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:32])
}

// talks contains the open talk of each person: the conversation over the person's connected
// client.
type talks struct {
	mu    sync.Mutex
	open  map[string]*talk
	wrong map[string]map[string]int // how many wrong code words each person has said, by request; kept after the person's client has disconnected
}

// of returns the talk of a person, or nil if there is none.
func (ts *talks) of(user string) *talk {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.open[user]
}

// put makes t the person's talk. If the person has an older talk, put first ends the older talk and waits
// until it has ended. put returns false if there are too many talks.
func (ts *talks) put(t *talk) bool {
	user := t.from.UserID
	for {
		ts.mu.Lock()
		old := ts.open[user]
		if old == nil {
			defer ts.mu.Unlock()
			if len(ts.open) >= maxTalks {
				return false
			}
			if ts.open == nil {
				ts.open, ts.wrong = map[string]*talk{}, map[string]map[string]int{}
			}
			if ts.wrong[user] == nil {
				ts.wrong[user] = map[string]int{}
			}
			ts.open[user], t.wrong = t, ts.wrong[user]
			return true
		}
		ts.mu.Unlock()
		old.cancel(errTookOver)
		<-old.ended
		ts.remove(old)
	}
}

func (ts *talks) remove(t *talk) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.open[t.from.UserID] == t {
		delete(ts.open, t.from.UserID)
	}
}

func (ts *talks) endAll() {
	ts.mu.Lock()
	var all []*talk
	for _, t := range ts.open {
		all = append(all, t)
	}
	ts.mu.Unlock()
	for _, t := range all {
		t.cancel(errStopped)
		<-t.ended
		ts.remove(t)
	}
}

// server serves the voice clients while Carrier.Run runs.
type server struct {
	*Carrier
	desk  people.Desk
	addr  httpserve.Address
	ctx   context.Context
	limit *rate.Limiter
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(perSecond, burst) }

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ws", s.socket)
	mux.HandleFunc("GET /v1/speech", s.speech)
	mux.HandleFunc("POST /v1/transcripts", s.transcript)
	mux.HandleFunc("POST /v1/pair", s.pair)
	return s.protect(mux)
}

// protect refuses a request for another host, from a web page of another origin, or over the rate limit,
// before any handler runs.
func (s *server) protect(next http.Handler) http.Handler {
	guarded := http.MaxBytesHandler(http.NewCrossOriginProtection().Handler(next), maxMessage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch origin := r.Header.Get("Origin"); {
		case !s.addr.Answers(r.Host):
			refuse(w, http.StatusMisdirectedRequest, schemas.CodeForbidden, fmt.Sprintf("this is not the voice connector of %q: use %s", r.Host, s.addr.URL))
		case origin != "" && !slices.Contains(s.addr.Origins, origin):
			refuse(w, http.StatusForbidden, schemas.CodeForbidden, "requests from other sites are refused")
		case !s.limit.Allow():
			refuse(w, http.StatusTooManyRequests, schemas.CodeUnavailable, "too many requests: try again in a second")
		default:
			guarded.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, status int, code schemas.Code, text string) {
	reply(w, status, schemas.Errorf(code, "%s", text))
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // Encode fails if the client has gone
}

// user returns the user id that belongs to the token in an HTTP request. If the request has no
// token, it replies with an error.
func (s *server) user(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || len(token) < minToken {
		refuse(w, http.StatusUnauthorized, schemas.CodeUnauthorized, "send the client's token: Authorization: Bearer TOKEN")
		return "", false
	}
	return s.userID(token), true
}

// approver returns the user id that belongs to the token in an HTTP request. If that user is no
// approver, it replies with an error.
func (s *server) approver(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	if id, ok = s.user(w, r); !ok {
		return "", false
	}
	desk, known := s.desk.(approvers)
	if !known {
		return id, true
	}
	_, err := desk.Approver(r.Context(), id)
	var e *schemas.Error
	switch {
	case err == nil:
		return id, true
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden:
		refuse(w, http.StatusForbidden, schemas.CodeForbidden, "this voice client belongs to no approver: run nod pair voice, and nod voice --pair with its code")
	default:
		refuse(w, http.StatusServiceUnavailable, schemas.CodeUnavailable, "nod does not reply: try again")
	}
	return "", false
}

// pair submits the pairing code that a client has sent together with its token.
func (s *server) pair(w http.ResponseWriter, r *http.Request) {
	user, ok := s.user(w, r)
	if !ok {
		return
	}
	var body struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Code == "" {
		refuse(w, http.StatusBadRequest, schemas.CodeBadRequest, `send {"code": "CODE"}`)
		return
	}
	desk, ok := s.desk.(people.Pairer)
	if !ok {
		refuse(w, http.StatusNotImplemented, schemas.CodeForbidden, "this connector takes no pairing codes")
		return
	}
	err := desk.Pair(r.Context(), body.Code, schemas.From{UserID: user})
	var e *schemas.Error
	switch {
	case err == nil:
		reply(w, http.StatusOK, map[string]string{"user_id": user})
	case errors.As(err, &e) && e.Code == schemas.CodeNotFound:
		refuse(w, http.StatusNotFound, schemas.CodeNotFound, "no pairing waits for that code: run nod pair voice, and send the code that it shows")
	default:
		refuse(w, http.StatusServiceUnavailable, schemas.CodeUnavailable, "nod does not reply: try again")
	}
}

// start opens a talk with a person. If it cannot, it replies with an error.
func (s *server) start(w http.ResponseWriter, r *http.Request, user string, polls bool) (*talk, bool) {
	sessions := r.URL.Query()["session"]
	if len(sessions) > maxSessions || slices.ContainsFunc(sessions, func(id string) bool { return !schemas.ValidID(id) }) {
		refuse(w, http.StatusBadRequest, schemas.CodeBadRequest, fmt.Sprintf("session: name at most %d sessions by their ids", maxSessions))
		return nil, false
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	t := &talk{
		ctx: ctx, desk: s.desk, log: s.log, client: "voice-" + rand.Text(), sessions: sessions, polls: polls,
		in: make(chan func(context.Context)), ended: make(chan struct{}), cancel: cancel,
		ends: map[string]uint64{}, joined: map[string]bool{},
		dialogue: dialogue{from: schemas.From{UserID: user}, mouth: &mouth{
			margin: s.margin, rate: s.rate, reports: r.URL.Query().Get("reports") == "true", more: make(chan struct{}),
		}},
	}
	t.polled.Store(time.Now().UnixNano())
	if !s.talks.put(t) {
		cancel(nil)
		refuse(w, http.StatusServiceUnavailable, schemas.CodeUnavailable, "too many voice clients: close one")
		return nil, false
	}
	go func() {
		defer s.talks.remove(t)
		t.run()
	}()
	return t, true
}
