// Package golden replays, in the tests of ways in, transcripts of what each side
// says and must hear next.
//
// A transcript is lines of the form WHO: TEXT. What WHO says is handed to it; a line
// that begins with > is what WHO must hear, or be asked, next. Beside the sides of
// the way in there is nod: "> nod" is the request that it gets, "nod" decides the
// oldest open one and "nod fails" refuses it, "> withdrawn" and "> passed" are what
// it is told. A line that begins with # is a comment.
package golden

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// waitAtMost is how long a test waits for anything to happen.
const waitAtMost = time.Minute

// Side is one of those that talk through a way in.
type Side struct {
	Says func(text string)
	// Hears is the next text that it is told; it fails the test where none comes.
	Hears func() string
	// JSON says that what it hears may be written in any order.
	JSON bool
}

// Files runs a test with each transcript in testdata.
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

// Replay plays a transcript. At its end nod has been told nothing else.
func Replay(t *testing.T, transcript string, nod *Nod, sides map[string]Side) {
	t.Helper()
	for line := range strings.SplitSeq(transcript, "\n") {
		who, text, _ := strings.Cut(line, ": ")
		name, hears := strings.CutPrefix(who, "> ")
		side, known := sides[name]
		switch {
		case strings.HasPrefix(line, "#"):
		case nod.plays(t, who, text):
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
	assert.Empty(t, nod.asks, "nobody else asks")
	assert.Empty(t, nod.withdrawn, "nothing else is withdrawn")
}

// Nod is a nod that decides as a transcript says. It is an agents.Asker, and a
// hook.Nod.
type Nod struct {
	asks              chan *pendingAsk
	withdrawn, passed chan string
	open              []*pendingAsk
}

// NewNod returns one that has been asked nothing.
func NewNod() *Nod {
	return &Nod{asks: make(chan *pendingAsk, 100), withdrawn: make(chan string, 100), passed: make(chan string, 100)}
}

type pendingAsk struct {
	request  schemas.Request
	answered chan answer
}

type answer struct {
	decision schemas.Decision
	err      error
}

// Ask waits for the transcript's decision, or until ctx ends.
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

// Withdraw tells the transcript.
func (n *Nod) Withdraw(_ context.Context, _, _, reason string) error {
	n.withdrawn <- reason
	return nil
}

// Detach is no transcript's yet.
func (n *Nod) Detach(context.Context, string, string, string) error {
	return schemas.Errorf(schemas.CodeInternal, "nobody detaches here")
}

// HostResolved tells the transcript.
func (n *Nod) HostResolved(_ context.Context, p schemas.HostResolved) error {
	data, err := schemas.Encode(p)
	n.passed <- string(data)
	return err
}

// plays does what a line says of nod; false is a line about somebody else.
func (n *Nod) plays(t *testing.T, who, text string) bool {
	t.Helper()
	switch who {
	case "> nod":
		a := Next(t, n.asks)
		n.open = append(n.open, a)
		require.JSONEq(t, text, shown(t, a.request))
	case "> withdrawn":
		require.Equal(t, text, Next(t, n.withdrawn))
	case "> passed":
		require.JSONEq(t, text, Next(t, n.passed))
	case "nod", "nod fails":
		require.NotEmpty(t, n.open, "nothing is open to be decided")
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

// Next is what comes next; that nothing does fails the test.
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

// random is an id that differs each time.
var random = regexp.MustCompile(`^[a-z0-9]{16}$`)

// shown is a request without what differs each time.
func shown(t *testing.T, r schemas.Request) string {
	assert.WithinDuration(t, time.Now(), r.CreatedAt, waitAtMost)
	r.CreatedAt = time.Time{}
	r.PendingID = random.ReplaceAllString(r.PendingID, "random")
	out, err := schemas.Encode(r)
	require.NoError(t, err)
	return string(out)
}
