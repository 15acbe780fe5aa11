package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"
)

// Upstream is an MCP server that the gate reaches by streamable HTTP.
type Upstream struct {
	URL    string
	Header http.Header // added to each HTTP request, such as Authorization
	// Log is the log of failures, without the content of messages. nil discards it.
	Log *slog.Logger
}

const (
	maxEvent = 32 << 20
	// listenAgain is the pause until the gate opens the server's stream of notifications again after
	// the stream has ended.
	listenAgain = 5 * time.Second
	// goodbyeWithin is the time limit of the HTTP request that ends the session with the server.
	goodbyeWithin = 2 * time.Second
)

// CheckURL returns an error if the gate cannot reach an MCP server at this URL.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not the URL of an MCP server: write https://HOST/PATH", text)
	}
	return nil
}

// Run calls the function pass with a connection to the server. pass writes messages to in and reads
// messages from out, one on each line, as if the server used standard input and output. out ends after
// pass has closed in, or when ctx ends.
func (u *Upstream) Run(ctx context.Context, pass func(in io.WriteCloser, out io.Reader)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if u.Log == nil {
		u.Log = slog.New(slog.DiscardHandler)
	}
	out, answers := io.Pipe()
	l := &link{
		Upstream: u, ctx: ctx, cancel: cancel, answers: answers,
		// Do not follow a redirection, because it could lead the call and its token to another server.
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	context.AfterFunc(ctx, func() { _ = answers.Close() })
	pass(l, out)
	_ = l.Close() // Close never returns an error
	l.streams.Wait()
	l.goodbye()
}

// link is the connection to an upstream server. Only one goroutine calls Write at a time.
type link struct {
	*Upstream
	ctx     context.Context
	cancel  context.CancelFunc
	http    *http.Client
	streams sync.WaitGroup

	writing sync.Mutex // a goroutine holds it while it writes a line to answers
	answers *io.PipeWriter

	mu               sync.Mutex
	session, version string // the server's session id, and the protocol version of the session
}

// Write sends one message. It waits until the server has acknowledged a notification or a response, so
// that messages arrive in order. The response to a request is a later line of the output.
func (l *link) Write(line []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	m, err := parse(bytes.TrimSpace(line))
	if err != nil {
		return 0, err
	}
	if m.key == "" || m.method == "" {
		l.post(m)
	} else {
		l.streams.Go(func() { l.post(m) })
	}
	if m.method == methodReady {
		l.streams.Go(l.listen)
	}
	return len(line), nil
}

// Close ends the connection. Requests without a response then get none.
func (l *link) Close() error {
	l.cancel()
	return nil
}

// post sends one message, and passes on all messages in the server's HTTP response. A request always
// gets exactly one response. If the server sends none, post makes an error response.
func (l *link) post(m message) {
	request := m.key != "" && m.method != ""
	answered, err := l.exchange(m)
	switch {
	case l.ctx.Err() != nil:
	case err != nil && request && !answered:
		l.passOn(mustEncode(failure(m.id, codeServer, "the MCP server "+l.URL+" "+err.Error())))
	case err != nil:
		l.Log.Warn("mcp gate: the server did not take a message", "method", m.method, "error", err)
	}
}

func (l *link) exchange(m message) (answered bool, err error) {
	resp, err := l.do(http.MethodPost, m)
	if err != nil {
		return false, errors.New("cannot be reached: " + reasonOf(err))
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // the switch below refuses an unknown type
	switch {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent:
		err = errors.New("accepted the request without a response")
		if m.key == "" || m.method == "" {
			err = nil
		}
		return false, err
	case kind == "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		if err == nil && !json.Valid(body) {
			err = errors.New("sent a response that is not valid JSON")
		}
		if err != nil {
			return false, err
		}
		if answered = answers(m, body); !answered && resp.StatusCode/100 != 2 {
			return false, fmt.Errorf("answered with %s", resp.Status)
		}
		l.learn(m, resp.Header, body)
		l.passOn(body)
		if !answered {
			err = errors.New("sent no response to the request")
		}
		return answered, err
	case resp.StatusCode/100 == 2 && kind == "text/event-stream":
		return l.stream(m, resp)
	}
	return false, fmt.Errorf("answered with %s", resp.Status)
}

// answers reports whether raw contains the response to m. raw may be a batch.
func answers(m message, raw []byte) bool {
	all, _ := split(raw) // the gate drops raw if it is not JSON
	return slices.ContainsFunc(all, func(raw json.RawMessage) bool {
		got, err := parse(raw)
		return err == nil && m.key != "" && got.method == "" && got.key == m.key
	})
}

// stream passes on the events of an HTTP response. It reports whether one of them was the response to m.
func (l *link) stream(m message, resp *http.Response) (answered bool, err error) {
	for event, err := range sse.Read(resp.Body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return answered, errors.New("ended its response early: " + err.Error())
		}
		if event.Data == "" {
			continue
		}
		if answers(m, []byte(event.Data)) {
			answered = true
			l.learn(m, resp.Header, []byte(event.Data))
		}
		l.passOn([]byte(event.Data))
	}
	if !answered && m.key != "" && m.method != "" {
		err = errors.New("ended its response early")
	}
	return answered, err
}

