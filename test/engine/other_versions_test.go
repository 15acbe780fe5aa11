package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function said returns a message as another version of nod sends it. The older version sends no optional
// field. The newer version sends all fields, and some fields that this version does not know. The files of a
// version in testdata must stay unchanged as long as nod must work with that version.
func said(e *rig.Env, version, what string) []byte {
	e.T.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wire", version, what+".json"))
	e.NoError(err)
	return data
}

// A hook that is one minor version older or newer works with this engine.
func TestAHookOfAnotherVersionAsksThisEngine(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"older", "newer"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			env := rig.Start(t)
			nc := env.RawConn(roles.AgentID("ada"))
			decisions, err := nc.SubscribeSync(schemas.DecisionSubject("ada", "S", "perm-1"))
			env.NoError(err)
			asks := func(subject, what string, into any) {
				t.Helper()
				reply, err := nc.RequestWithContext(env.Ctx, subject, said(env, version, what))
				env.NoError(err)
				env.NoError(schemas.Decode(reply.Data, into), "%s: %s", what, reply.Data)
			}
			var receipt schemas.Receipt
			asks(schemas.RequestSubject("ada", "S", "perm-1"), "request", &receipt)
			env.Equal("perm-1", receipt.PendingID)
			var withdrawn schemas.Decision
			asks(schemas.WithdrawSubject("ada", "S", "perm-2"), "withdraw", &withdrawn)
			env.Equal(schemas.Withdrawn, withdrawn.Outcome)
			var stands schemas.AwaitReply
			asks(schemas.AwaitSubject("ada"), "await", &stands)
			env.Len(stands.Results, 1)
			env.Nil(stands.Results[0].Decision)
			env.Nil(stands.Results[0].Error)
			var passed schemas.HostResolvedReply
			asks(schemas.HostResolvedSubject("ada"), "passed", &passed)
			env.Equal(version == "newer", len(passed.PendingIDs) == 1, "only the newer hook says that its host asks too")

			if version == "older" {
				_, err = env.Ann().Answer(env.Ctx, schemas.Answer{SessionID: "S", PendingID: "perm-1", Digest: receipt.Digest, OptionID: "reject_once", From: rig.Ann()})
				env.NoError(err)
			}
			told, err := decisions.NextMsgWithContext(env.Ctx)
			env.NoError(err)
			var d schemas.Decision
			env.NoError(schemas.Decode(told.Data, &d))
			env.Equal(map[string]schemas.Outcome{"older": schemas.Denied, "newer": schemas.Withdrawn}[version], d.Outcome)
			asks(schemas.AwaitSubject("ada"), "await", &stands)
			env.Equal(d.DecisionID, stands.Results[0].Decision.DecisionID)
		})
	}
}

// A hook of this version works with an engine that is one minor version older or newer.
func TestThisHookAsksAnEngineOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"older", "newer"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			env := rig.Start(t, func(s *rig.Setup) { s.Engines = 0 })
			nc := env.RawConn(roles.ID{Role: roles.Engine})
			answers := func(id, what string) {
				_, err := nc.Subscribe(schemas.RequestSubject("ada", "S", id), func(m *nats.Msg) { _ = m.Respond(said(env, version, what)) })
				env.NoError(err)
			}
			answers("perm-1", "receipt")
			answers("perm-3", "error")
			env.NoError(nc.Flush())

			ada := env.Agent("ada")
			asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy("S", "perm-1"))
			env.NoError(err)
			env.EqualValues(7, asked.Receipt.Revision)
			env.NoError(nc.Publish(schemas.DecisionSubject("ada", "S", "perm-1"), said(env, version, "decision")))
			d, err := asked.Await(env.Ctx)
			env.NoError(err)
			env.Equal(schemas.Denied, d.Outcome)
			env.Equal("Ann", d.By.Name)

			_, err = ada.Asker.Submit(env.Ctx, rig.Deploy("S", "perm-3"))
			env.Equal("nobody may answer", env.Refusal(err, schemas.CodeUndeliverable).Message)
		})
	}
}

// Settings that demand several votes are refused while an engine runs that does not know votes, because
// such an engine keeps its earlier settings and decides by one answer.
func TestVotesWaitForOlderEnginesToStop(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	older, err := env.Conn(roles.ID{Role: roles.Engine}).Serve(bus.ServiceOptions{
		Name: "nod-engine", Version: "0.0.0", Open: 1,
		Stats: func() any { return map[string]any{"settings_revision": 1 << 20, "frozen_revision": 1 << 20} },
	}, bus.Endpoint{Name: "await", Verb: "await", Tokens: 1, Handle: func(c *bus.Call) { c.Fail(nil) }})
	env.NoError(err)
	lease, err := env.Store.Presence.Put(env.Ctx, "engine."+older.ID(), schemas.Registered{Type: schemas.TypeRegistered, LeaseUntil: time.Now()}, 0, time.Hour)
	env.NoError(err)
	votes := strings.Replace(rig.Everybody, `"permissions": {`, `"permissions": {"confirm": [{"risk": "low", "votes": 2}], `, 1)
	// On a busy machine this engine may reply too late. The refusal may then name this engine too, or
	// be UNAVAILABLE.
	env.Soon("the refusal names the older engine", func() bool {
		_, err := env.Owner().ApplySettings(env.Ctx, []byte(votes))
		env.Error(err, "an older engine is running")
		return errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) &&
			strings.Contains(err.Error(), "these do not, or do not reply: "+older.ID()+"; update or stop them first")
	})
	env.Ann().Allows(env.Agent("ada").Asks(rig.Deploy("S", "1")))

	env.NoError(older.Drain(env.Ctx))
	env.NoError(env.Store.Presence.Remove(env.Ctx, "engine."+older.ID(), lease))
	_, err = env.Owner().ApplySettings(env.Ctx, []byte(votes))
	env.NoError(err)
	_, err = env.Ann().Says(env.Agent("ada").Asks(rig.Deploy("S", "2")), "allow_once")
	env.Refusal(err, schemas.CodeVoted)
}
