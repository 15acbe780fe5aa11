package bus_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// A server that other machines could reach speaks TLS. Only clients that use the server's data
// directory trust the server.
func TestBeyondThisMachineTheServerSpeaksTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(roles.First()...))
	users, err := keys.Users()
	require.NoError(t, err)
	ca := filepath.Join(dir, "tls", "ca.pem")
	var made []byte
	for _, host := range []string{"0.0.0.0", "127.0.0.1"} { // a server that has used TLS once uses TLS at every later start
		s := embed(t, bus.EmbedOptions{DataDir: dir, Host: host, Users: users})
		conn, err := bus.Join(t.Context(), bus.Place{DataDir: dir}, roles.AgentID("local"), nil)
		require.NoError(t, err)
		conn.Close()
		inside, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), Server: s, Creds: keys.Path(roles.ID{Role: roles.Owner}), Inbox: roles.ID{Role: roles.Owner}.InboxPrefix()})
		require.NoError(t, err)
		inside.Close()

		seed, err := nats.NkeyOptionFromSeed(keys.Path(roles.ID{Role: roles.Owner}))
		require.NoError(t, err)
		_, err = nats.Connect(s.URL(), seed)
		require.ErrorContains(t, err, "certificate", "a key alone tells nothing of the server")
		nc, err := nats.Connect(s.URL(), seed, nats.RootCAs(ca))
		require.NoError(t, err, "tools of NATS's own can be told of the authority")
		nc.Close()
		require.NoError(t, s.Close())

		info, err := os.Stat(ca)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		text, err := os.ReadFile(ca)
		require.NoError(t, err)
		require.True(t, made == nil || string(made) == string(text), "the authority stays")
		made = text
	}
	require.NoError(t, os.WriteFile(ca, made[:len(made)/2], 0o600))
	_, err = bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users})
	requireOneLine(t, err, ca, "damaged")
}

func TestJoiningReplacesNoOtherKey(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	one, err := bus.Invite(here, "devbox", "a:1")
	require.NoError(t, err)
	other, err := bus.Invite(t.TempDir(), "devbox", "b:1")
	require.NoError(t, err)
	read, err := bus.ParseInvitation(one.String())
	require.NoError(t, err)
	require.Equal(t, one, read)

	for _, url := range []string{"nats://a:1", "tls://", "tls://a:1/x", "tls://u:p@a:1", "tls://a:1,nats://b:1", "a:1", "tls://a:1\n"} {
		bad := one
		bad.URL = url
		_, err := bus.ParseInvitation(bad.String())
		requireOneLine(t, err, "no invitation")
	}
	require.NoError(t, one.Join(there))
	require.NoError(t, os.Remove(filepath.Join(there, "joined.json")))
	require.NoError(t, one.Join(there), "a join that was cut short can be made again")
	requireOneLine(t, one.Join(there), "has joined a nod already")
	require.NoError(t, os.Remove(filepath.Join(there, "joined.json")))
	requireOneLine(t, other.Join(there), "another key")
	one.Key = "hunter2"
	err = one.Join(t.TempDir())
	requireOneLine(t, err, "damaged")
	require.NotContains(t, err.Error(), "hunter2")
	agent, err := bus.Place{DataDir: there}.Agent()
	require.NoError(t, err)
	require.Equal(t, "local", agent)
}

// If two processes join with the same directory, one stores its invitation and the other gets an error.
func TestOneOfTwoJoinsFails(t *testing.T) {
	t.Parallel()
	var invitations []bus.Invitation
	for _, agent := range []string{"laptop", "devbox"} {
		i, err := bus.Invite(t.TempDir(), agent, "a:1")
		require.NoError(t, err)
		invitations = append(invitations, i)
	}
	for range 20 {
		there := t.TempDir()
		errs := make(chan error, len(invitations))
		for _, i := range invitations {
			go func() { errs <- i.Join(there) }()
		}
		first, second := <-errs, <-errs
		require.NotEqual(t, first == nil, second == nil, "%v, %v", first, second)
		requireOneLine(t, cmp.Or(first, second), "has joined a nod already")
	}
}
