package otlp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/internal/callerlimit"
	"github.com/nodbus/nod/traces"
)

const (
	// perSecond and burst bound the traced requests of each agent. The sampler alone would let an agent
	// fill the queue of all agents, because an agent chooses the id and the sampled flag of its trace.
	perSecond, burst = 20, 200
	// maxAgents is the largest number of agents that have separate bounds.
	maxAgents = 1000
	// maxOwned bounds the number of traces whose agents are remembered.
	maxOwned = 4096
)

// chooser decides which requests are traced. It also decides which of them continue the trace that
// their agent names.
type chooser struct {
	sampler sdktrace.Sampler
	secret  [16]byte

	agents *callerlimit.Limits

	mu     sync.Mutex
	owners map[trace.TraceID]string // the agent of each trace
	oldest []trace.TraceID          // the keys of the map owners, in a ring
	next   int
}

func newChooser(sampler sdktrace.Sampler) *chooser {
	c := &chooser{
		sampler: sampler, agents: callerlimit.New(perSecond, burst, maxAgents),
		owners: map[trace.TraceID]string{}, oldest: make([]trace.TraceID, maxOwned),
	}
	_, _ = rand.Read(c.secret[:]) // Read never fails
	return c
}

// begin does the work of traces.Tracer.Begin. The result limited means that only the agent's bound
// keeps the request from being traced.
func (c *chooser) begin(agent string, parent trace.SpanContext) (root traces.Root, ok, limited bool) {
	c.mu.Lock() // locked from the lookup of a trace's owner until a new owner is stored, so that only one agent gets the trace
	defer c.mu.Unlock()
	if owner, found := c.owners[parent.TraceID()]; found && owner != agent {
		root.Link, parent = parent, trace.SpanContext{}
	}
	id := parent.TraceID()
	if !parent.IsValid() {
		_, _ = rand.Read(id[:])
	}
	result := c.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: trace.ContextWithRemoteSpanContext(context.Background(), parent),
		TraceID:       c.drawOf(id), Name: "permission request", Kind: trace.SpanKindServer,
	})
	if result.Decision != sdktrace.RecordAndSample {
		return root, false, false
	}
	if !c.agents.Allow(agent) {
		return root, false, true
	}
	c.own(id, agent)
	root.Parent = parent.SpanID()
	root.Span = trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: traces.NewSpanID(), TraceFlags: trace.FlagsSampled, TraceState: result.Tracestate,
	})
	return root, true, false
}

// drawOf returns the id by which a ratio sampler chooses. It hashes the trace's id, so that an agent
// that chooses the id cannot choose whether it is sampled.
func (c *chooser) drawOf(id trace.TraceID) (draw trace.TraceID) {
	sum := sha256.Sum256(append(c.secret[:], id[:]...))
	copy(draw[:], sum[:])
	return draw
}

// own remembers that a trace belongs to an agent. It forgets the oldest remembered trace.
func (c *chooser) own(id trace.TraceID, agent string) {
	if _, found := c.owners[id]; found {
		return
	}
	delete(c.owners, c.oldest[c.next])
	c.owners[id], c.oldest[c.next] = agent, id
	c.next = (c.next + 1) % maxOwned
}
