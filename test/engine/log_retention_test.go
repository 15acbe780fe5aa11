package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func log(e *rig.Env) jetstream.StreamInfo {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "permission_log")
	e.NoError(err)
	return *stream.CachedInfo()
}

// The log keeps entries for 90 days and up to 2 GiB, unless the settings name other limits. New
// limits apply to the existing log. No client can delete or purge entries.
func TestTheSettingsLimitHowLongTheLogIsKept(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	config := log(env).Config
	env.Equal(90*24*time.Hour, config.MaxAge)
	env.EqualValues(2<<30, config.MaxBytes)
	env.Apply(`{"log": {"max_days": 7, "max_bytes": 67108864}, "approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`)
	env.Soon("the log has the limits of the settings", func() bool {
		config := log(env).Config
		return config.MaxAge == 7*24*time.Hour && config.MaxBytes == 64<<20
	})
	config = log(env).Config
	env.True(config.DenyDelete)
	env.True(config.DenyPurge)
	_, err := env.Owner().ApplySettings(env.Ctx, []byte(`{"log": {"max_bytes": 1024}}`))
	env.Refusal(err, schemas.CodeValidation)
}

// The log removes its oldest entries if it is larger than its limit. If the server has no room for
// a new size limit, the log keeps its present size limit and gets only the new age limit.
func TestTheOldestLogEntriesAreRemoved(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 0 })
	const n, most = 200, 16 << 10
	for i := range n {
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint("entry-", i), schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSettings, Actor: "test"})
		env.NoError(err)
	}
	env.Greater(log(env).State.Bytes, uint64(most))
	env.NoError(env.Store.Log.Retain(env.Ctx, time.Hour, most))
	state := log(env).State
	env.LessOrEqual(state.Bytes, uint64(most))
	env.EqualValues(n, state.LastSeq)
	_, err := env.Store.Log.Read(env.Ctx, 1)
	env.ErrorIs(err, bus.ErrNotFound)
	_, err = env.Store.Log.Read(env.Ctx, n)
	env.NoError(err)

	env.ErrorIs(env.Store.Log.Retain(env.Ctx, 2*time.Hour, 1<<60), bus.ErrNoRoom)
	env.Equal(2*time.Hour, log(env).Config.MaxAge)
	env.EqualValues(most, log(env).Config.MaxBytes)
}
