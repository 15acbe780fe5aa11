package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
)

// exchangeHeader tells a tool call by which visit it came: in the protocol's
// earlier generation its context is that of its client's session.
const exchangeHeader = "Nod-Visit"

// exchanges are the HTTP requests that are being served.
type exchanges struct {
	mu   sync.Mutex
	open map[string]*exchange
}

func (e *exchanges) add(one *exchange) (id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id = agents.NewID()
	e.open[id] = one
	return id
}

// remove ends a visit: its response is complete.
func (e *exchanges) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[id].close()
	delete(e.open, id)
}

// of is the visit that a call came by; nil where it did not come over HTTP.
func (e *exchanges) of(req *mcp.CallToolRequest) *exchange {
	if req.Extra == nil || req.Extra.Header == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.open[req.Extra.Header.Get(exchangeHeader)]; one != nil {
		return one
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	return &exchange{ctx: gone, complete: true}
}

// answered waits until the calls that came by now have their responses, or ctx
// ends.
func (e *exchanges) awaitAnswers(ctx context.Context) {
	e.mu.Lock()
	var calls []*exchange
	for _, one := range e.open {
		if one.calls {
			calls = append(calls, one)
		}
	}
	e.mu.Unlock()
	for _, one := range calls {
		select {
		case <-one.done:
		case <-ctx.Done():
		}
	}
}

// visit is one HTTP request and its response, which two may write to: the
// protocol its messages, and the signs of life their comments.
type exchange struct {
	ctx                    context.Context // until the client is gone
	calls                  bool            // rather than waiting for news
	session, project, host string
	done                   chan struct{} // closed when the response is complete

	mu       sync.Mutex
	w        http.ResponseWriter
	begun    bool // its headers are set
	complete bool
}

func newExchange(ctx context.Context, w http.ResponseWriter) *exchange {
	return &exchange{ctx: ctx, w: w, done: make(chan struct{})}
}

// Header is the response's.
func (e *exchange) Header() http.Header { return e.w.Header() }

// WriteHeader begins the response.
func (e *exchange) WriteHeader(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.w.WriteHeader(status)
}

// Write writes whole messages.
func (e *exchange) Write(data []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
	return e.w.Write(data)
}

// FlushError sends what was written.
func (e *exchange) FlushError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return http.NewResponseController(e.w).Flush()
}

// begin says that the response is a stream of events, whose headers are set.
func (e *exchange) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
}

// comment sends what every reader of an event stream passes over, if the
// response has begun.
func (e *exchange) comment() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun || e.complete {
		return
	}
	_, _ = io.WriteString(e.w, ": nod is here\n\n") // who is gone is noticed elsewhere
	_ = http.NewResponseController(e.w).Flush()
}

func (e *exchange) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete = true
	close(e.done)
}
