package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

const (
	// decidedAtOnce is the time for which request_permission waits for a decision even if its caller
	// does not want to wait, because nod may decide without a person.
	decidedAtOnce = time.Second
	// maxPolled is the largest number of requests of one session that permission_status knows.
	maxPolled = 64
	// maxStatusWait is the longest time for which permission_status waits.
	maxStatusWait = 60 * time.Second
)

// polled is a request of an agent that does not wait for the answer. The agent gets the answer by
// permission_status.
type polled struct {
	session, id string
	decided     chan struct{} // closed when result is set
	result      *mcp.CallToolResult
}

func (p *polled) isDecided() bool {
	select {
	case <-p.decided:
		return true
	default:
		return false
	}
}

// polling contains the polled requests, the oldest first. When the server stops, it withdraws those
// that are pending, and forgets all answers.
type polling struct {
	mu      sync.Mutex
	all     []*polled
	waiting sync.WaitGroup // counts the pending requests
}

// add adds a request. If the session already has maxPolled requests, add first removes the oldest of
// them that is decided. If all of them are pending, add returns an error.
func (p *polling) add(session, id string) (*polled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, oldest := 0, -1
	for i, one := range p.all {
		if one.session != session {
			continue
		}
		if own++; oldest < 0 && one.isDecided() {
			oldest = i
		}
	}
	switch {
	case own >= maxPolled && oldest < 0:
		return nil, fmt.Errorf("%d requests of this session are not decided yet: wait for one of them", own)
	case own >= maxPolled:
		p.all = slices.Delete(p.all, oldest, oldest+1)
	}
	one := &polled{session: session, id: id, decided: make(chan struct{})}
	p.all = append(p.all, one)
	p.waiting.Add(1)
	return one, nil
}

func (p *polling) find(session, id string) *polled {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.all, func(one *polled) bool { return one.session == session && one.id == id })
	if i < 0 {
		return nil
	}
	return p.all[i]
}

// await waits until no request is pending, or ctx ends.
func (p *polling) await(ctx context.Context) {
	done := make(chan struct{})
	go func() { p.waiting.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// askWithoutWaiting sends r to nod, and returns the decision if nod decides without a person. If not, it
// returns r's id after decidedAtOnce, and the decision comes later.
func (c *call) askWithoutWaiting(ctx context.Context, r schemas.Request) *mcp.CallToolResult {
	one, err := c.server.polling.add(r.SessionID, r.PendingID)
	if err != nil {
		return failed(err)
	}
	go c.server.decideLater(traced(c.server.life, c.Params.Meta), one, r)
	ctx, done := c.untilGone(ctx)
	defer done()
	return one.resultWithin(ctx, decidedAtOnce)
}

// decideLater waits for the decision about r. When the context life ends, it withdraws r. life is the
// server's context with the trace of the call.
func (s *Server) decideLater(life context.Context, one *polled, r schemas.Request) {
	defer s.polling.waiting.Done()
	one.result = failed(errors.New("nod failed on this request and refused it"))
	defer close(one.decided)
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("mcp: a request failed and was refused", "id", r.PendingID, "panic", p)
		}
	}()
	if d, err := s.ask(life, &r); err == nil {
		one.result = decisionResult(&r, &d)
		one.result.StructuredContent = permissionState{r.PendingID, string(d.Outcome)}
	} else {
		one.result = failed(err)
	}
}

// resultWithin returns the result of the request. If there is no decision after the duration wait, the
// result says that the request is pending.
func (p *polled) resultWithin(ctx context.Context, wait time.Duration) *mcp.CallToolResult {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.decided:
		return p.result
	case <-timer.C:
	case <-ctx.Done():
	}
	result := text("Not decided yet: a person is asked. You do not have the permission. Call permission_status with request_id " + p.id + " for the answer.")
	result.StructuredContent = permissionState{p.id, "pending"}
	return result
}

// permissionState is the state of a request for permissions: pending, or the outcome of its decision.
type permissionState struct {
	RequestID string `json:"request_id"`
	Status    string `json:"status"`
}

func decisionResult(r *schemas.Request, d *schemas.Decision) *mcp.CallToolResult {
	heard := agents.DescribeDecision(r, d)
	result := text(heard.Text)
	result.IsError = heard.IsError
	return result
}

// permissionStatus returns the answer to an earlier request of this session whose agent did not wait.
func (c *call) permissionStatus(ctx context.Context) *mcp.CallToolResult {
	var args struct {
		ID   string  `json:"request_id"`
		Wait float64 `json:"wait_seconds"`
	}
	if err := parseArguments(c.Params.Arguments, &args); err != nil {
		return failed(err)
	}
	if !(args.Wait >= 0 && args.Wait <= maxStatusWait.Seconds()) {
		return failed(fmt.Errorf("wait_seconds must be 0 to %d", int(maxStatusWait.Seconds())))
	}
	one := c.server.polling.find(c.session, args.ID)
	if one == nil {
		return failed(errors.New("no request with this id of this session is known here: ask again with request_permission"))
	}
	ctx, done := c.untilGone(ctx)
	defer done()
	defer c.keepAlive(ctx)()
	c.tellNotices(ctx, args.ID)
	return one.resultWithin(ctx, time.Duration(args.Wait*float64(time.Second)))
}
