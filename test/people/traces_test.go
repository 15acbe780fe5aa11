package people

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/nodbus/nod/internal/testcollector"
)

const (
	agentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	agentSpan  = "00f067aa0ba902b7"
)

// The spans of a request form one tree below the agent's span, although three processes of nod write
// them. The hook passes the trace on, and the first engine is killed with SIGKILL while the request
// waits. No span contains a part of the payload.
func TestTheSpansOfARequestAreOneTreeAlthoughItsEngineIsKilled(t *testing.T) {
	t.Parallel()
	c := testcollector.Start(t)
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20key", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test"}
	p.StartNod()
	began := time.Now()
	hook := p.Command("hook", "claude-code", "--host-timeout", "86400s")
	hook.Env = append(hook.Env, "TRACEPARENT=00-"+agentTrace+"-"+agentSpan+"-01", "TRACESTATE=vendor=1")
	hook.Stdin = strings.NewReader(`{"session_id":"traced","cwd":"/home/hidden-path","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make hidden-command TOKEN=hidden-secret"},"tool_use_id":"toolu_1"}`)
	var out, errs bytes.Buffer
	hook.Stdout, hook.Stderr = &out, &errs
	require.NoError(t, hook.Start())
	t.Cleanup(func() { _ = hook.Process.Kill() }) // Kill fails if the process has ended
	question := p.question("hidden-command")
	c.Await("show prompt", 1)
	c.Await("ask", 1)
	p.Kill()
	killed := time.Now()
	require.Empty(t, c.Named("permission request"), "the request's own span is written when it is over")
	p.StartNod()
	tapped := time.Now()
	p.press(question, "Allow once")
	require.NoError(t, hook.Wait(), errs.String())
	require.Contains(t, out.String(), `"permissionDecision":"allow"`)
	root := c.Await("permission request", 1)[0]
	for name, n := range map[string]int{"answer": 1, "decide": 1, "deliver": 2, "show outcome": 1, "wait for person": 1} { // several processes write these spans, so their order is random
		c.Await(name, n)
	}

	spans := c.Spans()
	byID, names := map[string]testcollector.Span{}, map[string]int{}
	for _, s := range spans {
		require.NotContains(t, byID, s.ID, s.Name)
		byID[s.ID] = s
		names[s.Name]++
	}
	for _, s := range spans {
		require.Equal(t, agentTrace, s.Trace, s.Name)
		require.Equal(t, "vendor=1", s.State, s.Name)
		require.Equal(t, "nod", s.Service)
		require.False(t, s.Failed, "%+v", s)
		require.False(t, s.Start.Before(began.Add(-time.Second)), "%+v", s)
		if s.ID != root.ID {
			require.Contains(t, byID, s.Parent, "%s has no parent", s.Name)
			require.False(t, s.Start.Before(root.Start), "%s began before the request", s.Name)
		}
	}
	require.Equal(t, agentSpan, root.Parent)
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, root.Kind)
	require.Equal(t, []string{"answer", "ask", "check policy", "decide", "deliver", "permission request", "route", "show outcome", "show prompt", "store", "sync", "wait for person"}, slices.Sorted(maps.Keys(names)))
	for name, n := range map[string]int{"ask": 1, "check policy": 1, "route": 1, "show prompt": 1, "answer": 1, "decide": 1, "wait for person": 1, "permission request": 1} {
		require.Equal(t, n, names[name], name)
	}
	require.Equal(t, "telegram", c.Named("show prompt")[0].Attributes["nod.channel"])
	require.Equal(t, "telegram", c.Named("answer")[0].Attributes["nod.channel"])
	require.Equal(t, "ask", c.Named("check policy")[0].Attributes["nod.verdict"])
	require.Equal(t, map[string]string{
		"nod.agent": "local", "nod.session": "traced", "nod.request": root.Attributes["nod.request"], "nod.kind": "tool_call", "gen_ai.tool.name": "Bash",
		"nod.outcome": "allowed", "nod.decided_by": "human", "nod.channel": "telegram", "nod.risk": root.Attributes["nod.risk"],
	}, root.Attributes)

	wait := c.Named("wait for person")[0]
	const apart = 500 * time.Millisecond // the largest difference between the broker's clock and the test's clock on one machine
	require.WithinRange(t, wait.Start, began.Add(-apart), killed)
	require.WithinRange(t, wait.End, tapped.Add(-apart), time.Now().Add(apart))
	require.False(t, wait.End.After(root.End))
	require.False(t, c.Named("show prompt")[0].End.After(killed.Add(apart)))

	bodies, headers := c.Received()
	for i, body := range bodies {
		for _, hidden := range []string{"hidden", "make", "TOKEN", "/home", "secret", "Ann", "4711"} {
			require.NotContains(t, string(body), hidden)
		}
		require.Equal(t, "a key", headers[i].Get("api-key"))
	}
}
