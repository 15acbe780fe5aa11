package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/connectors/agents/internal/golden"
	"github.com/nodbus/nod/schemas"
)

// TestTranscripts replays the transcripts in testdata. The server must reply to each POST of Claude
// Code with the status and body in the transcript.
func TestTranscripts(t *testing.T) {
	golden.Files(t, func(t *testing.T, transcript string) {
		nod := golden.NewNod()
		r := fake(t, func(o *httpapi.Options) {
			o.Host, o.User = "devbox", "ann"
			o.Agents[0].Hook = func(context.Context) (hook.Nod, error) {
				if strings.HasPrefix(transcript, "# nod does not run") {
					return nil, schemas.Errorf(schemas.CodeUnavailable, "nod is not running: start it with nod up")
				}
				return nod, nil
			}
		})
		var answers func() answer
		golden.Replay(t, transcript, nod, map[string]golden.Side{"claude": {
			Says: func(text string) {
				path, body, _ := strings.Cut(text, " ")
				answers = r.later("POST", path, body)
			},
			Hears: func() string {
				got := answers()
				return fmt.Sprintf("%d %s", got.status, strings.TrimSuffix(got.body, "\n"))
			},
		}})
	})
}
