package opencode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/nodbus/nod/schemas"
)

const (
	callWithin  = 15 * time.Second
	maxResponse = 32 << 20 // in bytes; large, because a message may contain the output of tools
	maxParents  = 16       // how many levels deep a session may be nested
)

type server struct {
	base *url.URL
	opts Options
	http *http.Client
}

func newServer(o Options) (*server, error) {
	base, err := url.Parse(cmp.Or(o.URL, DefaultURL))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("OpenCode's address is not a URL such as " + DefaultURL)
	}
	return &server{base: base, opts: o, http: &http.Client{
		// Follow no redirects, because only this server may get the replies and the password.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// displayURL returns the server's address without a password, for logs.
func (s *server) displayURL() string { return s.base.Redacted() }

// status is an error: an HTTP status other than 200 and 204.
type status int

func (s status) Error() string {
	return fmt.Sprintf("OpenCode answered %d %s", int(s), http.StatusText(int(s)))
}

// permanent reports whether the same call would fail with the same status again.
func (s status) permanent() bool {
	return s >= 400 && s < 500 && s != http.StatusRequestTimeout && s != http.StatusTooManyRequests
}

func (s *server) do(ctx context.Context, method string, body any, query url.Values, path ...string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		encoded, err := schemas.Encode(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	to := s.base.JoinPath(path...)
	asks := url.Values{}
	maps.Copy(asks, query)
	if s.opts.Directory != "" {
		asks.Set("directory", s.opts.Directory)
	}
	to.RawQuery = asks.Encode()
	r, err := http.NewRequestWithContext(ctx, method, to.String(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.opts.Password != "" {
		r.SetBasicAuth(cmp.Or(s.opts.Username, "opencode"), s.opts.Password)
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		_ = resp.Body.Close()
		return nil, status(resp.StatusCode)
	}
	return resp, nil
}

func (s *server) get(ctx context.Context, into any, path ...string) error {
	return s.query(ctx, into, nil, path...)
}

func (s *server) query(ctx context.Context, into any, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	resp, err := s.do(ctx, http.MethodGet, nil, query, path...)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the rest of the body is not needed
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return fmt.Errorf("%s does not reply with JSON: is that OpenCode?", s.displayURL())
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(into)
}

func (s *server) events(ctx context.Context) (io.ReadCloser, error) {
	resp, err := s.do(ctx, http.MethodGet, nil, nil, "event")
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s does not send an event stream: is that OpenCode?", s.displayURL())
	}
	return resp.Body, nil
}

// pending returns the permissions that OpenCode lists as pending. known is false if OpenCode cannot
// list them. OpenCode before 1.1 has no list, and OpenCode 1.18 has none while a webfetch is pending.
func (s *server) pending(ctx context.Context) (all []permission, known bool, err error) {
	var list []wirePermission
	err = s.get(ctx, &list, "permission")
	var answered status
	if errors.As(err, &answered) && (answered == http.StatusNotFound || answered == http.StatusBadRequest) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the pending permissions: %w", err)
	}
	for _, one := range list {
		p, err := one.permission(false)
		if err != nil {
			return nil, false, fmt.Errorf("list the pending permissions: %w", err)
		}
		all = append(all, p)
	}
	return all, true, nil
}

// call is the tool call that needs a permission.
type call struct {
	Tool   string
	Status string
	Input  json.RawMessage
}

// finished reports whether the call has ended. Its permission then needs no answer, even if OpenCode
// still lists the permission as pending.
func (c call) finished() bool { return c.Status == "completed" || c.Status == "error" }

// stored reports whether the server has stored the input of the call. Kilo sometimes asks for a permission
// before it stores the input.
func (c call) stored() bool { return c.Tool != "" && c.Status != "pending" }

// call asks OpenCode for the tool call that needs the permission p. The result is empty if p has no
// call id, or if the message of p does not contain the call.
func (s *server) call(ctx context.Context, p permission) (call, error) {
	if p.MessageID == "" || p.CallID == "" {
		return call{}, nil
	}
	var message struct {
		Parts []struct {
			Type   string `json:"type"`
			CallID string `json:"callID"`
			Tool   string `json:"tool"`
			State  struct {
				Status string          `json:"status"`
				Input  json.RawMessage `json:"input"`
			} `json:"state"`
		} `json:"parts"`
	}
	if err := s.get(ctx, &message, "session", p.SessionID, "message", p.MessageID); err != nil {
		return call{}, fmt.Errorf("read the tool call: %w", err)
	}
	for _, part := range message.Parts {
		if part.Type == "tool" && part.CallID == p.CallID {
			return call{Tool: part.Tool, Status: part.State.Status, Input: part.State.Input}, nil
		}
	}
	return call{}, nil
}

type session struct {
	ID        string `json:"id"`
	ParentID  string `json:"parentID"`
	Directory string `json:"directory"`
	Title     string `json:"title"`
}

// sessions reads a session and its root session from OpenCode. The two are the same unless the session
// belongs to a sub-agent. sessions fails if the session is nested deeper than maxParents.
func (s *server) sessions(ctx context.Context, id string) (own, root session, err error) {
	for range maxParents {
		var at session
		if err := s.get(ctx, &at, "session", id); err != nil {
			return own, root, fmt.Errorf("read the session: %w", err)
		}
		if root = at; own.ID == "" {
			own = at
		}
		if at.ParentID == "" {
			return own, root, nil
		}
		id = at.ParentID
	}
	return own, root, errors.New("read the session: it is nested too deeply")
}

// reply sends r as the answer to the permission p. If p has an answer already, the error is the status 404.
func (s *server) reply(ctx context.Context, p permission, r reply, message string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	path, body := []string{"permission", p.ID, "reply"}, map[string]string{"reply": string(r)}
	if message != "" {
		body["message"] = message
	}
	if p.Old {
		path, body = []string{"session", p.SessionID, "permissions", p.ID}, map[string]string{"response": string(r)}
	}
	resp, err := s.do(ctx, http.MethodPost, body, nil, path...)
	if err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	return resp.Body.Close()
}
