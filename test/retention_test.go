package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func (e *env) log() jetstream.StreamInfo {
	e.t.Helper()
	stream, err := e.raw.Stream(e.ctx, "permission_log")
	e.NoError(err)
	return *stream.CachedInfo()
}

// The log keeps 90 days and 2 GiB, or the limits in the settings, which also apply to
// an existing log. Entries cannot be deleted or purged otherwise.
func TestTheLogIsKeptAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	env := start(t)
	config := env.log().Config
	env.Equal(90*24*time.Hour, config.MaxAge)
	env.EqualValues(2<<30, config.MaxBytes)
	env.apply(`{"log": {"max_days": 7, "max_bytes": 67108864}, "approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`)
	env.soon("the log has the limits of the settings", func() bool {
		config := env.log().Config
		return config.MaxAge == 7*24*time.Hour && config.MaxBytes == 64<<20
	})
	config = env.log().Config
	env.True(config.DenyDelete)
	env.True(config.DenyPurge)
	_, err := env.owner().ApplySettings(env.ctx, []byte(`{"log": {"max_bytes": 1024}}`))
	env.refusal(err, schemas.CodeValidation)
}

// The oldest entries are removed once the log is larger than its limit. A limit that
// the server has no room for is refused.
func TestTheOldestOfTheLogGo(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 0 })
	const n, most = 200, 16 << 10
	for i := range n {
		_, _, err := env.store.Log.Append(env.ctx, fmt.Sprint("entry-", i), schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSettings, Actor: "test"})
		env.NoError(err)
	}
	env.Greater(env.log().State.Bytes, uint64(most))
	env.NoError(env.store.Log.Retain(env.ctx, time.Hour, most))
	state := env.log().State
	env.LessOrEqual(state.Bytes, uint64(most))
	env.EqualValues(n, state.LastSeq)
	_, err := env.store.Log.Read(env.ctx, 1)
	env.ErrorIs(err, bus.ErrNotFound)
	_, err = env.store.Log.Read(env.ctx, n)
	env.NoError(err)

	env.ErrorIs(env.store.Log.Retain(env.ctx, 2*time.Hour, 1<<60), bus.ErrNoRoom)
	env.Equal(2*time.Hour, env.log().Config.MaxAge)
	env.EqualValues(most, env.log().Config.MaxBytes)
}
