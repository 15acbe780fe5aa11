package otlp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/nodbus/nod/traces"
)

const (
	// perSecond and burst bound the traced requests of each agent. An agent chooses its trace's id
	// and its sampled flag, so the sampler alone would let it fill the queue of all.
	perSecond, burst = 20, 200
	// maxAgents bounds the agents with a bound of their own; all further ones share one.
	maxAgents = 1000
	// maxOwned bounds the traces whose agents are remembered.
	maxOwned = 4096
)

// chooser decides which requests are traced, and which continue the trace that their agent names.
type chooser struct {
	sampler sdktrace.Sampler
	secret  [16]byte

	mu     sync.Mutex
	agents map[string]*rate.Limiter
	others *rate.Limiter
	owners map[trace.TraceID]string // the agent of each trace
	oldest []trace.TraceID          // the keys of owners, as a ring
	next   int
}

func newChooser(sampler sdktrace.Sampler) *chooser {
	c := &chooser{
		sampler: sampler, agents: map[string]*rate.Limiter{}, others: rate.NewLimiter(perSecond, burst),
		owners: map[trace.TraceID]string{}, oldest: make([]trace.TraceID, maxOwned),
	}
	_, _ = rand.Read(c.secret[:]) // it never fails
	return c
}

// begin is traces.Tracer.Begin. limited means that only the agent's bound keeps the request from
// being traced.
func (c *chooser) begin(agent string, parent trace.SpanContext) (root traces.Root, ok, limited bool) {
	if parent.IsValid() && !c.mayContinue(agent, parent.TraceID()) {
		root.Link, parent = parent, trace.SpanContext{}
	}
	id := parent.TraceID()
	if !parent.IsValid() {
		_, _ = rand.Read(id[:])
	}
	result := c.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: trace.ContextWithRemoteSpanContext(context.Background(), parent),
		TraceID:       c.drawOf(id), Name: "permission request", Kind: trace.SpanKindServer,
		Attributes: []attribute.KeyValue{attribute.String("nod.agent", agent)},
	})
	if result.Decision != sdktrace.RecordAndSample {
		return root, false, false
	}
	if !c.take(agent, id) {
		return root, false, true
	}
	root.Parent = parent.SpanID()
	root.Span = trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: traces.NewSpanID(), TraceFlags: trace.FlagsSampled, TraceState: result.Tracestate,
	})
	return root, true, false
}

// drawOf returns the id by which a sampler of a ratio chooses: an agent that chooses its trace's id
// must not thereby choose whether it is sampled.
func (c *chooser) drawOf(id trace.TraceID) (draw trace.TraceID) {
	sum := sha256.Sum256(append(c.secret[:], id[:]...))
	copy(draw[:], sum[:])
	return draw
}

// mayContinue reports whether no other agent has asked in this trace.
func (c *chooser) mayContinue(agent string, id trace.TraceID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner, found := c.owners[id]
	return !found || owner == agent
}

// take counts a traced request of an agent, and remembers that the trace is the agent's. It returns
// false if the agent has used up its bound.
func (c *chooser) take(agent string, id trace.TraceID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.agents[agent]
	switch {
	case limit != nil:
	case len(c.agents) < maxAgents:
		limit = rate.NewLimiter(perSecond, burst)
		c.agents[agent] = limit
	default:
		limit = c.others
	}
	if !limit.Allow() {
		return false
	}
	if _, found := c.owners[id]; !found {
		delete(c.owners, c.oldest[c.next])
		c.owners[id], c.oldest[c.next] = agent, id
		c.next = (c.next + 1) % maxOwned
	}
	return true
}
