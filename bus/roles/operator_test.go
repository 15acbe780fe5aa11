package roles_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

func openOperator(t *testing.T, dir string) *roles.Keys {
	t.Helper()
	keys := open(t, dir)
	require.NoError(t, keys.ForOperator())
	return keys
}

// revocations returns the public keys that the account of this ID lists as revoked.
func revocations(t *testing.T, keys *roles.Keys, id roles.ID, now time.Time) jwt.RevocationList {
	t.Helper()
	accounts, err := keys.AccountJWTs(now)
	require.NoError(t, err)
	claims, err := jwt.DecodeAccountClaims(roles.AccountsOf(accounts, id.Account())[0].JWT)
	require.NoError(t, err)
	return claims.Revocations
}

func TestADirectoryIsForOneMode(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	plain := open(t, t.TempDir())
	require.NoError(t, plain.Ensure(roles.First()...))
	requireOneLine(t, plain.ForOperator(), "plain keys", "--data")
	require.False(t, plain.Operator())

	dir := t.TempDir()
	keys := openOperator(t, dir)
	require.NoError(t, keys.Ensure(roles.First()...))
	made := readAll(t, dir)
	again := open(t, dir)
	require.True(t, again.Operator(), "the directory remembers its mode")
	require.NoError(t, again.ForOperator())
	require.NoError(t, again.Ensure(roles.First()...))
	require.Equal(t, made, readAll(t, dir))
	requireOneLine(t, again.Put(roles.AgentID("ada"), "x"), "operator mode")

	users, err := again.Users()
	require.NoError(t, err)
	require.Len(t, users, 6)
	if runtime.GOOS == "windows" {
		return // Windows has no Unix file modes
	}
	for path := range made {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
	}
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(content)
		return err
	}))
	return files
}

// If a command is killed while it makes the operator, the next command finishes the work.
func TestAnUnfinishedOperatorIsCompleted(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	openOperator(t, dir)
	whole := readAll(t, dir)
	for _, file := range []string{"operator.json", "push.creds", "web.nk", "accounts.nk"} {
		path := filepath.Join(dir, "keys", "operator", file)
		require.NoError(t, os.Remove(path))
		if file != "operator.json" {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "keys", "operator", "operator.json")))
		}
		unlock, err := open(t, dir).Lock()
		require.NoError(t, err)
		unlock()
		require.Contains(t, readAll(t, dir), "keys/operator/"+file)
	}
	require.Len(t, readAll(t, dir), len(whole))
	keys := open(t, dir)
	_, err := keys.AccountJWTs(time.Now())
	require.NoError(t, err)

	require.NoError(t, keys.Ensure(roles.AgentID("ada")))
	require.NoError(t, os.Remove(filepath.Join(dir, "keys", "operator", "operator.json")))
	_, err = open(t, dir).Lock()
	requireOneLine(t, err, "operator.json", "restore it") // new accounts would make the existing users useless
}

func TestTheOperatorsTextsHoldNoSecret(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	keys := openOperator(t, dir)
	require.NoError(t, keys.Ensure(everybody()...))
	accounts, err := keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	text := keys.OperatorConfig(accounts, "/x") + readAll(t, dir)["keys/operator/operator.json"]
	seeds := 0
	for path, content := range readAll(t, dir) {
		for line := range strings.SplitSeq(content, "\n") {
			if pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(line))); err == nil {
				pair.Wipe()
				seeds++
				require.NotContains(t, text, strings.TrimSpace(line), path)
			}
		}
	}
	require.Greater(t, seeds, 20)
}

// Servers accept every user that a signing key has signed. A key whose file was moved must therefore
// be revocable. Before its revocation, no second key with the same name is made.
func TestAKeyIsRevokedWhereverItIs(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	keys := openOperator(t, dir)
	ada := roles.AgentID("ada")
	first, err := keys.Add(ada)
	require.NoError(t, err)
	require.NoError(t, os.Rename(keys.Path(ada), filepath.Join(t.TempDir(), "moved.creds")))
	_, err = keys.Add(ada)
	require.ErrorIs(t, err, fs.ErrExist)
	requireOneLine(t, err, "agent-ada", "revoke it first")
	require.NoError(t, keys.Ensure(ada))
	require.NoFileExists(t, keys.Path(ada), "the key is elsewhere, not missing")
	elsewhere, err := keys.Elsewhere()
	require.NoError(t, err)
	require.Equal(t, []roles.User{first}, elsewhere)
	require.Empty(t, revocations(t, keys, ada, time.Now()))

	require.NoError(t, keys.Revoke(ada))
	second, err := keys.Add(ada)
	require.NoError(t, err)
	revoked := revocations(t, keys, ada, time.Now())
	require.Contains(t, revoked, first.PublicKey)
	require.NotContains(t, revoked, second.PublicKey)
	require.True(t, revoked.IsRevoked(first.PublicKey, time.Now().AddDate(100, 0, 0)), "whatever the clock says")
	require.NoError(t, keys.Revoke(ada))
	require.NoError(t, keys.Revoke(ada), "the first command may have been killed before it told the servers")
	require.ErrorIs(t, keys.Revoke(roles.AgentID("bob")), fs.ErrNotExist)
}

