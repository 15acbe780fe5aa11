package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

func run(t *testing.T, dir, settings string) *embed.Nod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := embed.Start(ctx, embed.Options{DataDir: dir, Version: "0.5.0", SyncInterval: time.Second, Settings: []byte(settings)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop(context.Background())) })
	return n
}

func TestDoctorReportsThatNoApproverIsSet(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, `{"approvers":{"people":[]}}`)
	found := throughBus(t.Context(), options(dir))
	says(t, found, Wrong, `then nod settings apply`)
	says(t, found, OK, "this user may ask, answer and manage")
	says(t, found, OK, "this clock and the server's are")
	says(t, found, Note, "nothing separates nod from your own programs")
	assert.False(t, Healthy(found))
}

func TestChannels(t *testing.T) {
	server := telegramtest.New("123:ABC")
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("123:ABC\n"), 0o600))
	settings := func(permissions, people string) string {
		return fmt.Sprintf(`{"permissions":{%s},"connectors":{"telegram":{"base_url":%q,"token_file":%q}},"approvers":{"people":[{"name":"Ann","identities":[%s]}]}}`, permissions, server.URL(), token, people)
	}
	t.Run("with an approver", func(t *testing.T) {
		dir := t.TempDir()
		run(t, dir, settings(`"confirm":[{"risk":"high","second_device":true}]`, `{"connector":"telegram","user_id":"4711"}`))
		found := throughBus(t.Context(), options(dir))
		says(t, found, OK, "it works")
		says(t, found, OK, "Ann may answer on telegram")
		says(t, found, Note, "requests of high risk or above need a second device")
		assert.True(t, Healthy(found), "%+v", found)

		require.NoError(t, os.WriteFile(token, []byte("123:WRONG\n"), 0o600))
		found = throughBus(t.Context(), options(dir))
		says(t, found, Wrong, "the bot's token is refused")
		require.NoError(t, os.Remove(token))
		says(t, throughBus(t.Context(), options(dir)), Wrong, "token_file")
		require.NoError(t, os.WriteFile(token, []byte("123:ABC\n"), 0o600))
	})
	t.Run("without an approver", func(t *testing.T) {
		dir := t.TempDir()
		run(t, dir, settings("", `{"connector":"terminal","user_id":"ann"}`))
		says(t, throughBus(t.Context(), options(dir)), Wrong, "no approver is on it")
	})
}

// The doctor reports each missing key, and each key that other users can read, in one line.
func TestRights(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, `{}`)
	require.NoError(t, os.Remove(filepath.Join(dir, "keys", "agent-local.nk")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "keys", "owner.nk"), 0o644))
	found := throughBus(t.Context(), options(dir))
	says(t, found, Wrong, "connect as agent-local: agent-local has no key")
	says(t, found, Wrong, "chmod 600")
}

// The checks create no missing store.
func TestMissingStoresStayMissing(t *testing.T) {
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(roles.First()...))
	users, err := keys.Users()
	require.NoError(t, err)
	server, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	for range 2 {
		found := channels(t.Context(), options(dir), &schemas.Settings{})
		says(t, found, Note, "the stores cannot be read from here: open the store KV_pending_permissions: it does not exist")
	}
}

func TestNodIsNotRunning(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	found := Examine(t.Context(), options(dir))
	says(t, found, Wrong, "nod is not running: nod service install, or nod up")
	says(t, found, Note, "nod is not started at log-in")
}

// nod runs as another user or on another machine, and this user has only one key.
func TestNodRunsElsewhere(t *testing.T) {
	dir := t.TempDir()
	n := run(t, dir, `{}`)
	o := options(t.TempDir())
	o.Place.URL, o.Place.Creds = n.URL(), filepath.Join(dir, "keys", "agent-local.nk")
	found := throughBus(t.Context(), o)
	assert.True(t, Healthy(found), "%+v", found)
	says(t, found, OK, "the server accepts the key of agent-local")
	says(t, found, OK, "the key here can only ask")

	o.Place.Creds = filepath.Join(dir, "keys", "owner.nk")
	found = throughBus(t.Context(), o)
	says(t, found, OK, "may answer on terminal")
	says(t, found, Note, "the key here can do more than ask")
}

// The doctor names groups, steps and stand-ins whose people get no prompt.
func TestDoctorNamesPeopleWhomNoPromptReaches(t *testing.T) {
	var s schemas.Settings
	require.NoError(t, json.Unmarshal([]byte(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "telegram", "user_id": "1"}], "time_zone": "UTC", "quiet": [{"from": "22:00", "to": "07:00"}], "stand_in": "desk"},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]},
		{"name": "Cleo", "identities": [{"connector": "telegram", "user_id": "3"}], "time_zone": "UTC", "quiet": [{"from": "22:00", "to": "07:00"}]}],
		"groups": [{"name": "desk", "people": ["Bob"]}, {"name": "phones", "people": ["Bob", "Ann"]}],
		"escalation": [{"risk": "low", "steps": [{"to": ["Bob"]}, {"to": ["desk"], "after_seconds": 60}, {"to": ["desk", "phones"], "after_seconds": 120}]}]}}`), &s))
	found := unreached(&s)
	require.Len(t, found, 4)
	for i, text := range []string{"the group desk reaches no phone or chat", "step 2 of approvers.escalation[0] reaches no", "the stand-in of Ann reaches no", "Cleo has quiet hours and no stand-in"} {
		require.Contains(t, found[i].What, text)
		require.Equal(t, Note, found[i].Level)
	}
}
