//go:build unix

package codex_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/codex"
	"github.com/nodbus/nod/connectors/agents/internal/golden"
)

// TestTranscripts replays the transcripts in testdata. Codex and its client must get exactly the bytes
// in the transcript.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Files(t, func(t *testing.T, transcript string) {
		nod := golden.NewNod()
		r := &rig{t: t, exit: make(chan int, 1)}
		r.run(codex.Options{Deny: strings.HasPrefix(transcript, "# --on-unavailable deny")}, nod)
		line := func(text string) string { return strings.TrimSuffix(text, "\n") }
		golden.Replay(t, transcript, nod, map[string]golden.Side{
			"client": {Says: func(text string) { r.sends(text + "\n") }, Hears: func() string { return line(r.reads()) }},
			"codex":  {Says: func(text string) { r.says(text + "\n") }, Hears: func() string { return line(r.heard()) }},
		})
		r.sends(`{"exit":0}` + "\n")
		assert.Empty(t, r.reads(), "the client is told nothing else, nor is Codex")
		assert.Zero(t, r.ended())
	})
}
