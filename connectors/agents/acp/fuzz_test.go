package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// chunks is a reader that returns at most size bytes at a time, as a pipe may.
type chunks struct {
	data []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:min(len(c.data), c.size)])
	c.data = c.data[n:]
	return n, nil
}

// closingWriter is the input of a peer. When it is closed, the output of the peer ends too, like that
// of a program that exits at the end of its input.
type closingWriter struct {
	bytes.Buffer
	other *io.PipeWriter
}

func (e *closingWriter) Close() error { return e.other.Close() }

// FuzzPassThrough: every line of the editor or the agent reaches the other one byte for byte, unless it
// is a permission request. The agent never gets an allow without a decision.
func FuzzPassThrough(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(f, err)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		var said []string
		for line := range strings.Lines(string(data)) {
			if _, rest, ok := strings.Cut(line, ": "); ok {
				said = append(said, rest)
			}
		}
		f.Add([]byte(strings.Join(said, "")), uint8(i))
	}
	for i, text := range []string{
		"", "\n", "\r\n\r\n", "{}", `{"id":1}`, "null\n[]\n1", "\x00\xff\n{", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"a":`,
		request("1", "s", "ls") + "\r\n" + request("1", "s", "ls") + "\n" + request("2", "s", "ls"),
		`{"method":"$/cancel_request","params":{"requestId":1}}` + "\n" + `{"method":"session/cancel","params":{"sessionId":"s"}}`,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":[],"_meta":{"claudeCode":1}}}}`,
		`{"id":1e400,"method":"session/request_permission"}` + "\n" + `{"id":-0.0,"method":"initialize","params":[]}`,
	} {
		f.Add([]byte(text), uint8(i))
	}
	f.Fuzz(func(t *testing.T, said []byte, size uint8) {
		fromEditor(t, said, int(size)+1)
		fromAgent(t, said, int(size)+1)
	})
}

// away is an acp.Connect that fails because nod is not running.
func away(context.Context) (acp.Nod, error) {
	return nil, schemas.Errorf(schemas.CodeUnavailable, "not running")
}

// fromEditor checks that every line of the editor reaches the agent. The sidecar drops only answers to
// permission requests, and this agent sends no such requests.
func fromEditor(t *testing.T, said []byte, size int) {
	agentOut, agentEnd := io.Pipe()
	agent := &closingWriter{other: agentEnd}
	var editor bytes.Buffer
	require.NoError(t, acp.Run(t.Context(), relay.Peer{In: &editor, Out: &chunks{bytes.Clone(said), size}}, relay.Peer{In: agent, Out: agentOut}, away, acp.Options{}))
	require.True(t, bytes.Equal(said, agent.Bytes()), "%q became %q", said, agent.Bytes())
	require.Empty(t, editor.Bytes())
}

// fromAgent checks that every line that cannot be a permission request reaches the editor, in order.
// Permission requests reach the editor too, because nod is not running. The last ones may be missing,
// if the agent ends first.
func fromAgent(t *testing.T, said []byte, size int) {
	editorOut, editorEnd := io.Pipe()
	defer editorEnd.Close()
	agent, editor := &closingWriter{other: editorEnd}, &bytes.Buffer{}
	require.NoError(t, acp.Run(t.Context(), relay.Peer{In: editor, Out: editorOut}, relay.Peer{In: agent, Out: &chunks{bytes.Clone(said), size}}, away, acp.Options{}))
	sure, maybe := sorted(said)
	sureHeard, maybeHeard := sorted(editor.Bytes())
	require.Equal(t, sure, sureHeard)
	for line, n := range maybeHeard {
		require.LessOrEqual(t, n, maybe[line], "%q", line)
	}
	require.NotContains(t, agent.String(), "allow")
	for line := range bytes.Lines(agent.Bytes()) { // without nod, the sidecar itself answers only cancelled requests, and requests with the same id
		var heard struct {
			Result struct{ Outcome struct{ OptionID string } }
		}
		require.NoError(t, json.Unmarshal(line, &heard))
		require.NotContains(t, []string{"yes", "always"}, heard.Result.Outcome.OptionID)
	}
}

// sorted divides data into lines. The result sure contains, in order, the lines that certainly are no
// permission requests. The result maybe counts how often each of the other lines occurs.
func sorted(data []byte) (sure string, maybe map[string]int) {
	var b strings.Builder
	maybe = map[string]int{}
	for line := range bytes.Lines(data) {
		var m struct{ Method string }
		if err := json.Unmarshal(line, &m); err == nil && m.Method == "session/request_permission" {
			maybe[string(line)]++
		} else {
			b.Write(line)
		}
	}
	return b.String(), maybe
}
