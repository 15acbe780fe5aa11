package opencode_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/internal/golden"
	"github.com/nodbus/nod/connectors/agents/opencode"
)

// TestTranscripts replays the transcripts in testdata. A line that begins with "# serves PATH" holds
// OpenCode's response to GET PATH. A line that begins with "opencode" holds an event from OpenCode. A
// line that begins with "> opencode" holds a request to OpenCode, other than a GET, in the form METHOD
// PATH BODY.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Files(t, func(t *testing.T, transcript string) {
		served := map[string]string{}
		for line := range strings.SplitSeq(transcript, "\n") {
			if path, body, found := strings.Cut(strings.TrimPrefix(line, "# serves "), ": "); found && strings.HasPrefix(line, "# serves ") {
				served[path] = body
			}
		}
		events, posted := make(chan string), make(chan string, 10)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch body, known := served[r.URL.Path]; {
			case r.Method != http.MethodGet:
				text, _ := io.ReadAll(r.Body) // a truncated body makes the comparison fail
				posted <- fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, text)
				_, _ = io.WriteString(w, "true") // after an error golden.Replay fails the test
			case r.URL.Path == "/event":
				w.Header().Set("Content-Type", "text/event-stream")
				for {
					w.(http.Flusher).Flush()
					select {
					case e := <-events:
						_, _ = fmt.Fprintf(w, "data: %s\n\n", e) // after an error golden.Replay fails the test
					case <-r.Context().Done():
						return
					}
				}
			case known:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body) // after an error golden.Replay fails the test
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(srv.Close)
		nod := golden.NewNod()
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		followed, ended := make(chan struct{}, 10), make(chan error, 1)
		go func() {
			ended <- opencode.Run(ctx, nod, opencode.Options{
				URL: srv.URL, Host: "devbox", User: "ann", Connected: func() { followed <- struct{}{} },
				DenyUnavailable: strings.HasPrefix(transcript, "# --on-unavailable deny"),
			})
		}()
		golden.Next(t, followed)
		golden.Replay(t, transcript, nod, map[string]golden.Side{"opencode": {
			Says: func(text string) {
				select {
				case events <- text:
				case <-time.After(waitAtMost):
					require.FailNow(t, "nobody reads OpenCode's events")
				}
			},
			Hears: func() string { return golden.Next(t, posted) },
		}})
		stop()
		require.NoError(t, <-ended)
		require.Empty(t, posted, "OpenCode is told nothing else")
	})
}
