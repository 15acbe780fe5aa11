package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// visitHeader tells a tool call by which visit it came: in the protocol's
// earlier generation its context is that of its client's session.
const visitHeader = "Nod-Visit"

// visitors are the HTTP requests that are being served.
type visitors struct {
	mu   sync.Mutex
	open map[string]*visit
}

func (v *visitors) add(id string, one *visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open[id] = one
}

func (v *visitors) remove(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
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
	return &visit{ctx: gone, closed: true}
}

// visit is one HTTP request and its response, which two may write to: the
// protocol its messages, and the call's signs of life their comments.
type visit struct {
	ctx                    context.Context // until the client is gone
	session, project, host string

	mu     sync.Mutex
	w      http.ResponseWriter
	closed bool
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
	return v.w.Write(data)
}

// FlushError sends what was written.
func (v *visit) FlushError() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return http.NewResponseController(v.w).Flush()
}

// comment sends what every reader of an event stream passes over.
func (v *visit) comment() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	_, _ = io.WriteString(v.w, ": nod is asked\n\n") // who is gone is noticed elsewhere
	_ = http.NewResponseController(v.w).Flush()
}

// close ends the comments: the response is complete.
func (v *visit) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
}
