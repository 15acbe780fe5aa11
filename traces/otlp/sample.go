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
	// perSecond and burst bound the traced requests of each agent. An agent chooses its trace's id
	// and its sampled flag, so the sampler alone would let it fill the queue of all.
	perSecond, burst = 20, 200
	// maxAgents is the largest number of agents with a bound of their own.
	maxAgents = 1000
	// maxOwned bounds the traces whose agents are remembered.
	maxOwned = 4096
)

// chooser decides which requests are traced, and which continue the trace that their agent names.
type chooser struct {
	sampler sdktrace.Sampler
	secret  [16]byte

	agents *callerlimit.Limits

	mu     sync.Mutex
	owners map[trace.TraceID]string // the agent of each trace
	oldest []trace.TraceID          // the keys of owners, as a ring
	next   int
}

func newChooser(sampler sdktrace.Sampler) *chooser {
	c := &chooser{
		sampler: sampler, agents: callerlimit.New(perSecond, burst, maxAgents),
		owners: map[trace.TraceID]string{}, oldest: make([]trace.TraceID, maxOwned),
	}
	_, _ = rand.Read(c.secret[:]) // it never fails
	return c
}

// begin is traces.Tracer.Begin. limited means that only the agent's bound keeps the request from
// being traced.
func (c *chooser) begin(agent string, parent trace.SpanContext) (root traces.Root, ok, limited bool) {
	c.mu.Lock() // also between the look at a trace's owner and its entry, so that of two agents only one gets the trace
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

// drawOf returns the id by which a sampler of a ratio chooses: an agent that chooses its trace's id
// must not thereby choose whether it is sampled.
func (c *chooser) drawOf(id trace.TraceID) (draw trace.TraceID) {
	sum := sha256.Sum256(append(c.secret[:], id[:]...))
	copy(draw[:], sum[:])
	return draw
}

// own remembers that a trace is an agent's, and forgets the oldest one.
func (c *chooser) own(id trace.TraceID, agent string) {
	if _, found := c.owners[id]; found {
		return
	}
	delete(c.owners, c.oldest[c.next])
	c.owners[id], c.oldest[c.next] = agent, id
	c.next = (c.next + 1) % maxOwned
}
