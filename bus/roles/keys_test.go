package roles_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

func open(t *testing.T, dir string) *roles.Keys {
	t.Helper()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	return keys
}

func requireOneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

func TestFirstStartMakesTheKeysOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	keys := open(t, dir)
	require.NoError(t, keys.Ensure(roles.First()...))
	made := read(t, dir)
	require.Len(t, made, 6)
	for _, name := range []string{"owner", "owner-store", "engine", "engine-store", "terminal", "agent-local"} {
		require.Contains(t, made, name+".nk")
	}
	require.NoError(t, open(t, dir).Ensure(roles.First()...))
	require.Equal(t, made, read(t, dir))

	users, err := keys.Users()
	require.NoError(t, err)
	require.Len(t, users, 6)
	for _, u := range users {
		require.True(t, nkeys.IsValidPublicUserKey(u.PublicKey), u.ID)
	}
	if runtime.GOOS == "windows" {
		return // Windows has no Unix file modes
	}
	for path, want := range map[string]fs.FileMode{"keys": 0o700, "keys/owner.nk": 0o600, "keys/agent-local.nk": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "keys"))
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, "keys", e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(content)
	}
	return files
}

func TestAddNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	keys := open(t, dir)
	ada, err := keys.Add(roles.AgentID("ada"))
	require.NoError(t, err)
	before := read(t, dir)

	_, err = keys.Add(roles.AgentID("ada"))
	require.ErrorIs(t, err, fs.ErrExist)
	requireOneLine(t, err, "agent-ada", "remove the file")
	require.Equal(t, before, read(t, dir))
	again, err := keys.User(roles.AgentID("ada"))
	require.NoError(t, err)
	require.Equal(t, ada, again)

	_, err = keys.User(roles.AgentID("bob"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = keys.Add(roles.AgentID("../bob"))
	requireOneLine(t, err, "../bob")
}

func TestConcurrentFirstStartsAgreeOnTheKeys(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	users := make([][]roles.User, 8)
	for i := range users {
		keys := open(t, dir)
		wg.Go(func() {
			if keys.Ensure(roles.First()...) == nil {
				for _, id := range roles.First() {
					u, _ := keys.User(id)
					users[i] = append(users[i], u)
				}
			}
		})
	}
	wg.Wait()
	for _, u := range users {
		require.Equal(t, users[0], u)
	}
	require.Len(t, users[0], 6)
	require.Len(t, read(t, dir), 6, "nothing is left over")
}

func TestUnsafeAndInvalidKeysAreRefused(t *testing.T) {
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	foreign, err := account.Seed()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		words []string
	}{
		"readable by others": {func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o640)) },
			[]string{"owner.nk", "0640", "chmod 600"}},
		"empty":         {overwrite(""), []string{"owner.nk", "damaged"}},
		"cut":           {overwrite("SUAGC3"), []string{"owner.nk", "damaged"}},
		"not a seed":    {overwrite("hunter2\n"), []string{"owner.nk", "damaged"}},
		"of an account": {overwrite(string(foreign)), []string{"owner.nk", "damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name == "readable by others" {
				t.Skip("Windows has no such modes")
			}
			dir := t.TempDir()
			keys := open(t, dir)
			require.NoError(t, keys.Ensure(roles.First()...))
			c.spoil(t, keys.Path(roles.ID{Role: roles.Owner}))
			before := read(t, dir)
			_, err := keys.Users()
			requireOneLine(t, err, c.words...)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), string(foreign))
			requireOneLine(t, keys.Ensure(roles.First()...), c.words...)
			require.Equal(t, before, read(t, dir), "nothing is repaired behind one's back")
		})
	}
}

func overwrite(content string) func(*testing.T, string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
}

func TestUnsafeKeyDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	keys := open(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys", ".new-17"), []byte("interrupted"), 0o600))
	users, err := keys.Users()
	require.NoError(t, err)
	require.Empty(t, users)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys", "nobody.nk"), nil, 0o600))
	_, err = keys.Users()
	requireOneLine(t, err, "nobody.nk", "no role")

	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(filepath.Join(dir, "keys"), 0o755))
		_, err = roles.OpenKeys(dir)
		requireOneLine(t, err, "0755", "chmod 700")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = roles.OpenKeys(file)
	requireOneLine(t, err, "not a directory", "another data directory")
}

func TestConfigHoldsNoSecret(t *testing.T) {
	dir := t.TempDir()
	keys := open(t, dir)
	require.NoError(t, keys.Ensure(roles.First()...))
	users, err := keys.Users()
	require.NoError(t, err)
	text := roles.Config{Users: users}.String()
	for _, seed := range read(t, dir) {
		require.NotContains(t, text, strings.TrimSpace(seed))
	}
	for _, u := range users {
		require.Equal(t, 1, strings.Count(text, u.PublicKey))
	}
}

// A lost key is not made anew, because the servers know only its old public half. A new key beside the
// others would only seem to replace the lost one.
func TestALostKeyOfTheTokenServiceIsNotMadeAnew(t *testing.T) {
	keys, err := roles.OpenKeys(t.TempDir())
	require.NoError(t, err)
	id := roles.ID{Role: roles.TokenService}
	_, err = keys.Add(id)
	require.NoError(t, err)
	issuer := filepath.Join(keys.Dir(), "token-service.issuer")
	require.NoError(t, os.Remove(issuer))
	_, err = keys.Add(id)
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoFileExists(t, issuer)
	_, err = keys.Users()
	require.ErrorContains(t, err, "nod keys revoke token-service, then nod keys add token-service")
	require.NoError(t, keys.Revoke(id))
	_, err = keys.Add(id)
	require.NoError(t, err)
}
