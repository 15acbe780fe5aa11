package mcp_test

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/internal/golden"
	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/schemas"
)

// goldenNod is the fake nod for a transcript. Its methods Share and Session always fail.
type goldenNod struct{ *golden.Nod }

func (goldenNod) Share(context.Context, schemas.Share) (schemas.StandingAnswer, error) {
	return schemas.StandingAnswer{}, schemas.Errorf(schemas.CodeInternal, "nothing is shared here")
}

func (goldenNod) Session(context.Context, string) (schemas.Session, error) {
	return schemas.Session{}, schemas.Errorf(schemas.CodeInternal, "no session is read here")
}

// TestTranscripts replays the transcripts in testdata. Each contains the messages of a client and the
// server's responses, in the earlier or the later version of the protocol.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Files(t, func(t *testing.T, transcript string) {
		nod := golden.NewNod()
		s := serve(t, goldenNod{nod}, mcp.Options{Project: "/home/ann/app", SignOfLife: time.Hour})
		in, client := io.Pipe()
		heard, out := io.Pipe()
		ended, lines := make(chan error, 1), make(chan string, 100)
		go func() { ended <- s.ServeStdio(context.Background(), in, out) }()
		go func() {
			for each := bufio.NewScanner(heard); each.Scan(); {
				lines <- each.Text()
			}
		}()
		golden.Replay(t, transcript, nod, map[string]golden.Side{"client": {
			Says: func(text string) {
				_, err := io.WriteString(client, text+"\n")
				require.NoError(t, err)
			},
			Hears: func() string { return golden.Next(t, lines) },
			JSON:  true,
		}})
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
		require.Empty(t, lines, "the client hears nothing else")
	})
}
