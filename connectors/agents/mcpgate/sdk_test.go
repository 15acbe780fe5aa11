package mcpgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// realNod is the interface to a running nod that cmd/nod uses.
type realNod struct{ *nod.Client }

func (n realNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	asked, err := n.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

func (n realNod) Withdraw(ctx context.Context, session, id, reason string) error {
	_, err := n.Client.Withdraw(ctx, session, id, reason)
	return err
}

// newServer returns an MCP server with a tool, a resource and a prompt. Before the tool answers, it
// asks the client's user and the client's model.
func newServer(asks bool) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "read", Description: "Reads a file.", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if asks {
			if _, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}); err != nil {
				return nil, err
			}
			//lint:ignore SA1019 servers of older protocol versions sample, and the gate passes it on
			if _, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1}); err != nil {
				return nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "read " + string(r.Params.Arguments)}}}, nil
	})
	s.AddResource(&sdk.Resource{Name: "r", URI: "file:///r"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///r", Text: "the resource"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "p"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "the prompt"}, nil
	})
	return s
}

// through connects a client to a server through a gate. The function serve starts the server.
func through(t *testing.T, version string, n mcpgate.Nod, serve func(pass func(in io.WriteCloser, out io.Reader))) *sdk.ClientSession {
	fromClient, clientIn := io.Pipe()
	clientOut, toClient := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(func(in io.WriteCloser, out io.Reader) {
			assert.NoError(t, mcpgate.Run(t.Context(), relay.Peer{In: toClient, Out: fromClient}, in, out, n, mcpgate.Options{Name: "files", Server: "files", Session: "s1"}))
		})
		_ = toClient.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
		//lint:ignore SA1019 servers of older protocol versions sample, and the gate passes it on
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			//lint:ignore SA1019 as above
			return &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: "m"}, Model: "m", Role: "assistant"}, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, &sdk.IOTransport{Reader: clientOut, Writer: clientIn}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(); <-ended })
	require.Equal(t, version, c.InitializeResult().ProtocolVersion)
	return c
}

// uses checks that the server's tool, resource and prompt work through the gate, and that nod
// decides the calls of the tool.
func uses(t *testing.T, c *sdk.ClientSession) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tools, err := c.ListTools(ctx, nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 1)
	resource, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: "file:///r"})
	require.NoError(t, err)
	require.Equal(t, "the resource", resource.Contents[0].Text)
	prompt, err := c.GetPrompt(ctx, &sdk.GetPromptParams{Name: "p"})
	require.NoError(t, err)
	require.Equal(t, "the prompt", prompt.Description)
	call := func(arguments string) (string, bool) {
		result, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "read", Arguments: json.RawMessage(arguments)})
		require.NoError(t, err)
		return result.Content[0].(*sdk.TextContent).Text, result.IsError
	}
	text, failed := call(`{"path":"yes"}`)
	require.Equal(t, `read {"path":"yes"}`, text)
	require.False(t, failed)
	text, failed = call(`{"path":"edit"}`)
	require.Equal(t, `read {"path":"other"}`, text)
	require.False(t, failed)
	text, failed = call(`{"path":"no"}`)
	require.Equal(t, "Denied by nodtest: not this one", text)
	require.True(t, failed)
}

func byPath(p schemas.Prompt) nodtest.Answer {
	var in struct{ Path string }
	_ = json.Unmarshal(p.Request.ActionDetails, &in) // without a path the call stays pending
	switch in.Path {
	case "yes":
		return nodtest.Allow()
	case "edit":
		return nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"path":"other"}`)}
	case "no":
		return nodtest.Deny("not this one")
	}
	return nodtest.Answer{}
}

// An unmodified server works through the gate, on standard input and output and over HTTP, in the
// earlier and the later version of the protocol.
func TestAServerThroughTheGate(t *testing.T) {
	n := realNod{nodtest.Start(t, byPath)}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		asks := version < "2026" // in the later version, a server asks the client in the result of a call instead of by a request
		t.Run("stdio "+version, func(t *testing.T) {
			uses(t, through(t, version, n, func(pass func(io.WriteCloser, io.Reader)) {
				toServer, in := io.Pipe()
				out, fromServer := io.Pipe()
				session, err := newServer(asks).Connect(t.Context(), &sdk.IOTransport{Reader: toServer, Writer: fromServer}, nil)
				assert.NoError(t, err)
				go func() { _ = session.Wait(); _ = fromServer.Close() }()
				pass(in, out)
			}))
		})
		t.Run("HTTP "+version, func(t *testing.T) {
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newServer(asks) }, &sdk.StreamableHTTPOptions{Stateless: !asks})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer k" {
					http.Error(w, "no", http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, r)
			}))
			defer server.Close()
			defer server.CloseClientConnections()
			up := &mcpgate.Upstream{URL: server.URL, Header: http.Header{"Authorization": {"Bearer k"}}}
			c := through(t, version, n, func(pass func(io.WriteCloser, io.Reader)) { up.Run(t.Context(), pass) })
			uses(t, c)
			require.NoError(t, c.Close())
		})
	}
}

func jsonWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
	}
}

// If the gate cannot reach the server, or the server refuses the gate, the client gets an error for
// each request.
func TestAnUpstreamThatRefuses(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no login": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"it leads elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"no JSON":           func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") },
		"no answer":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"an end":            func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
		"it goes":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no login, in JSON": jsonWith(http.StatusUnauthorized, `{"error":"invalid_token"}`),
		"an ended session":  jsonWith(http.StatusNotFound, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`),
		"another response":  jsonWith(http.StatusOK, `{"jsonrpc":"2.0","id":"other","result":{}}`),
		"a web page":        func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			r := start(t, mcpgate.Options{}) // the test uses only the rig's methods for the client
			fromClient, clientIn := io.Pipe()
			clientOut, toClient := io.Pipe()
			r.client = peer{clientIn, bufio.NewReader(clientOut)}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				(&mcpgate.Upstream{URL: server.URL}).Run(t.Context(), func(in io.WriteCloser, out io.Reader) {
					assert.NoError(t, mcpgate.Run(t.Context(), relay.Peer{In: toClient, Out: fromClient}, in, out, r.nod, mcpgate.Options{Name: "fs", Session: "s1"}))
				})
			}()
			r.client.says(t, ping)
			assert.Contains(t, r.client.hears(t), `"id":"ping","error":{"code":-32000,"message":"the MCP server `+server.URL)
			require.NoError(t, clientIn.Close())
			<-ended
		})
	}
}
