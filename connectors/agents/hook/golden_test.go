package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// transcript is one hook call with its input and output. testdata has one file for each.
type transcript struct {
	Stdin json.RawMessage `json:"stdin"` // a JSON string stands for raw bytes
	// These fields determine what the fake nod does. Its Ask returns a decision or an error, panics, or
	// waits until the hook gets a signal to stop. If Connect is set, connecting to the fake nod fails
	// with that error.
	Decision      *schemas.Decision `json:"decision"`
	Error         *schemas.Error    `json:"error"`
	Panic         bool              `json:"panic"`
	Waits         bool              `json:"waits"`
	Connect       *schemas.Error    `json:"connect"`
	OnUnavailable string            `json:"on_unavailable"`
	Turns         bool              `json:"turns"`

	Asked     json.RawMessage `json:"asked"` // the request that nod must receive; null if nod must not be asked
	Withdrawn bool            `json:"withdrawn"`
	Passed    json.RawMessage `json:"passed"` // the HostResolved that nod must receive
	Stdout    json.RawMessage `json:"stdout"` // the hook's output, compared byte for byte except for white space
	Stderr    string          `json:"stderr"`
	Exit      int             `json:"exit"`
	Runs      bool            `json:"runs"` // the host then runs the tool without asking its user
}

func (tr transcript) nod(t *testing.T, cancel context.CancelCauseFunc) (*fakeNod, hook.Connect) {
	nod := &fakeNod{t: t}
	nod.ask = func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
		switch {
		case tr.Panic:
			panic("boom\nin two lines")
		case tr.Waits:
			cancel(errors.New("terminated signal received"))
			return waits(ctx, r)
		case tr.Error != nil:
			return schemas.Decision{}, tr.Error
		}
		require.NotNil(t, tr.Decision, "the transcript does not say what nod does")
		return decides(*tr.Decision)(ctx, r)
	}
	if tr.Connect == nil {
		return nod, nod.connect
	}
	return nod, func(context.Context) (hook.Nod, error) { return nil, tr.Connect }
}

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		host := filepath.Base(filepath.Dir(file))
		t.Run(host+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var tr transcript
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.DisallowUnknownFields()
			require.NoError(t, dec.Decode(&tr))
			replay(t, hostNamed(t, host), tr)
		})
	}
}

func replay(t *testing.T, host hook.Host, tr transcript) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	nod, connect := tr.nod(t, cancel)
	stdin := []byte(tr.Stdin)
	var raw string
	if json.Unmarshal(stdin, &raw) == nil {
		stdin = []byte(raw)
	}
	got := runHost(t, ctx, host, bytes.NewReader(stdin), connect, hook.Options{
		HostTimeout: 24 * time.Hour, Host: "devbox", User: "ann",
		OnUnavailable: hook.OnUnavailable(tr.OnUnavailable), Turns: tr.Turns, InTerminal: true,
	})

	oneObject(t, got.stdout)
	assert.Equal(t, compact(t, tr.Stdout), strings.TrimSuffix(got.stdout, "\n"))
	assert.Equal(t, tr.Stderr, got.stderr)
	assert.Equal(t, tr.Exit, got.exit)
	call, _ := host.Dialect.Read(stdin) // the event may be empty if the input is invalid
	assert.Equal(t, tr.Runs, allows(t, host.Name, call.Event, got.stdout, got.exit), "whether the tool runs")
	assert.Equal(t, tr.Withdrawn, nod.withdrawn() != "", "withdrawn: %q", nod.withdrawn())
	assert.Equal(t, compact(t, tr.Asked), compact(t, asGolden(t, nod.asked())))
	if tr.Passed == nil {
		assert.Empty(t, nod.passed)
		return
	}
	require.Len(t, nod.passed, 1)
	passed, err := schemas.Encode(nod.passed[0])
	require.NoError(t, err)
	assert.Equal(t, compact(t, tr.Passed), compact(t, passed))
}

// TestEveryDialectHasEveryOutcome: testdata has a transcript of every outcome for every hook event at
// which nod decides. Outcomes that need a process and time, such as the deadline, a restart or SIGTERM,
// are in TestEveryHostGetsTheRightHookOutput in test/hosts.
func TestEveryDialectHasEveryOutcome(t *testing.T) {
	outcomes := []string{"allow", "allow-by-rule", "allow-edited", "deny", "question", "timed-out", "nod-down", "nod-down-deny", "nod-went-down", "host-gone", "panic", "no-outcome", "input-no-object"}
	for _, host := range hook.Hosts() {
		files, err := filepath.Glob("testdata/" + host.Name + "/*.json")
		require.NoError(t, err)
		there := map[string]bool{}
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var tr transcript
			require.NoError(t, json.Unmarshal(data, &tr))
			call, _ := host.Dialect.Read(tr.Stdin) // after an error, call may still contain the event
			_, outcome, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
			there[call.Event+" "+outcome] = true
		}
		for _, event := range append(host.Setup.Events, host.Setup.Strict...) {
			for _, outcome := range outcomes {
				if outcome == "question" && host.Setup.Script != "" {
					continue // pi and OpenClaw have no tool for questions
				}
				assert.True(t, there[event+" "+outcome], "%s has no transcript of %s %s", host.Name, event, outcome)
			}
		}
		assert.FileExists(t, "testdata/"+host.Name+"/no-json.json")
	}
}

// asGolden encodes a request without the fields that differ in each run.
func asGolden(t *testing.T, r *schemas.Request) []byte {
	if r == nil {
		return []byte("null")
	}
	golden := *r
	golden.CreatedAt = time.Time{}
	if golden.ToolCallID == "" {
		golden.PendingID = "random"
	}
	out, err := schemas.Encode(golden)
	require.NoError(t, err)
	return out
}

func compact(t *testing.T, raw []byte) string {
	var buf bytes.Buffer
	require.NoError(t, json.Compact(&buf, raw))
	return buf.String()
}