// learn stores the session id and the protocol version from the response to the request initialize.
func (l *link) learn(m message, h http.Header, body []byte) {
	if m.method != methodInitialize {
		return
	}
	var response struct {
		Result struct{ ProtocolVersion string }
	}
	_ = json.Unmarshal(body, &response) // an error response has no version
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.version = h.Get("Mcp-Session-Id"), response.Result.ProtocolVersion
}

// listen passes on the messages that the server sends without a request of the client, until the
// connection ends. Some servers have no stream for such messages.
func (l *link) listen() {
	for l.ctx.Err() == nil {
		resp, err := l.do(http.MethodGet, message{})
		if err == nil {
			if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
				_ = resp.Body.Close()
				return
			}
			_, err = l.stream(message{}, resp)
			_ = resp.Body.Close()
		}
		if err != nil && l.ctx.Err() == nil {
			l.Log.Debug("mcp gate: the server's stream of notifications ended", "error", err)
		}
		select {
		case <-time.After(listenAgain):
		case <-l.ctx.Done():
		}
	}
}

// do sends one HTTP request. The body of a POST is m.
func (l *link) do(method string, m message) (*http.Response, error) {
	req, err := http.NewRequestWithContext(l.ctx, method, l.URL, bytes.NewReader(m.line))
	if err != nil {
		return nil, err
	}
	l.setHeader(req, m)
	return l.http.Do(req)
}

func (l *link) setHeader(req *http.Request, m message) {
	for name, values := range l.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if req.Method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Header.Set("Accept", "text/event-stream")
	}
	l.mu.Lock()
	session, version := l.session, l.version
	l.mu.Unlock()
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	params, _ := members(m.params)
	meta, _ := members(params["_meta"])
	if own := text(meta["io.modelcontextprotocol/protocolVersion"]); own != "" {
		version = own
	}
	if version != "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	if version < statelessSince || m.method == "" {
		return
	}
	req.Header.Set("Mcp-Method", m.method)
	name := text(params["name"])
	if m.method == "resources/read" {
		name = text(params["uri"])
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
}

// statelessSince is the first version of the protocol without sessions. In this version, each HTTP
// request repeats the message's method and name in headers.
const statelessSince = "2026-07-28"

// goodbye ends the session with the server. It may fail, because the server also ends old sessions by
// itself.
func (l *link) goodbye() {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), goodbyeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.URL, nil)
	if err != nil {
		return
	}
	l.setHeader(req, message{})
	if resp, err := l.http.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// passOn writes a message to the output as one line.
func (l *link) passOn(raw []byte) {
	if !json.Valid(raw) {
		l.Log.Warn("mcp gate: an event of the server that is not valid JSON was dropped")
		return
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	_, _ = l.answers.Write(append(oneLine(raw), '\n')) // Write fails if the gate has ended
}

// reasonOf returns an error of the HTTP client without the method and the URL, because the URL may
// contain a secret.
func reasonOf(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // if the member is not a string, the result is ""
	return s
}

func mustEncode(e envelope) []byte {
	line, err := encode(e)
	if err != nil { // impossible: e contains only texts
		return []byte("null")
	}
	return line
}
