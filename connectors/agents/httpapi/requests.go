package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

const withdrawWithin = 5 * time.Second

// ask sends the request in the body to nod. It replies with 200 and the decision or, if the request is
// pending, with 202 and the receipt.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, agent *Agent) error {
	body, err := s.readJSON(w, r, schemas.MaxRequestBytes)
	if err != nil {
		return err
	}
	request, err := s.request(r, agent, body)
	if err != nil {
		return err
	}
	ctx, cancel := s.withCallTimeout(r)
	defer cancel()
	d, receipt, err := agent.Nod.Submit(traced(ctx, r), request)
	switch {
	case err != nil && !request.Rejoin && agents.MayBeOpen(err):
		withdrawUnseen(ctx, agent.Nod, request)
		return err
	case err != nil:
		return err
	case d != nil:
		reply(w, http.StatusOK, d)
		return nil
	}
	w.Header().Set("Location", "/api/v1/requests/"+schemas.Key(receipt.SessionID, receipt.PendingID))
	reply(w, http.StatusAccepted, receipt)
	return nil
}

// traced returns a context with the trace that the caller's headers name. Requests with this context
// belong to the trace.
func traced(ctx context.Context, r *http.Request) context.Context {
	return traces.Continue(ctx, r.Header.Get(traces.ParentField), r.Header.Get(traces.StateField))
}

// withCallTimeout returns the context of a call that does not wait for a person. The context ends after
// callWithin.
func (s *Server) withCallTimeout(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), callWithin)
}

// withdrawUnseen withdraws a request after Submit has failed, because nod may have stored the request.
// The caller cannot withdraw the request, because this process made the request's id and has not told
// the caller.
func withdrawUnseen(ctx context.Context, nod Nod, r schemas.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	_, _ = nod.Withdraw(ctx, r.SessionID, r.PendingID, "its caller never got its id") // if the withdrawal fails, the request ends at its deadline
}

// request decodes the body of an HTTP request. It adds missing fields: a new id, the time, the agent's
// name, the caller's machine and, if the caller is on this machine, the user of this process.
func (s *Server) request(r *http.Request, agent *Agent, body []byte) (schemas.Request, error) {
	var request schemas.Request
	whole, named := withDefaults(body)
	if err := schemas.Decode(whole, &request); err != nil {
		return request, err
	}
	// If the caller chose the id, this request may be a repetition. If withDefaults made the id, it is new.
	request.Rejoin = named
	if request.AgentName == "" {
		request.AgentName = agent.Name
	}
	from, here := s.clientHost(r)
	if request.Host == "" {
		request.Host = from
	}
	if request.User == "" && here {
		request.User = s.opts.User
	}
	return request, nil
}

// withDefaults adds the missing fields among fieldsWithDefaults to body, and reports whether body
// contained a pending_id. It keeps all bytes of body, so that Decode can still refuse ambiguous JSON,
// such as a duplicate field.
func withDefaults(body []byte) (whole []byte, named bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return body, false // schemas.Decode refuses this body and returns the reason
	}
	var missing []string
	for name, value := range map[string]string{
		"type": schemas.TypeRequest, "pending_id": agents.NewID(), "created_at": time.Now().UTC().Format(time.RFC3339Nano),
	} {
		if _, there := fields[name]; !there {
			missing = append(missing, `"`+name+`":"`+value+`"`)
		}
	}
	_, named = fields["pending_id"]
	if len(missing) == 0 {
		return body, named
	}
	_, rest, _ := bytes.Cut(body, []byte("{"))
	text := "{" + strings.Join(missing, ",")
	if len(fields) > 0 {
		text += ","
	}
	return append([]byte(text), rest...), named
}

// clientHost returns the name of the caller's machine, and reports whether the caller runs on this
// machine. The name of another machine is its IP address. Behind a proxy, the name is always
// "elsewhere", because the server cannot know the caller's machine.
func (s *Server) clientHost(r *http.Request) (host string, here bool) {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	switch {
	case err != nil || s.opts.BehindProxy:
		return "elsewhere", false
	case loopback.Is(ip):
		return s.opts.Host, true
	}
	return ip, false
}

// await replies with 200 and the decision about a request. If the request is still pending after the
// time in the parameter wait of the URL, await replies with 204.
func (s *Server) await(w http.ResponseWriter, r *http.Request, agent *Agent) error {
	session, id, err := requestKey(r)
	if err != nil {
		return err
	}
	wait, err := parseWait(r)
	if err != nil {
		return err
	}
	d, err := agent.Nod.Await(r.Context(), session, id, wait)
	switch {
	case err != nil:
		return err
	case d != nil:
		reply(w, http.StatusOK, d)
		return nil
	case r.Context().Err() != nil: // the caller is gone, or the server is stopping
		return context.Cause(r.Context())
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func parseWait(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > MaxWait {
		return 0, schemas.Errorf(schemas.CodeValidation, "wait: must be a duration such as 30s, of at most %s", schemas.FormatDuration(MaxWait))
	}
	return wait, nil
}

// withdraw withdraws a request, and replies with 200 and the request's decision.
func (s *Server) withdraw(w http.ResponseWriter, r *http.Request, agent *Agent) error {
	session, id, err := requestKey(r)
	if err != nil {
		return err
	}
	reason := r.URL.Query().Get("reason")
	if reason == "" {
		reason = "the agent stopped waiting"
	}
	ctx, cancel := s.withCallTimeout(r)
	defer cancel()
	d, err := agent.Nod.Withdraw(ctx, session, id, reason)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, d)
	return nil
}

// notices replies with the kept notices of a session. nod then forgets them. If there is no notice
// within the time in the parameter wait of the URL, the reply is 204.
func (s *Server) notices(w http.ResponseWriter, r *http.Request, agent *Agent) error {
	session := r.URL.Query().Get("session_id")
	if !schemas.ValidID(session) {
		return schemas.Errorf(schemas.CodeValidation, "name the session as /api/v1/notices?session_id=SESSION")
	}
	wait, err := parseWait(r)
	if err != nil {
		return err
	}
	notices, err := agent.Nod.Notices(r.Context(), session, wait)
	switch {
	case err != nil:
		return err
	case len(notices) > 0:
		reply(w, http.StatusOK, schemas.Notices{Type: schemas.TypeNotices, Notices: notices})
		return nil
	case r.Context().Err() != nil: // the caller is gone, or the server is stopping
		return context.Cause(r.Context())
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// requestKey returns the ids of the session and the request from a URL. The URL ends in
// /ID?session_id=SESSION or, like the header Location of a reply, in /SESSION.ID.
func requestKey(r *http.Request) (session, id string, err error) {
	session, id = r.URL.Query().Get("session_id"), r.PathValue("id")
	if both, rest, ok := strings.Cut(id, "."); ok && session == "" {
		session, id = both, rest
	}
	if !schemas.ValidID(session) || !schemas.ValidID(id) {
		return "", "", schemas.Errorf(schemas.CodeValidation, "name the request as /api/v1/requests/SESSION.ID, or as /api/v1/requests/ID?session_id=SESSION")
	}
	return session, id, nil
}