func TestAReplacedKeyIsRevokedAfterItsOverlap(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	keys := openOperator(t, t.TempDir())
	ada := roles.AgentID("ada")
	first, err := keys.Add(ada)
	require.NoError(t, err)
	second, until, err := keys.Rotate(ada, time.Hour)
	require.NoError(t, err)
	require.NotEqual(t, first.PublicKey, second.PublicKey)
	require.Empty(t, revocations(t, keys, ada, until.Add(-time.Second)))
	revoked := revocations(t, keys, ada, until)
	require.Contains(t, revoked, first.PublicKey)
	require.Len(t, revoked, 1)
	replaced, err := keys.Replaced(ada)
	require.NoError(t, err)
	require.Equal(t, []string{first.PublicKey}, replaced, "the log has its signatures")
	require.Contains(t, revocations(t, keys, ada, until.Add(-time.Hour)), first.PublicKey, "a clock that is set back accepts no key again")
}

// If two accounts were signed in the same second, a server could keep either of them.
func TestNoTwoSignaturesAreOfOneSecond(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	keys := openOperator(t, dir)
	issued := func() int64 {
		accounts, err := keys.AccountJWTs(time.Now())
		require.NoError(t, err)
		claims, err := jwt.DecodeAccountClaims(accounts[0].JWT)
		require.NoError(t, err)
		return claims.IssuedAt
	}
	require.Less(t, issued(), issued())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys", "operator", "signed"), []byte("99999999999\n"), 0o600))
	_, err := keys.AccountJWTs(time.Now())
	requireOneLine(t, err, "set the clock")
}

// The first version of an account differs from the second only by one more signing key, whose users have no
// rights.
func TestTheFirstVersionOfAnAccountGivesNoFurtherRights(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	keys := openOperator(t, t.TempDir())
	require.NoError(t, keys.Ensure(append(roles.First(), roles.ID{Role: roles.TokenService})...))
	require.NoError(t, keys.Revoke(roles.AgentID("local")))
	var versions [][]roles.AccountJWT
	for all, err := range keys.AccountVersions(time.Now()) {
		require.NoError(t, err)
		versions = append(versions, all)
	}
	require.Len(t, versions, 2)
	for i, a := range versions[0] {
		first, err := jwt.DecodeAccountClaims(a.JWT)
		require.NoError(t, err)
		second, err := jwt.DecodeAccountClaims(versions[1][i].JWT)
		require.NoError(t, err)
		require.Less(t, first.IssuedAt, second.IssuedAt, "servers keep the newer version")
		for key, scope := range first.SigningKeys {
			if _, both := second.SigningKeys[key]; !both {
				require.Equal(t, jwt.StringList{">"}, scope.(*jwt.UserScope).Template.Pub.Deny)
				require.Equal(t, jwt.StringList{">"}, scope.(*jwt.UserScope).Template.Sub.Deny)
				require.False(t, scope.(*jwt.UserScope).Template.BearerToken)
				delete(first.SigningKeys, key)
				break
			}
		}
		first.ClaimsData, second.ClaimsData = jwt.ClaimsData{}, jwt.ClaimsData{}
		for _, imports := range []jwt.Imports{first.Imports, second.Imports} {
			for _, i := range imports {
				i.Token = "" // signed anew
			}
		}
		require.Equal(t, second, first, a.Account)
	}
}

// Each seed may be kept elsewhere. Commands that need no signature by the missing seed still work.
func TestSeedsMayBeKeptElsewhere(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	keys := openOperator(t, dir)
	move := func(seed string) { require.NoError(t, os.Remove(filepath.Join(dir, "keys", "operator", seed+".nk"))) }
	move("operator")
	move("owner")
	_, err := keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	_, err = keys.Add(roles.AgentID("ada"))
	require.NoError(t, err)
	_, err = keys.Add(roles.ID{Role: roles.Owner})
	requireOneLine(t, err, "owner.nk", "put it back")
	move("accounts")
	require.NoError(t, keys.Revoke(roles.AgentID("ada")))
	_, err = keys.AccountJWTs(time.Now())
	requireOneLine(t, err, "accounts.nk", "put it back")
	unlock, err := open(t, dir).Lock()
	require.NoError(t, err)
	unlock()
	require.NoFileExists(t, filepath.Join(dir, "keys", "operator", "accounts.nk"), "a seed that is elsewhere is not made anew")

	require.NoError(t, os.Chmod(filepath.Join(dir, "keys", "operator", "agent.nk"), 0o640))
	if runtime.GOOS != "windows" {
		_, err = keys.Add(roles.AgentID("ben"))
		requireOneLine(t, err, "0640", "chmod 600")
	}
}

func TestDamagedUsersAreRefused(t *testing.T) {
	t.Parallel() // each signing waits for the next second
	dir := t.TempDir()
	keys := openOperator(t, dir)
	require.NoError(t, keys.Ensure(roles.AgentID("ada"), roles.AgentID("bob")))
	ada, err := os.ReadFile(keys.Path(roles.AgentID("ada")))
	require.NoError(t, err)
	bob, err := os.ReadFile(keys.Path(roles.AgentID("bob")))
	require.NoError(t, err)
	const seed = "-----BEGIN USER NKEY SEED-----"
	head, _, _ := strings.Cut(string(ada), seed)
	_, tail, _ := strings.Cut(string(bob), seed)
	for name, content := range map[string]string{
		"empty": "", "the JWT alone": head, "another key": head + seed + tail, "a bare seed": "SUAGC3",
	} {
		require.NoError(t, os.WriteFile(keys.Path(roles.AgentID("ada")), []byte(content), 0o600))
		_, err := keys.User(roles.AgentID("ada"))
		require.Error(t, err, name)
		requireOneLine(t, err, "agent-ada.creds", "damaged")
	}
}
