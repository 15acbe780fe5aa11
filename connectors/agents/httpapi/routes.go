package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

type route struct {
	method, path string
	open         bool // the route needs no token; serve then gets a nil *Agent
	// serve writes the response. If it returns an error, it has written nothing.
	serve func(http.ResponseWriter, *http.Request, *Agent) error
}

// routes returns all routes except hookPath, which has its own format for refusals.
func (s *Server) routes() []route {
	return []route{
		{"POST", "/api/v1/requests", false, s.ask},
		{"GET", "/api/v1/requests/{id}", false, s.await},
		{"DELETE", "/api/v1/requests/{id}", false, s.withdraw},
		{"GET", "/api/v1/notices", false, s.notices},
		{"GET", "/api/v1/openapi.json", true, s.serveOpenAPI},
		{"GET", "/openapi.json", true, s.serveOpenAPI},
	}
}

// hookPath is the path to which Claude Code's HTTP hooks post their input.
const hookPath = "/api/v1/hooks/claude-code"

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range s.routes() {
		mux.HandleFunc(route.method+" "+route.path, func(w http.ResponseWriter, r *http.Request) { s.call(w, r, route) })
	}
	mux.HandleFunc(hookPath, s.hook)
	unknown := route{open: true, serve: func(_ http.ResponseWriter, r *http.Request, _ *Agent) error {
		return schemas.Errorf(schemas.CodeUnknownAction, "there is no %s %s here: see %s/api/v1/openapi.json", r.Method, r.URL.Path, s.addr.URL)
	}}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.call(w, r, unknown) })
	return mux
}

// call serves one HTTP request. It refuses a request that may come from a web page, checks the token,
// and calls route.serve. It also replies if route.serve returns an error or panics.
func (s *Server) call(w http.ResponseWriter, r *http.Request, route route) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("http: a call failed", "path", route.path, "panic", p)
			s.refuse(w, schemas.Errorf(schemas.CodeInternal, "nod failed on this call and allowed nothing"))
		}
	}()
	err := s.refuseWebPage(r)
	var agent *Agent
	if err == nil && !route.open {
		agent, err = s.authenticate(r)
	}
	if err == nil {
		err = route.serve(w, r, agent)
	}
	if err != nil && errors.Is(context.Cause(r.Context()), errStopping) {
		err = errStopping
	}
	if err != nil {
		s.refuse(w, err)
	}
}

// refusal is an error that has its own HTTP status instead of the usual status for its code.
type refusal struct {
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

// refuseWebPage returns an error if a request may come from a web page. Such a request has an Origin
// header, or a Sec-Fetch-Site header other than none, or it names a host that is not this server (see
// httpserve.Address.Answers).
func (s *Server) refuseWebPage(r *http.Request) error {
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case !s.addr.Answers(r.Host):
		return refusal{http.StatusMisdirectedRequest, schemas.Errorf(schemas.CodeForbidden, "this is not the server of %q: use %s", r.Host, s.addr.URL)}
	case len(r.Header.Values("Origin")) > 0, site != "" && site != "none":
		return schemas.Errorf(schemas.CodeForbidden, "web pages may not use this API")
	}
	return nil
}

// authenticate returns the agent whose bearer token the request has. If the token is missing or
// unknown, the code of the error is UNAUTHORIZED.
func (s *Server) authenticate(r *http.Request) (*Agent, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	agent := s.agent(strings.TrimSpace(token))
	if agent == nil || !strings.EqualFold(scheme, "Bearer") {
		return nil, schemas.Errorf(schemas.CodeUnauthorized, "send the token from the file that nod http names: Authorization: Bearer TOKEN")
	}
	return agent, nil
}

// readJSON returns the body of r. It returns an error if the body is longer than limit bytes or does
// not arrive within BodyWithin. The only accepted content type is application/json, because a form in a
// web page cannot send it.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refusal{http.StatusUnsupportedMediaType, schemas.Errorf(schemas.CodeBadRequest, "the Content-Type must be application/json")}
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(s.opts.BodyWithin)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, refusal{http.StatusRequestEntityTooLarge, schemas.Errorf(schemas.CodeValidation, "the body is longer than %d bytes", limit)}
	case err != nil:
		return nil, refusal{http.StatusRequestTimeout, schemas.Errorf(schemas.CodeBadRequest, "the body did not arrive whole in time")}
	}
	return body, conn.SetReadDeadline(time.Time{}) // remove the deadline, because the caller may now wait long for a decision
}

// refuse replies with err as an error of nod in JSON. The HTTP status depends on the error's code.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	var own *schemas.Error
	if !errors.As(err, &own) {
		own = schemas.Errorf(schemas.CodeUnavailable, "nod could not be asked: %v", err)
	}
	status := statusOf(own.Code)
	var chosen refusal
	if errors.As(err, &chosen) {
		status = chosen.status
	}
	switch {
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case own.Code == schemas.CodeUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	reply(w, status, own)
}

func statusOf(code schemas.Code) int {
	switch code {
	case schemas.CodeBadRequest, schemas.CodeValidation:
		return http.StatusBadRequest
	case schemas.CodeUnauthorized:
		return http.StatusUnauthorized
	case schemas.CodeForbidden:
		return http.StatusForbidden
	case schemas.CodeNotFound, schemas.CodeUnknownAction:
		return http.StatusNotFound
	case schemas.CodeConflict, schemas.CodeStale:
		return http.StatusConflict
	case schemas.CodeUndeliverable, schemas.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func reply(w http.ResponseWriter, status int, v any) {
	data, err := schemas.Encode(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"type":"nod.v1.error","code":"INTERNAL_ERROR","message":"nod could not encode its answer"}`)
	}
	send(w, status, data)
}

func send(w http.ResponseWriter, status int, data []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // if this fails, a slow client may keep the connection for longer
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // Write fails if the caller is gone
}
