package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// The rule's name in a span contains neither the rule's pattern nor the name of the person who made
// the rule.
func TestASpanNamesARuleWithoutItsPattern(t *testing.T) {
	for rule, shown := range map[string]string{
		"allow Bash(rm -rf /home/ann:*)": "allow Bash", "always Bash(npm test) in /app": "always Bash", "deny /etc/shadow": "deny", "": "", "WebFetch": "WebFetch", "mcp__x__y": "mcp__x__y", "Bash(rm -rf /home/ann:*) in /app": "Bash", "@read:/home/ann": "@read", "Bash rm -rf x": "Bash",
		"default": "default", "default secrets": "default secrets", "default nod": "default nod", "frozen by Ann": "frozen", "denied by Ann": "denied",
		"approval of q1 by Ann": "approval", "leave of Ann until 18:00": "leave", "already granted": "already granted", "default of Ann": "default", "/home/ann": "",
	} {
		require.Equal(t, shown, ruleName(rule), rule)
	}
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	require.Len(t, ruleName(string(long)), maxWord)
}

// Without an exporter, tracing costs a request nothing.
func TestTracesThatAreOffCostNoAllocation(t *testing.T) {
	e := &base{}
	c, ctx, rec := &caller{name: "ada"}, t.Context(), &schemas.Record{}
	s := &askState{verdict: policy.Verdict{Effect: policy.Ask}}
	var r schemas.Request
	d := &schemas.Decision{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		trace := e.beginTrace(c)
		began := trace.now()
		_ = trace.observe(ctx)
		trace.checked(s, began)
		trace.routed(s, began)
		trace.rejoin(rec)
		rec.Trace = joinTrace(trace.keep(), nil)
		trace.end(&r, nil, nil)
		_ = traceContext(ctx, rec)
		if _, end := e.traceDecide(ctx, rec, d); end != nil || e.traced(rec) {
			t.Error("something is traced")
		}
	}))
}
