package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testcollector"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
	"github.com/nodbus/nod/traces"
	"github.com/nodbus/nod/traces/otlp"
)

// tracing makes engines export their spans to a collector. All engines of the test share one exporter,
// which remembers the agent of each trace.
func tracing(t *testing.T) (*testcollector.Collector, func(*rig.Setup)) {
	t.Helper()
	c := testcollector.Start(t)
	variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_BSP_SCHEDULE_DELAY": "5"}
	config, on, err := otlp.FromEnvironment(func(name string) string { return variables[name] }, "0.0.0")
	if err != nil || !on {
		t.Fatal(on, err)
	}
	exporter := otlp.Open(config, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { exporter.Close(context.Background()) })
	return c, func(s *rig.Setup) { s.Engine.Traces = exporter }
}

// parent returns the traceparent of an agent's n-th span, and the id of its trace.
func parent(n int) (traceparent, id string) {
	id = fmt.Sprintf("4bf92f3577b34da6a3ce929d%08x", n)
	return "00-" + id + "-00f067aa0ba902b7-01", id
}

func asksIn(a *rig.Agent, traceparent string, r schemas.Request) *rig.Question {
	a.T.Helper()
	asked, err := a.Asker.Submit(traces.Continue(a.Ctx, traceparent, ""), r)
	a.NoError(err)
	return &rig.Question{OpenRequest: asked, Agent: a}
}

func names(spans []testcollector.Span) (all []string) {
	for _, s := range spans {
		if !slices.Contains(all, s.Name) {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return all
}

// The function of waits until a request's own span and at least one span of each wanted name have arrived,
// each with its parent. The order of the spans does not matter, because the engine's reply and the outbox run
// in parallel. The function returns the request's own span and all spans of its trace.
func of(env *rig.Env, c *testcollector.Collector, id string, want ...string) (root testcollector.Span, all []testcollector.Span) {
	env.T.Helper()
	env.Soon("the spans of "+id+": "+strings.Join(want, ", "), func() bool {
		i := slices.IndexFunc(c.Named("permission request"), func(s testcollector.Span) bool { return s.Attributes["nod.request"] == id })
		if i < 0 {
			return false
		}
		root = c.Named("permission request")[i]
		all = slices.DeleteFunc(c.Spans(), func(s testcollector.Span) bool { return s.Trace != root.Trace })
		ids := map[string]bool{}
		for _, s := range all {
			ids[s.ID] = true
		}
		found := names(all)
		return !slices.ContainsFunc(all, func(s testcollector.Span) bool { return s.Name != root.Name && !ids[s.Parent] }) &&
			!slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(found, name) })
	})
	return root, all
}

// Without an exporter, no message of nod and no record has a trace, even if the agent sends one. If the
// agent has no trace, its request has no header at all.
func TestWithoutAnExporterNothingIsTraced(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	env.Registers("tg", "carrier", false)
	raw := env.RawConn(roles.ID{Role: roles.Engine})
	heard := make(chan *nats.Msg, 1000)
	for _, subject := range []string{"nod.v1.request.>", "nod.v1.answer.>"} {
		_, err := raw.ChanSubscribe(subject, heard)
		env.NoError(err)
	}
	_, err := env.RawConn(roles.AgentID("ada")).ChanSubscribe(schemas.DecisionSubject("ada", "*", "*"), heard)
	env.NoError(err)
	env.NoError(raw.Flush())
	ada := env.Agent("ada")
	plain := ada.Asks(rig.Deploy("S", "plain"))
	given, _ := parent(1)
	traced := asksIn(ada, given, rig.Deploy("S", "traced"))
	for _, q := range []*rig.Question{plain, traced} {
		env.Nil(env.Stored(q.Key).Record.Trace)
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
		env.Nil(env.Stored(q.Key).Record.Trace)
	}
	env.Soon("both decisions", func() bool { return len(heard) >= 6 })
	requests := 0
	for len(heard) > 0 {
		m := <-heard
		if m.Subject == schemas.RequestSubject("ada", "S", "traced") {
			env.Equal(nats.Header{"traceparent": {given}}, m.Header)
			requests++
			continue
		}
		env.Empty(m.Header, m.Subject)
	}
	env.Equal(1, requests)
	stream, err := env.Raw.Stream(env.Ctx, "permission_prompts")
	env.NoError(err)
	first := stream.CachedInfo().State.FirstSeq
	prompt, err := stream.GetMsg(env.Ctx, first)
	env.NoError(err)
	for name := range prompt.Header {
		env.True(strings.HasPrefix(name, "Nats-"), name)
	}
}

