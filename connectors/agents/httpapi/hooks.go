package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// maxHookBody is the largest size, in bytes, of a hook's input. It is far above nod's limit for a
// request, because the server must parse an input that is too large for nod in order to refuse it in the
// format of its event.
const maxHookBody = 4 << 20

// ProjectHeader is the HTTP header with the full path of the project, the directory in which Claude
// Code was started.
const ProjectHeader = "Nod-Project"

// hook answers one call of an HTTP hook of Claude Code, as the command `nod hook` would. The HTTP
// status is always 200, even if the token is invalid and the answer is a refusal. After any other
// status, Claude Code would continue as if it had no hook.
func (s *Server) hook(w http.ResponseWriter, r *http.Request) {
	var out bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("http: a hook failed", "panic", p)
			out.Reset()
			hook.Refuse(&out)
		}
		send(w, http.StatusOK, bytes.TrimSpace(out.Bytes()))
	}()
	agent, options, err := s.hookCall(r)
	connect := func(ctx context.Context) (hook.Nod, error) {
		if err != nil {
			return nil, err
		}
		return agent.Hook(ctx)
	}
	options.Stderr = stderrLog{s}
	body, unread := s.readJSON(w, r, maxHookBody)
	hook.Run(traced(r.Context(), r), hook.ClaudeCode(), input{bytes.NewReader(body), unread}, &out, connect, options)
}

// hookCall checks an HTTP request to hookPath. It returns the agent whose token the request has, and
// the options in the URL.
func (s *Server) hookCall(r *http.Request) (*Agent, hook.Options, error) {
	var o hook.Options
	if r.Method != http.MethodPost {
		return nil, o, schemas.Errorf(schemas.CodeUnknownAction, "call hooks with POST")
	}
	if err := s.refuseWebPage(r); err != nil {
		return nil, o, err
	}
	agent, err := s.authenticate(r)
	if err != nil {
		return nil, o, err
	}
	o, err = hookOptions(r.URL.Query())
	from, here := s.clientHost(r)
	if o.Host = from; here {
		o.User = s.opts.User
	}
	o.Project = r.Header.Get(ProjectHeader)
	return agent, o, err
}

// hookOptions returns the options in the query of a URL. The options are flags of `nod hook`.
func hookOptions(q url.Values) (o hook.Options, err error) {
	if q.Has("defer_after") { // nod can defer a call only with Claude Code's transcript, which may be on another machine
		return o, schemas.Errorf(schemas.CodeValidation, "defer_after: only the command nod hook knows whether a run can be repeated; leave it out")
	}
	if q.Has("host_timeout") {
		if o.HostTimeout, err = time.ParseDuration(q.Get("host_timeout")); err != nil || o.HostTimeout <= 0 {
			return hook.Options{}, schemas.Errorf(schemas.CodeValidation, "host_timeout: must be a duration such as 24h")
		}
	}
	switch o.OnUnavailable = hook.OnUnavailable(q.Get("on_unavailable")); o.OnUnavailable {
	case "", hook.UnavailableAsk, hook.UnavailableDeny:
		return o, nil
	}
	return hook.Options{}, schemas.Errorf(schemas.CodeValidation, "on_unavailable: must be ask or deny")
}

type input struct {
	*bytes.Reader
	err error
}

func (i input) Read(p []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	return i.Reader.Read(p)
}

type stderrLog struct{ *Server }

func (l stderrLog) Write(line []byte) (int, error) {
	l.opts.Log.Info("http: " + string(bytes.TrimSpace(line)))
	return len(line), nil
}
