package mcp_test

import (
	"flag"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

var minute = flag.Bool("minute", false, "run the test that waits for more than a minute")

// overAMinute is the time after which the approver answers. Some clients give up before that if they
// get no data.
const overAMinute = 65 * time.Second

// With the default options, the client gets an answer that comes after more than a minute, over each
// transport and with each version of the protocol. The HTTP clients in this test give up after a minute
// without data.
func TestAWaitOfMoreThanAMinute(t *testing.T) {
	if !*minute {
		t.Skip("it takes more than a minute of real time: -minute runs it, as .ci/run does")
	}
	t.Parallel()
	late := make(chan struct{})
	n := watch(nodtest.Start(t, func(schemas.Prompt) nodtest.Answer { <-late; return nodtest.Allow() }))
	answers := sync.OnceFunc(func() { close(late) })
	t.Cleanup(answers) // nod cannot stop while its approver waits for the channel late
	type ended struct {
		way    way
		result *sdk.CallToolResult
		err    error
		heard  *progress
	}
	answered := make(chan ended, len(ways()))
	for _, w := range ways() { // goroutines instead of subtests, because the number of parallel subtests may be limited
		heard := &progress{}
		s, o := serve(t, n, mcp.Options{}), heard.options()
		var c *sdk.ClientSession
		if w.http {
			c = reachHTTP(t, web(t, s).URL, w.version, bearer{next: (&wires{idle: time.Minute}).transport()}, o)
		} else {
			c = reach(t, s, w, o)
		}
		go func() {
			result, err := c.CallTool(t.Context(), callOf("approve", use("Deploy", `{"to":"`+w.name+`"}`, "")))
			answered <- ended{w, result, err, heard}
		}()
	}
	for range ways() {
		<-n.asked
	}
	person := time.NewTimer(overAMinute)
	defer person.Stop()
	select {
	case <-person.C:
	case e := <-answered:
		require.Fail(t, "answered before the person", "%s: %v %v", e.way.name, e.result, e.err)
	}
	answers()
	for range ways() {
		e := <-answered
		require.NoError(t, e.err, "%s: the client was still there", e.way.name)
		assert.Contains(t, said(t, e.result), `"allow"`)
		assert.GreaterOrEqual(t, len(e.heard.more), 3, "signs of life, at once and every 20 s")
	}
}