// A prompt and a decision carry the trace of their request.
func TestTheTraceReachesThePromptAndTheDecision(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	env.Registers("tg", "carrier", false)
	decisions, err := env.RawConn(roles.AgentID("ada")).SubscribeSync(schemas.DecisionSubject("ada", "S", "q"))
	env.NoError(err)
	given, id := parent(1)
	q := asksIn(env.Agent("ada"), given, rig.Deploy("S", "q"))
	kept := env.Stored(q.Key).Record.Trace
	env.NotNil(kept)
	env.Contains(kept.Traceparent, id)
	stream, err := env.Raw.Stream(env.Ctx, "permission_prompts")
	env.NoError(err)
	env.Soon("the prompt", func() bool {
		msg, err := stream.GetLastMsgForSubject(env.Ctx, "nod.v1.prompt.tg.S.q")
		return err == nil && msg.Header.Get("traceparent") == kept.Traceparent
	})
	env.Ann().Denies(q)
	msg, err := decisions.NextMsg(rig.Patience)
	env.NoError(err)
	env.Equal(kept.Traceparent, msg.Header.Get("traceparent"))
	root, _ := of(env, c, "q")
	env.Equal("denied", root.Attributes["nod.outcome"])
}

func TestTheSpansOfEachEndOfARequest(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced)
	ada := env.Agent("ada")
	given, id := parent(1)

	asksIn(ada, given, rig.Lookup("S", "ruled"))
	ruled := []string{"ask", "check policy", "deliver", "permission request", "store", "sync"}
	root, all := of(env, c, "ruled", ruled...)
	env.Equal(id, root.Trace)
	env.Equal([]string{"allowed", "policy", "allow Lookup"}, []string{root.Attributes["nod.outcome"], root.Attributes["nod.decided_by"], root.Attributes["nod.rule"]})
	env.Equal(ruled, names(all))

	asksIn(ada, "nonsense", rig.Call("Forbidden", "S", "malformed"))
	root, _ = of(env, c, "malformed")
	env.Empty(root.Parent, "the trace begins here")
	env.Equal("denied", root.Attributes["nod.outcome"])

	ada.Asks(rig.Deploy("S", "gone"))
	ada.Withdraws("S", "gone")
	root, _ = of(env, c, "gone", "route", "decide", "wait for person")
	env.Equal([]string{"withdrawn", "agent"}, []string{root.Attributes["nod.outcome"], root.Attributes["nod.decided_by"]})

	env.Timeout("T", time.Second)
	late := ada.Asks(rig.Deploy("T", "late"))
	d := late.Ends(schemas.TimedOut)
	root, all = of(env, c, "late", "decide", "wait for person")
	env.Equal([]string{"timed_out", "clock"}, []string{root.Attributes["nod.outcome"], root.Attributes["nod.decided_by"]})
	wait := all[slices.IndexFunc(all, func(s testcollector.Span) bool { return s.Name == "wait for person" })]
	env.GreaterOrEqual(wait.End.Sub(wait.Start), time.Second-2*time.Millisecond) // deadlines are whole milliseconds
	env.True(wait.End.Equal(d.DecidedAt), "%s %s", wait.End, d.DecidedAt)

	tool := rig.Call("rm -rf /home/ann", "S", "odd") // an agent may name its tool as it likes
	env.Ann().Denies(ada.Asks(tool))
	root, _ = of(env, c, "odd")
	env.NotContains(root.Attributes, "gen_ai.tool.name")

	env.Apply(`{"approvers": {"people": []}}`)
	ada.Refused(rig.Deploy("S", "refused"), schemas.CodeUndeliverable)
	root, _ = of(env, c, "refused")
	env.True(root.Failed)
	env.Equal("UNDELIVERABLE", root.Attributes["error.type"])
}

