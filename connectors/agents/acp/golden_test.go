package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// TestTranscripts replays the transcripts in testdata. A line "SIDE: TEXT" is output of SIDE, the editor or
// the agent. A line "> SIDE: TEXT" is the next line that SIDE must receive, byte for byte. At the end, no
// further line may arrive. The words race and deny in the first line set the options Race and Deny.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			replay(t, string(data))
		})
	}
}

func replay(t *testing.T, transcript string) {
	lines := strings.Split(strings.TrimSpace(transcript), "\n")
	options, lines := lines[0], lines[1:]
	r := start(t, acp.Options{
		Race: strings.Contains(options, "race"), Deny: strings.Contains(options, "deny"), Host: "devbox", User: "ann",
	})
	var open []*submission
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, ": ")
		switch word {
		case "#":
		case "agent":
			r.agent.says(t, rest)
		case "editor":
			r.editor.says(t, rest)
		case "> agent":
			require.Equal(t, rest, r.agent.hears(t))
		case "> editor":
			require.Equal(t, rest, r.editor.hears(t))
		case "> nod":
			a := <-r.nod.submissions
			require.JSONEq(t, rest, golden(t, a.Request))
			open = append(open, a)
		case "> withdrawn":
			require.Equal(t, rest, (<-r.nod.withdrawn).reason)
		case "nod":
			open[0].decisions <- decision(t, rest)
			open = open[1:]
		case "nod at once":
			r.nod.decided(decision(t, rest))
		case "nod fails":
			var e schemas.Error
			require.NoError(t, json.Unmarshal([]byte(rest), &e))
			r.nod.fails(&e)
		default:
			t.Fatalf("the transcript says %q", line)
		}
	}
	editor, agent := r.ends()
	assert.Empty(t, editor)
	assert.Empty(t, agent)
}

func decision(t *testing.T, text string) (d schemas.Decision) {
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	return d
}

// golden encodes a request, with fixed values in the fields that differ in each run of the test.
func golden(t *testing.T, r schemas.Request) string {
	assert.WithinDuration(t, time.Now(), r.CreatedAt, time.Minute)
	r.CreatedAt, r.PendingID = time.Time{}, "random"
	out, err := schemas.Encode(r)
	require.NoError(t, err)
	return string(out)
}
