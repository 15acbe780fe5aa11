package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func backUp(e *rig.Env) string {
	e.T.Helper()
	to := filepath.Join(e.T.TempDir(), "backup")
	_, err := embed.Backup(e.Ctx, embed.BackupOptions{Conn: e.Conn(roles.ID{Role: roles.OwnerStore}), DataDir: e.Dir, To: to, Version: "0.0.0"})
	e.NoError(err)
	return to
}

// restore ends the running nod and starts nod again on a data directory that is restored from the backup.
func restore(e *rig.Env, from string, engines int) {
	e.T.Helper()
	e.Down()
	e.Dir = filepath.Join(e.T.TempDir(), "restored")
	_, err := embed.RestoreInto(e.Ctx, e.Dir, embed.RestoreOptions{From: from, Version: "0.0.0", Log: rig.Quiet()})
	e.NoError(err)
	e.Keys, err = roles.OpenKeys(e.Dir)
	e.NoError(err)
	e.Up(rig.Setup{Engines: engines})
}

// A restored nod has each decision that was made before the backup, and makes no second one. It
// denies the requests that were pending at the backup. Grants and unused approvals of the backup
// allow nothing, even if they were neither revoked nor used after the backup.
func TestARestoredNodReopensNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, ann := env.Agent("ada"), env.Ann()
	allowed, denied := ada.Asks(rig.Deploy("S", "allowed")), ada.Asks(rig.Deploy("S", "denied"))
	told := map[string]schemas.Decision{"allowed": ann.Allows(allowed), "denied": ann.Denies(denied)}
	told["automatic"] = ada.Gets(rig.Lookup("S", "automatic"))
	kept := ann.Remembers(ada.Asks(rig.Shell("S", "", "npm test")), schemas.ScopeSession, 0).Grant
	revoked := ann.Remembers(ada.Asks(rig.Shell("S", "", "npm run lint")), schemas.ScopeAgent, 0).Grant
	ann.Allows(ada.Detaches(rig.Shell("S", "approved", "make release")))
	ada.Asks(rig.Deploy("S", "pending")).Drop()
	ada.Detaches(rig.Deploy("S", "detached"))
	ada.Asks(rig.Deploy("other", "answered-later"))
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "npm test")).Outcome)

	backup := backUp(env)
	env.NoError(ann.Revoke(env.Ctx, revoked, ann.User))
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "make release")).Outcome, "the approval is used up after the backup")
	restore(env, backup, 2)

	ada, ann = env.Agent("ada"), env.Ann()
	for _, id := range []string{"S.pending", "S.detached", "other.answered-later"} {
		env.Soon(id+" is denied", func() bool { return env.Stored(id).Record.Decision != nil })
		d := env.Stored(id).Record.Decision
		env.Equal(schemas.Denied, d.Outcome)
		env.Contains(d.Message, "nod was restored from the backup of ")
	}
	for id, before := range told {
		r := rig.Deploy("S", id)
		if id == "automatic" {
			r = rig.Lookup("S", id)
		}
		reply, err := ada.Sends(r, true)
		env.NoError(err)
		var again schemas.Decision
		env.NoError(reply.Into(&again))
		env.Equal(before.DecisionID, again.DecisionID, id)
		env.Equal(before.Outcome, again.Outcome, id)
	}
	env.Equal(schemas.Denied, ada.Gets(rig.Lookup("S", "")).Outcome, "nod is frozen")
	env.Equal(1, env.LoggedOf(schemas.LogRestored))

	thawed, err := ann.Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Heard("frozen_revision", thawed.Revision)
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("S", "")).Outcome)
	for _, command := range []string{"npm test", "npm run lint", "make release"} {
		q := ada.Asks(rig.Shell("S", "", command))
		ann.Denies(q)
		q.Ends(schemas.Denied)
	}
	grants, err := ann.Grants(env.Ctx, "")
	env.NoError(err)
	ended := map[string]string{}
	for _, g := range grants {
		ended[g.GrantID] = g.RevokedBy
	}
	env.Equal("nod restore", ended[kept.GrantID])
	env.Equal("nod restore", ended[revoked.GrantID])

	again := ann.Remembers(ada.Asks(rig.Shell("S", "", "npm test")), schemas.ScopeSession, 0).Grant
	env.NotEqual(kept.GrantID, again.GrantID)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "npm test")).Outcome, "a person has confirmed the grant")
}