// The headers of a request do not change its decision, and no span contains hostile values of these headers.
func TestHostileHeadersChangeNoDecision(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced)
	env.Agent("ada")
	raw := env.RawConn(roles.AgentID("ada"))
	good, id := parent(1)
	for i, header := range []nats.Header{
		{"traceparent": {good}, "tracestate": {"a=\xff\xfe"}, "baggage": {"hostile=1"}},
		{"traceparent": {good}, "tracestate": {strings.Repeat("hostile=1,", 10_000)}},
		{"traceparent": {"01-" + id + "-00f067aa0ba902b7-01-" + strings.Repeat("hostile", 10_000)}},
		{"traceparent": slices.Repeat([]string{"hostile"}, 1000)},
		{"traceparent": {""}, "tracestate": {"hostile=1"}},
		{"traceparent": {"00-hostile\x00-00f067aa0ba902b7-01"}},
	} {
		r := rig.Lookup("S", fmt.Sprint("hostile", i))
		r.Type = schemas.TypeRequest
		data, err := schemas.Encode(&r)
		env.NoError(err)
		reply, err := raw.RequestMsg(&nats.Msg{Subject: schemas.RequestSubject("ada", "S", r.PendingID), Data: data, Header: header}, rig.Patience)
		env.NoError(err)
		var d schemas.Decision
		env.NoError(schemas.Decode(reply.Data, &d), "%s", reply.Data)
		env.Equal(schemas.Allowed, d.Outcome)
		root, _ := of(env, c, r.PendingID)
		env.Equal(i < 2, root.Trace == id, i)
		env.Empty(root.State)
	}
	bodies, _ := c.Received()
	for _, body := range bodies {
		env.NotContains(string(body), "hostile=")
		env.NotContains(string(body), "hostilehostile")
	}
}

// A request that is sent again stays in its first trace, even if the repeated message names another trace.
func TestARequestThatIsSentAgainStaysInItsTrace(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced, func(s *rig.Setup) { s.Engines = 2 })
	first, id := parent(1)
	second, other := parent(2)
	q := asksIn(env.Agent("ada"), first, rig.Deploy("S", "again"))
	again := rig.Deploy("S", "again")
	asksIn(env.Agent("ada"), second, again)
	env.Ann().Allows(q)
	root, _ := of(env, c, "again")
	env.Equal(id, root.Trace)
	asks := 0
	for _, s := range c.Spans() {
		env.NotEqual(other, s.Trace, s.Name)
		if s.Name == "ask" {
			asks++
		}
	}
	env.Equal(2, asks)
}

// Identical calls share a question, but each call keeps its own trace.
func TestAJoinedCallKeepsItsTraceAndLinksTheQuestion(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced, fewerPrompts, func(s *rig.Setup) { s.Engines = 1 })
	first, id := parent(1)
	second, other := parent(2)
	question := asksIn(env.Agent("ada"), first, rig.Deploy("S", "question"))
	joined := asksIn(env.Agent("ada"), second, rig.Deploy("S", "joined"))
	_, err := env.Ann().SaysOf(question, "allow_once", 2)
	env.NoError(err)
	joined.Ends(schemas.Allowed)
	asked, _ := of(env, c, "question")
	waited, _ := of(env, c, "joined", "wait for person")
	env.Equal([]string{id, other}, []string{asked.Trace, waited.Trace})
	env.Equal([]string{asked.Trace + "-" + asked.ID}, waited.Links)
}

// If an agent names the trace of another agent, its own trace only gets a link to that trace.
func TestAnAgentDoesNotEnterTheTraceOfAnother(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced)
	given, id := parent(1)
	asksIn(env.Agent("ada"), given, rig.Lookup("S", "mine"))
	of(env, c, "mine")
	asksIn(env.Agent("ben"), given, rig.Lookup("B", "foreign"))
	root, _ := of(env, c, "foreign")
	env.NotEqual(id, root.Trace)
	env.Equal([]string{id + "-00f067aa0ba902b7"}, root.Links)
	env.Equal("ben", root.Attributes["nod.agent"])
}

// this request has a new id, and a rule decides it without a record
func TestADecisionWithoutARecordHasItsSpans(t *testing.T) {
	t.Parallel()
	c, traced := tracing(t)
	env := rig.Start(t, traced, func(s *rig.Setup) { s.Settings = rig.Rules("Bash(ls:*)", "") })
	given, id := parent(1)
	r := rig.Shell("S", "fresh", "ls /home/ann")
	asked, err := env.Agent("ada").Asker.SubmitAs(traces.Continue(env.Ctx, given, ""), r)
	env.NoError(err)
	_, err = asked.Await(env.Ctx)
	env.NoError(err)
	fresh := []string{"ask", "check policy", "permission request", "store", "sync"}
	root, all := of(env, c, "fresh", fresh...)
	env.Equal(id, root.Trace)
	env.Equal([]string{"allowed", "policy"}, []string{root.Attributes["nod.outcome"], root.Attributes["nod.decided_by"]})
	env.Equal(fresh, names(all))
	_, err = env.Store.Records.Get(env.Ctx, "S.fresh")
	env.Error(err)
	bodies, _ := c.Received()
	for _, body := range bodies {
		env.NotContains(string(body), "/home")
		env.NotContains(string(body), "ls ")
	}
}
