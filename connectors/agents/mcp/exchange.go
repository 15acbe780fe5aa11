package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
)

// exchangeHeader is a header of HTTP requests. With it, the server passes the id of an exchange to the
// handlers of tool calls. A value in the context would not reach them, because in the earlier version
// of the protocol, a call gets the context of the client's session.
const exchangeHeader = "Nod-Visit"

// exchanges contains the HTTP exchanges whose response is not complete.
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

// remove removes an exchange after its response is complete.
func (e *exchanges) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[id].close()
	delete(e.open, id)
}

// find returns the HTTP exchange of a tool call, or nil if the call did not come over HTTP. If the
// exchange has ended, find returns an empty exchange whose context has ended.
func (e *exchanges) find(req *mcp.CallToolRequest) *exchange {
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

// awaitAnswers waits until all exchanges with tool calls have complete responses, or until ctx ends.
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

// exchange is an HTTP request and its response. Several goroutines write to the response: some write
// messages of the protocol, and one writes signs of life (see Options.SignOfLife).
type exchange struct {
	ctx                    context.Context // ends when the client is gone
	calls                  bool            // the request contains tool calls; false for a stream of notifications
	session, project, host string
	done                   chan struct{} // closed when the response is complete

	mu       sync.Mutex
	w        http.ResponseWriter
	begun    bool // the headers of the response are sent, so that comments may follow; see comment
	complete bool
}

func newExchange(ctx context.Context, w http.ResponseWriter) *exchange {
	return &exchange{ctx: ctx, w: w, done: make(chan struct{})}
}

func (e *exchange) Header() http.Header { return e.w.Header() }

func (e *exchange) WriteHeader(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.w.WriteHeader(status)
}

// Write writes data, which must be whole messages, because a comment may follow; see comment.
func (e *exchange) Write(data []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
	return e.w.Write(data)
}

func (e *exchange) FlushError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return http.NewResponseController(e.w).Flush()
}

// begin records that comments may be written to the response, because it is an event stream; see comment.
func (e *exchange) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
}

// comment writes a sign of life: a comment in the event stream, which clients ignore. It does nothing
// before the stream has begun and after it has ended.
func (e *exchange) comment() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun || e.complete {
		return
	}
	_, _ = io.WriteString(e.w, ": nod is here\n\n") // if the write fails, the client is gone, and e.ctx ends
	_ = http.NewResponseController(e.w).Flush()
}

func (e *exchange) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete = true
	close(e.done)
}