// A backup under load contains every decision that a party got before the backup began. After the
// restore, the outbox continues.
func TestABackupUnderLoadHasAllThatWasToldBefore(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, ann := env.Agent("ada"), env.Ann()
	var mu sync.Mutex
	told := map[string]schemas.Decision{}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for worker := range 6 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("w%d-%d", worker, n)
				r := rig.Deploy("S", id)
				r.ActionDetails = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 20_000)) // so that the records fill block files
				q := ada.Asks(r)
				d := ann.Allows(q)
				mu.Lock()
				told["S."+id] = d
				mu.Unlock()
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(told) }
	env.Soon("some decisions are made", func() bool { return count() > 40 })
	mu.Lock()
	before := map[string]schemas.Decision{}
	for k, d := range told {
		before[k] = d
	}
	mu.Unlock()
	backup := backUp(env)
	n := count()
	env.Soon("nod goes on during and after the backup", func() bool { return count() > n })
	close(stop)
	all.Wait()
	restore(env, backup, 1)

	for key, d := range before {
		env.Equal(d.DecisionID, env.Stored(key).Record.Decision.DecisionID, key)
	}
	env.Soon("no request is pending", func() bool {
		for _, key := range env.Kept() {
			if env.Stored(key).Record.Decision == nil {
				return false
			}
		}
		return true
	})
	for _, key := range env.Kept() {
		d := env.Stored(key).Record.Decision
		if is, ok := told[key]; ok && d.DecisionID != is.DecisionID {
			env.Equal(schemas.Denied, d.Outcome, "%s was decided during the backup", key)
		}
	}
	seen := env.Viewer()
	_, err := env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	ada, ann = env.Agent("ada"), env.Ann()
	q := ada.Asks(rig.Deploy("S", "new"))
	env.Soon("the outbox shows new requests", func() bool { return seen.Times("S.new", q.Receipt.Revision) > 0 })
	ann.Allows(q)
	q.Ends(schemas.Allowed)
}

// A restore refuses a changed backup, and a folder without a finished backup.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	backup := backUp(env)
	for _, file := range []string{"streams/permission_log", "streams/KV_permission_settings", "files/keys/owner.nk"} {
		flipByte(t, filepath.Join(backup, file))
		dir := filepath.Join(t.TempDir(), "to")
		_, err := embed.RestoreInto(env.Ctx, dir, embed.RestoreOptions{From: backup, Log: rig.Quiet()})
		env.ErrorContains(err, file)
		env.ErrorContains(err, "is not as it was written")
		env.NoDirExists(dir)
		flipByte(t, filepath.Join(backup, file))
	}
	_, err := embed.RestoreInto(env.Ctx, env.Dir, embed.RestoreOptions{From: backup, Log: rig.Quiet()})
	env.ErrorContains(err, "is not empty")
	_, err = embed.RestoreInto(env.Ctx, filepath.Join(t.TempDir(), "to"), embed.RestoreOptions{From: t.TempDir(), Log: rig.Quiet()})
	env.ErrorContains(err, "is no backup of nod")
	_, err = embed.Backup(env.Ctx, embed.BackupOptions{Conn: env.Conn(roles.ID{Role: roles.EngineStore}), To: filepath.Join(t.TempDir(), "b")})
	env.Error(err, "an engine's key may not copy the stores")
	_, err = embed.Backup(env.Ctx, embed.BackupOptions{Conn: env.Conn(roles.ID{Role: roles.OwnerStore}), DataDir: env.Dir, To: filepath.Join(env.Dir, "b")})
	env.ErrorContains(err, "is in the data directory")
	_, err = bus.ReadRun(env.Dir)
	env.NoError(err)
}

func flipByte(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
}
