package bus_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/logchain"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// logged is a server with a log, and the public half of the key with which the server's engine signs.
type logged struct {
	t      *testing.T
	store  *bus.Store
	reader *bus.Conn
	key    string
	n      int
}

func startLogged(t *testing.T) *logged {
	t.Helper()
	dir := t.TempDir()
	owner := roles.ID{Role: roles.OwnerStore}
	keys, users := keysOf(t, dir, asEngineStore, owner)
	server, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	connect := func(id roles.ID) *bus.Conn {
		conn, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Server: server, Creds: keys.Path(id), Inbox: id.InboxPrefix(), Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	l := &logged{t: t, reader: connect(owner)}
	l.store, err = bus.OpenStore(t.Context(), connect(asEngineStore), 1)
	require.NoError(t, err)
	user, err := keys.User(asEngineStore)
	require.NoError(t, err)
	l.key = user.PublicKey
	return l
}

func (l *logged) happens(n int) {
	l.t.Helper()
	for range n {
		l.n++
		_, _, err := l.store.Log.Append(l.t.Context(), fmt.Sprint("e", l.n), schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSession, SessionID: "S", Actor: "ann"})
		require.NoError(l.t, err)
	}
}

func (l *logged) export() (lines [][]byte) {
	l.t.Helper()
	require.NoError(l.t, l.reader.EachLine(l.t.Context(), bus.LogStart{}, func(sequence uint64, entry []byte) error {
		lines = append(lines, logchain.Line(sequence, entry))
		return nil
	}))
	return lines
}

func (l *logged) verify() logchain.Report {
	l.t.Helper()
	v := logchain.Verifier{Keys: []string{l.key}}
	for _, line := range l.export() {
		v.Add(line)
	}
	r := v.Report("")
	require.Empty(l.t, r.Faults)
	return r
}

func TestCheckpointsCoverTheLog(t *testing.T) {
	t.Parallel()
	l := startLogged(t)
	write := func() { require.NoError(t, l.store.WriteCheckpoints(t.Context())) }
	write()
	require.Empty(t, l.export(), "an empty log needs no checkpoint")
	l.happens(3)
	write()
	require.Equal(t, 1, l.verify().Open, "the checkpoint itself")
	write()
	require.Len(t, l.verify().Checkpoints, 1, "nothing new, no checkpoint")
	l.happens(2*logchain.MaxEntries + 5)
	write()
	r := l.verify()
	require.Len(t, r.Checkpoints, 4)
	require.Equal(t, 3, r.Open, "the three checkpoints that this call wrote")
	write()
	write()
	r = l.verify()
	require.Len(t, r.Checkpoints, 5, "one for these, and none for itself")
	require.Equal(t, 1, r.Open)

	// The log drops its oldest entries, whether or not a checkpoint covers them.
	l.happens(50)
	require.NoError(t, l.store.Log.Retain(t.Context(), time.Hour, 8<<10))
	l.happens(1)
	write()
	r = l.verify()
	require.Greater(t, r.First, uint64(2000))
	require.Equal(t, 1, r.Open)
}

// If several engines write checkpoints at the same time, all their checkpoints form one chain.
func TestSeveralEnginesMakeOneChain(t *testing.T) {
	t.Parallel()
	l := startLogged(t)
	for range 20 {
		l.happens(3)
		var engines sync.WaitGroup
		for range 4 {
			engines.Go(func() { require.NoError(t, l.store.WriteCheckpoints(t.Context())) })
		}
		engines.Wait()
	}
	r := l.verify()
	require.GreaterOrEqual(t, len(r.Checkpoints), 20)
	require.Less(t, r.Open, 5)
}

// secondVerifier returns a function that runs the program in docs/evidence.md on the lines of a log, with
// a trusted key, and returns the program's output. That program shares no code with nod.
func secondVerifier(t *testing.T) func(lines [][]byte, key string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("the program runs in node, which is not installed")
	}
	page, err := os.ReadFile("../docs/evidence.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```js\n")
	program, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	script := filepath.Join(t.TempDir(), "verify.mjs")
	require.NoError(t, os.WriteFile(script, []byte(program), 0o600))
	return func(lines [][]byte, key string) string {
		file := filepath.Join(t.TempDir(), "log.ndjson")
		var text strings.Builder
		for _, line := range lines {
			fmt.Fprintf(&text, "%s\n", line)
		}
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
		out, _ := exec.CommandContext(t.Context(), node, script, file, key).CombinedOutput()
		return string(out)
	}
}

// An engine that covers many entries writes several checkpoints at once. Until a later checkpoint covers
// the first of these checkpoints, an attacker who can write to the stream could replace the first
// checkpoint by another entry. The entries that it covered are then in no checkpoint, and both verifiers
// report that.
func TestAReplacedFirstCheckpointIsFound(t *testing.T) {
	t.Parallel()
	run := secondVerifier(t)
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	key, err := pair.PublicKey()
	require.NoError(t, err)
	sign, err := logchain.NewSigner(seed)
	require.NoError(t, err)
	encode := func(e schemas.LogEntry) []byte {
		data, err := schemas.Encode(&e)
		require.NoError(t, err)
		return data
	}
	var entries [][]byte
	for range 4 {
		entries = append(entries, encode(schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSession, SessionID: "S", Actor: "ann"}))
	}
	one, err := sign.Make(1, digestsOf(1, entries[:2]), "", time.Now())
	require.NoError(t, err)
	two, err := sign.Make(3, digestsOf(3, entries[2:4]), one.Checkpoint.Hash, time.Now())
	require.NoError(t, err)
	entries = append(entries, encode(one), encode(two))
	lines := func() (lines [][]byte) {
		for i, entry := range entries {
			lines = append(lines, logchain.Line(uint64(i+1), entry))
		}
		return lines
	}
	require.Equal(t, "2 checkpoints agree\n", run(lines(), key))

	entries[0] = encode(schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSession, SessionID: "S", Actor: "bob"})
	entries[4] = entries[0]
	v := logchain.Verifier{Keys: []string{key}}
	for _, line := range lines() {
		v.Add(line)
	}
	require.NotEmpty(t, v.Report("").Faults)
	require.Equal(t, "entry 1 is in no valid checkpoint\n", run(lines(), key))
	require.Equal(t, "there is no checkpoint\n", run(lines()[:4], key))
}

// Both verifiers find each change of a log.
func TestASecondVerifierAgrees(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestCheckpointsCoverTheLog verifies such logs")
	run := secondVerifier(t)
	l := startLogged(t)
	for range 3 {
		l.happens(5)
		require.NoError(t, l.store.WriteCheckpoints(t.Context()))
	}
	lines := l.export()
	require.Equal(t, "3 checkpoints agree\n", run(lines, l.key))
	for i := range lines[:len(lines)-1] {
		changed := append([][]byte{}, lines...)
		changed[i] = []byte(strings.Replace(string(lines[i]), `:"20`, `:"19`, 1)) // its time
		v := logchain.Verifier{Keys: []string{l.key}}
		for _, line := range changed {
			v.Add(line)
		}
		require.NotEmpty(t, v.Report("").Faults, i)
		require.NotContains(t, run(changed, l.key), "agree", i)
	}
	require.Equal(t, "entry 7 is missing\n", run(append(append([][]byte{}, lines[:6]...), lines[7:]...), l.key))
}

func digestsOf(first uint64, entries [][]byte) (all logchain.Digests) {
	for i, entry := range entries {
		all.Add(first+uint64(i), entry)
	}
	return all
}
