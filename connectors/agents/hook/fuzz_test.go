package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzRun: for any input from the host and any reply from nod, the hook writes exactly one JSON object.
// It is an allow only if nod allowed exactly this call.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		var tr struct{ Stdin, Decision json.RawMessage }
		require.NoError(f, json.Unmarshal(data, &tr))
		f.Add([]byte(tr.Stdin), []byte(tr.Decision), byte(i), filepath.Base(filepath.Dir(file)))
	}
	f.Fuzz(func(t *testing.T, stdin, answer []byte, mode byte, name string) {
		host, known := findHost(name)
		if !known {
			return
		}
		allowed := false
		asker := askerFunc(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
			var d schemas.Decision
			err := json.Unmarshal(answer, &d)
			if mode&1 == 0 {
				d.SessionID, d.PendingID = r.SessionID, r.PendingID
			}
			if mode&2 != 0 {
				panic(string(answer))
			}
			allowed = err == nil && d.Outcome == schemas.Allowed && d.SessionID == r.SessionID && d.PendingID == r.PendingID
			return d, err
		})
		connect := func(context.Context) (hook.Nod, error) { return asker, nil }
		if mode&4 != 0 {
			connect = func(context.Context) (hook.Nod, error) {
				return nil, schemas.Errorf(schemas.CodeUnavailable, "down")
			}
		}
		got := runHost(t, t.Context(), host, bytes.NewReader(stdin), connect, hook.Options{OnUnavailable: hook.OnUnavailable([]string{"", "deny"}[mode>>3&1])})
		call, _ := host.Dialect.Read(stdin)
		if call.Ignore == "" && allows(t, host.Name, call.Event, got.stdout, got.exit) {
			assert.True(t, allowed, "allowed by nobody: %s", got.stdout)
		}
		assert.Contains(t, []int{0, 2}, got.exit)
		assert.LessOrEqual(t, bytes.Count([]byte(got.stderr), []byte("\n")), 1)
	})
}

type askerFunc func(context.Context, schemas.Request) (schemas.Decision, error)

func (f askerFunc) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	return f(ctx, r)
}
func (askerFunc) Withdraw(context.Context, string, string, string) error        { return nil }
func (askerFunc) Detach(context.Context, string, string, string) error          { return nil }
func (askerFunc) TakeNotices(context.Context, string) ([]schemas.Notice, error) { return nil, nil }

func (askerFunc) HostResolved(context.Context, schemas.HostResolved) error { return nil }
