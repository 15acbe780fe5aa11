// Package golden replays transcripts in the tests of agent connectors.
//
// In a transcript, a line SIDE: TEXT makes that side send TEXT to the connector. A line > SIDE: TEXT
// requires that the side receives TEXT next. A side is a program that the connector connects, or the
// fake nod:
//
//   - "> nod" is the next request to nod, in JSON, with the zero time;
//   - "nod" decides the oldest pending request with the decision TEXT;
//   - "nod fails" refuses that request with the error TEXT;
//   - "> withdrawn" is the reason of the next withdrawal;
//   - "> passed" is the next call of HostResolved, by which a connector reports that the host went
//     on without nod.
//
// A line that begins with # is a comment.
package golden

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// waitAtMost is how long a test waits for each event.
const waitAtMost = time.Minute

// Side is a program that the connector connects to another. The test acts as this program.
type Side struct {
	// Says sends a text to the connector, as output of the program.
	Says func(text string)
	// Hears returns the next text that the connector sends to the program. If there is none, the test
	// fails.
	Hears func() string
	// If JSON is true, Replay compares texts as JSON. Otherwise it compares their bytes.
	JSON bool
}

// Files runs a subtest for each file testdata/*.txt. Each file is a transcript.
func Files(t *testing.T, test func(t *testing.T, transcript string)) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			test(t, strings.TrimSpace(string(data)))
		})
	}
}

// Replay plays a transcript. The test fails if a line does not match, if a request is still pending
// at the end, or if nod receives a request, a withdrawal or a call of HostResolved that is not in
// the transcript.
func Replay(t *testing.T, transcript string, nod *Nod, sides map[string]Side) {
	t.Helper()
	for line := range strings.SplitSeq(transcript, "\n") {
		who, text, _ := strings.Cut(line, ": ")
		name, hears := strings.CutPrefix(who, "> ")
		side, known := sides[name]
		switch {
		case strings.HasPrefix(line, "#"):
		case nod.playLine(t, who, text):
		case !known:
			require.Fail(t, "the transcript says", line)
		case !hears:
			side.Says(text)
		case side.JSON:
			require.JSONEq(t, text, side.Hears(), line)
		default:
			require.Equal(t, text, side.Hears())
		}
	}
	assert.Empty(t, nod.unplayed(), "the transcript says nothing of these")
}

// Nod acts as nod, and makes the decisions in a transcript. It implements agents.Asker and hook.Nod.
type Nod struct {
	asks      chan *pendingAsk
	withdrawn chan withdrawal
	passed    chan string
	open      []*pendingAsk
}

// NewNod returns a Nod that has received no requests.
func NewNod() *Nod {
	return &Nod{asks: make(chan *pendingAsk, 100), withdrawn: make(chan withdrawal, 100), passed: make(chan string, 100)}
}

type pendingAsk struct {
	request  schemas.Request
	answered chan answer
}

type withdrawal struct{ session, id, reason string }

type answer struct {
	decision schemas.Decision
	err      error
}

// Ask waits until the transcript decides r or ctx ends.
func (n *Nod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	a := &pendingAsk{r, make(chan answer, 1)}
	n.asks <- a
	select {
	case got := <-a.answered:
		got.decision.SessionID, got.decision.PendingID = r.SessionID, r.PendingID
		return got.decision, got.err
	case <-ctx.Done():
		return schemas.Decision{}, ctx.Err()
	}
}

// Withdraw gives its reason to the next line "> withdrawn" of the transcript.
func (n *Nod) Withdraw(_ context.Context, session, id, reason string) error {
	n.withdrawn <- withdrawal{session, id, reason}
	return nil
}

// Abandon does the same as Withdraw, because a transcript does not distinguish the two calls.
func (n *Nod) Abandon(ctx context.Context, session, id, reason string) error {
	return n.Withdraw(ctx, session, id, reason)
}

// Detach always fails, because no transcript uses it yet.
func (n *Nod) Detach(context.Context, string, string, string) error {
	return schemas.Errorf(schemas.CodeInternal, "transcripts do not support Detach")
}

// HostResolved gives its argument to the next line "> passed" of the transcript.
func (n *Nod) HostResolved(_ context.Context, p schemas.HostResolved) error {
	data, err := schemas.Encode(p)
	n.passed <- string(data)
	return err
}

// TakeNotices returns no notices.
func (n *Nod) TakeNotices(context.Context, string) ([]schemas.Notice, error) { return nil, nil }

// Notices returns without a call of the function heard.
func (n *Nod) Notices(context.Context, string, func(schemas.Notice)) error { return nil }

// unplayed returns the requests that are still pending, and the requests, withdrawals and calls of
// HostResolved that are not in the transcript.
func (n *Nod) unplayed() (all []string) {
	for _, a := range n.open {
		all = append(all, "pending: "+a.request.PendingID)
	}
	for {
		select {
		case a := <-n.asks:
			all = append(all, "request: "+a.request.PendingID)
		case w := <-n.withdrawn:
			all = append(all, "withdrawal: "+w.reason)
		case p := <-n.passed:
			all = append(all, "HostResolved: "+p)
		default:
			return all
		}
	}
}

// playLine plays a line about nod. If the line is about another side, playLine does nothing and returns
// false.
func (n *Nod) playLine(t *testing.T, who, text string) bool {
	t.Helper()
	switch who {
	case "> nod":
		a := Next(t, n.asks)
		n.open = append(n.open, a)
		require.JSONEq(t, text, encodeStable(t, a.request))
	case "> withdrawn":
		w := Next(t, n.withdrawn)
		n.open = slices.DeleteFunc(n.open, func(a *pendingAsk) bool { return a.request.SessionID == w.session && a.request.PendingID == w.id })
		require.Equal(t, text, w.reason)
	case "> passed":
		require.JSONEq(t, text, Next(t, n.passed))
	case "nod", "nod fails":
		require.NotEmpty(t, n.open, "no pending request to decide")
		var got answer
		if who == "nod" {
			require.NoError(t, json.Unmarshal([]byte(text), &got.decision))
		} else {
			var e schemas.Error
			require.NoError(t, json.Unmarshal([]byte(text), &e))
			got.err = &e
		}
		n.open[0].answered <- got
		n.open = n.open[1:]
	default:
		return false
	}
	return true
}

// Next receives a value from the channel. It fails the test if no value arrives within waitAtMost.
func Next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waitAtMost):
		require.FailNow(t, "nothing came")
	}
	panic("unreachable")
}

var random = regexp.MustCompile(`^[a-z0-9]{16}$`)

// encodeStable encodes a request so that two runs of a test can be compared. The time is zero, and
// "random" replaces a random id.
func encodeStable(t *testing.T, r schemas.Request) string {
	assert.WithinDuration(t, time.Now(), r.CreatedAt, waitAtMost)
	r.CreatedAt = time.Time{}
	r.PendingID = random.ReplaceAllString(r.PendingID, "random")
	out, err := schemas.Encode(r)
	require.NoError(t, err)
	return string(out)
}
