package mcpgate_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// tally is a nod that allows every call whose arguments have the field "ok". It counts these calls.
type tally struct {
	mu      sync.Mutex
	allowed map[string]int
}

func (n *tally) Ask(_ context.Context, r schemas.Request) (schemas.Decision, error) {
	var fields map[string]any
	d := schemas.Decision{SessionID: r.SessionID, PendingID: r.PendingID, Outcome: schemas.Denied}
	if json.Unmarshal(r.ActionDetails, &fields) == nil && fields["ok"] != nil && fields["cwd, in the input"] == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(fields, "beside the arguments") // the calls that callsIn returns have no such field
		n.allowed[strings.TrimPrefix(r.ToolName, "mcp__fs__")+" "+sorted(fields)]++
		d.Outcome = schemas.Allowed
	}
	return d, nil
}

func sorted(v any) string {
	data, _ := json.Marshal(v) // cannot fail, because v comes from JSON
	return string(data)
}

func (*tally) Withdraw(context.Context, string, string, string) error { return nil }
func (*tally) Detach(context.Context, string, string, string) error   { return nil }

// serverInput collects the bytes that the server gets. When it is closed, it ends the server's output.
// When it gets the last call, it closes the channel last.
type serverInput struct {
	bytes.Buffer
	output io.Closer
	last   chan struct{}
}

func (s *serverInput) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(lastID)) && bytes.Contains(line, []byte(`"last"`)) {
		close(s.last)
	}
	return s.Buffer.Write(line)
}

func (s *serverInput) Close() error { return s.output.Close() }

// lastID is the id of the last call of the client. No other message has this id.
var lastID = rand.Text()

// Read ends the client's input after the server has got the last call.
func (s *serverInput) Read([]byte) (int, error) {
	<-s.last
	return 0, io.EOF
}

// lineEnds matches what Node, Python or Unicode take for the end of a line.
var lineEnds = regexp.MustCompile("\r\n|[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]")

// FuzzNothingUnjudged: whatever bytes the client sends, nod has allowed every tools/call that a reader
// could find in the server's input, as often as the call occurs there.
func FuzzNothingUnjudged(f *testing.F) {
	call := func(id, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + params + `}`
	}
	for _, text := range []string{
		"", "\n", "[]", "{}", "\x00", ping, readCall, call("1", `{"name":"x","arguments":{"ok":1}}`), call(`"a"`, `{"name":"x","arguments":{"ok":1,"cwd":"/"}}`),
		call("1", `{"name":"x","arguments":{"ok":1}}`) + "\n" + call("1", `{"name":"x","arguments":{"ok":2}}`),
		"[" + ping + "," + call("1", `{"name":"x","arguments":{"ok":1}}`) + "," + readCall + "]",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + "\r" + readCall + "\r}",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + "\u2028" + `"}}`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"ping","params":{"name":"x"}}`,
		`{"method":"0tools/CAll"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/Call","params":{"name":"x","Arguments":{"ok":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n" + readCall,
		`{"id":1,"method":"tools/call","params":{"name":"x","arguments":{"ok":1,"ok":2}}}`,
		"\xef\xbb\xbf" + readCall, "[[" + readCall + "]]", "[" + readCall + ",[" + readCall + "]]", call(`1.0`, `{"name":"x","arguments":{"ok":1}}`) + "\n" + call(`10e-1`, `{"name":"x","arguments":{"ok":1}}`),
		call(`null`, `{"name":"x","arguments":{"ok":1}}`), call(`{"a":1}`, `{"name":"x","arguments":{"ok":1}}`), call(`[1]`, `{"name":"x"}`), call(`true`, `{"name":"x"}`), call(`"\ud800"`, `{"name":"x","arguments":{"ok":1}}`),
		call("1", `{"name":"x","arguments":{"ok":1e0}}`), call("1", `{"name":"x","arguments":{"ok":1,"OK":2}}`), call("1", `{"name":"x","name ":"y","arguments":{"ok":1}}`),
		call("1", `{"name":"x","arguments":[{"ok":1}]}`), call("1", `[{"name":"x","arguments":{"ok":1}}]`), `{"id":1,"method":["tools/call"],"params":{"name":"x"}}`, `{"id":1,"method":"tools\u002fcall","params":{"name":"x"}}`,
		`{"id":1,"method":"tools/call ","params":{"name":"x"}}`, `{"id":1,"result":{},"method":"tools/call","params":{"name":"x"}}`, readCall + readCall, readCall + " " + readCall, readCall[:20] + "\n" + readCall[20:],
		call("1e0", `{"name":"x\u2028","arguments":{"ok":"`+"\u2028"+`"},"_meta":{"progressToken":1}}`),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		nod := &tally{allowed: map[string]int{}}
		out, end := io.Pipe()
		server := &serverInput{output: end, last: make(chan struct{})}
		client := io.MultiReader(bytes.NewReader(said), strings.NewReader("\n"+call(`"`+lastID+`"`, `{"name":"last","arguments":{"ok":1}}`)+"\n"), struct{ io.Reader }{server})
		var told bytes.Buffer
		err := mcpgate.Run(t.Context(), relay.Peer{In: &told, Out: client}, server, out, nod, mcpgate.Options{Name: "fs", Session: "s1"})
		require.NoError(t, err)
		for _, line := range lineEnds.Split(server.String(), -1) {
			for _, got := range callsIn([]byte(line)) {
				nod.allowed[got]--
				require.GreaterOrEqual(t, nod.allowed[got], 0, "%q reached the server in %q", got, server.String())
			}
		}
	})
}

// callsIn returns the calls of tools that a careless reader finds in a line. Such a reader ignores case
// and reads batches.
func callsIn(line []byte) (all []string) {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		batch = []json.RawMessage{line}
	}
	for _, raw := range batch {
		var m struct {
			Method string
			Params struct {
				Name      string
				Arguments map[string]any
			}
		}
		_ = json.Unmarshal(raw, &m) // m then contains what came before the error, and a careless reader may use that
		if !strings.Contains(strings.ToLower(m.Method), "tools/call") {
			continue
		}
		all = append(all, m.Params.Name+" "+sorted(m.Params.Arguments))
	}
	return all
}
