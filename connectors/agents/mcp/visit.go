package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
)

// visitHeader tells a tool call by which visit it came: in the protocol's
// earlier generation its context is that of its client's session.
const visitHeader = "Nod-Visit"

// visitors are the HTTP requests that are being served.
type visitors struct {
	mu   sync.Mutex
	open map[string]*visit
}

func (v *visitors) add(one *visit) (id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id = agents.NewID()
	v.open[id] = one
	return id
}

// remove ends a visit: its response is complete.
func (v *visitors) remove(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open[id].close()
	delete(v.open, id)
}

// of is the visit that a call came by; nil where it did not come over HTTP.
func (v *visitors) of(req *mcp.CallToolRequest) *visit {
	if req.Extra == nil || req.Extra.Header == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if one := v.open[req.Extra.Header.Get(visitHeader)]; one != nil {
		return one
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	return &visit{ctx: gone, complete: true}
}

// answered waits until the calls that came by now have their responses, or ctx
// ends.
func (v *visitors) answered(ctx context.Context) {
	v.mu.Lock()
	var calls []*visit
	for _, one := range v.open {
		if one.calls {
			calls = append(calls, one)
		}
	}
	v.mu.Unlock()
	for _, one := range calls {
		select {
		case <-one.done:
		case <-ctx.Done():
		}
	}
}

// visit is one HTTP request and its response, which two may write to: the
// protocol its messages, and the signs of life their comments.
type visit struct {
	ctx                    context.Context // until the client is gone
	calls                  bool            // rather than waiting for news
	session, project, host string
	done                   chan struct{} // closed when the response is complete

	mu       sync.Mutex
	w        http.ResponseWriter
	begun    bool // its headers are set
	complete bool
}

func newVisit(ctx context.Context, w http.ResponseWriter) *visit {
	return &visit{ctx: ctx, w: w, done: make(chan struct{})}
}

// Header is the response's.
func (v *visit) Header() http.Header { return v.w.Header() }

// WriteHeader begins the response.
func (v *visit) WriteHeader(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.w.WriteHeader(status)
}

// Write writes whole messages.
func (v *visit) Write(data []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begun = true
	return v.w.Write(data)
}

// FlushError sends what was written.
func (v *visit) FlushError() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return http.NewResponseController(v.w).Flush()
}

// begin says that the response is a stream of events, whose headers are set.
func (v *visit) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begun = true
}

// comment sends what every reader of an event stream passes over, if the
// response has begun.
func (v *visit) comment() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.begun || v.complete {
		return
	}
	_, _ = io.WriteString(v.w, ": nod is here\n\n") // who is gone is noticed elsewhere
	_ = http.NewResponseController(v.w).Flush()
}

func (v *visit) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.complete = true
	close(v.done)
}
