package telegram

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func FuzzOnlyButtonDataIsRead(f *testing.F) {
	digest := strings.Repeat("ab", 32)
	f.Add(buttonData{digest, 1, actAllow}.data())
	f.Add(buttonData{digest, 30, actAllow}.data())
	f.Add(buttonData{digest, 1, "12"}.data() + "=")
	f.Add("v1:" + strings.Repeat("A", 43) + ":")
	f.Fuzz(func(t *testing.T, data string) {
		b, ok := readCallback(data)
		if !ok {
			return
		}
		require.Equal(t, data, b.data())
		require.Positive(t, b.waiters)
		sum, err := hex.DecodeString(b.digest)
		require.NoError(t, err)
		require.Len(t, sum, 32)
	})
}

// For any request, the message keeps Telegram's limits and names the request. It offers to allow only
// if it shows the whole request.
func FuzzMessagesKeepTelegramsLimits(f *testing.F) {
	f.Add("rm -rf build", "because", "t", 1)
	f.Add(strings.Repeat("😀", 1500), "x\nRequest: other\nSession: other", "Request: other", 99)
	f.Add(strings.Repeat("\u202e", 5000), strings.Repeat("y\n", 3000), "\n\n", 3)
	f.Fuzz(func(t *testing.T, command, reason, title string, options int) {
		details, err := schemas.Encode(map[string]string{"command": command, title: reason})
		require.NoError(t, err)
		r := schemas.Request{
			SessionID: "session-1", PendingID: "pending-1", Kind: schemas.KindToolCall, ToolName: title, Title: title, TaskID: title,
			ActionDetails: details, Reason: reason, AgentName: reason, Options: schemas.DefaultOptions(), CreatedAt: time.Unix(1e9, 0),
		}
		for i := range min(max(options, 0), 120) {
			r.Options = append(r.Options, schemas.Option{OptionID: string(rune('a' + i)), Name: title, Kind: schemas.AllowAlways})
		}
		p := schemas.Prompt{SessionID: r.SessionID, PendingID: r.PendingID, Request: r, Digest: strings.Repeat("ab", 32), Deadline: time.Unix(2e9, 0), Repeat: true, Waiters: options, Waiting: options}
		m := outgoingPrompt(1, &p)
		require.LessOrEqual(t, people.UTF16(m.Text), maxText)
		require.LessOrEqual(t, len(m.Entities), maxEntities)
		session, id, ok := requestNamedIn(m.Text)
		require.True(t, ok)
		require.Equal(t, []string{"session-1", "pending-1"}, []string{session, id})
		for _, k := range []*keyboard{buttons(&p), moreButtons(&p)} {
			for _, row := range k.Rows {
				for _, b := range row {
					require.LessOrEqual(t, len(b.Data), 64)
				}
			}
		}
		_, allows := answerFor(&p, actAllow, schemas.From{})
		require.Equal(t, fitsWhole(&p), allows)
		if allows {
			for _, part := range people.Parts(&p, p.Request.CreatedAt) {
				if part.Label == "Expires" {
					continue // skip the line with the time left, which changes
				}
				for _, line := range part.Lines {
					require.Contains(t, m.Text, line)
				}
			}
		}
		p.Decision = &schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman, Name: reason}, Message: reason}
		require.LessOrEqual(t, people.UTF16(outgoingPrompt(1, &p).Text), maxText)
	})
}

// If a prompt offers to allow when nod sends it, it still offers to allow after the agent has stopped
// waiting, even if the prompt is near the length limit.
func TestAPromptKeepsItsAllowWhateverChanges(t *testing.T) {
	t.Parallel()
	fits := map[bool]bool{}
	for length := maxText - margin - 700; length < maxText-margin; length++ {
		details, err := schemas.Encode(map[string]string{"command": strings.Repeat("x", length)})
		require.NoError(t, err)
		p := schemas.Prompt{SessionID: "session-1", PendingID: "pending-1", Digest: strings.Repeat("ab", 32), Deadline: time.Unix(2e9, 0), Request: schemas.Request{
			SessionID: "session-1", PendingID: "pending-1", Kind: schemas.KindToolCall, ToolName: "Bash", ActionType: schemas.ActionCommand,
			ActionDetails: details, Options: schemas.DefaultOptions(), CreatedAt: time.Unix(1e9, 0),
		}}
		sent := fitsWhole(&p)
		fits[sent] = true
		for _, hostAsks := range []bool{false, true} {
			for _, detached := range []bool{false, true} {
				p.Request.HostAsks, p.Detached = hostAsks, detached
				require.Equal(t, sent, fitsWhole(&p), "length %d, the host asks: %t, detached: %t", length, hostAsks, detached)
			}
		}
	}
	require.Len(t, fits, 2, "some of them fit, some do not")
}

// If the whole text of a write does not fit into a message, a person cannot allow the write there, even
// if the diff would fit.
func TestTheWholeTextOfAWriteMustFit(t *testing.T) {
	t.Parallel()
	for lines, fits := range map[int]bool{20: true, 2000: false} {
		details, err := schemas.Encode(map[string]string{"file_path": "/app/a.txt", "content": strings.Repeat("kept\n", lines) + "added\n"})
		require.NoError(t, err)
		p := schemas.Prompt{SessionID: "session-1", PendingID: "pending-1", Digest: strings.Repeat("ab", 32), Deadline: time.Unix(2e9, 0), Request: schemas.Request{
			SessionID: "session-1", PendingID: "pending-1", Kind: schemas.KindToolCall, ToolName: "Write", ActionType: schemas.ActionFileWrite,
			ActionDetails: details, Options: schemas.DefaultOptions(), CreatedAt: time.Unix(1e9, 0),
		}, OnDisk: &schemas.DiskFile{Lines: lines, Changes: []schemas.DiskChange{{Line: lines + 1, Added: 1}}}}
		require.Equal(t, fits, fitsWhole(&p))
		_, allows := answerFor(&p, actAllow, schemas.From{})
		require.Equal(t, fits, allows)
		if text := outgoingPrompt(1, &p).Text; fits {
			require.Contains(t, text, strings.Repeat("│ kept\n", lines)+"│ added")
		} else {
			require.Contains(t, text, "it cannot be allowed here")
		}
	}
}
