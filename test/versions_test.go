package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// said reads a message as another version sends it: an older one without any optional
// field, a newer one with all fields and some unknown to this version. The files stay
// unchanged while that version is one minor version apart.
func (e *env) said(version, what string) []byte {
	e.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wire", version, what+".json"))
	e.NoError(err)
	return data
}

// A hook one minor version apart asks this engine.
func TestAHookOfAnotherVersionAsksThisEngine(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"older", "newer"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			env := start(t)
			nc := env.rawConn(roles.AgentID("ada"))
			decisions, err := nc.SubscribeSync(schemas.DecisionSubject("ada", "S", "perm-1"))
			env.NoError(err)
			asks := func(subject, what string, into any) {
				t.Helper()
				reply, err := nc.RequestWithContext(env.ctx, subject, env.said(version, what))
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
				_, err = env.Ann().Answer(env.ctx, schemas.Answer{SessionID: "S", PendingID: "perm-1", Digest: receipt.Digest, OptionID: "reject_once", From: ann()})
				env.NoError(err)
			}
			told, err := decisions.NextMsgWithContext(env.ctx)
			env.NoError(err)
			var d schemas.Decision
			env.NoError(schemas.Decode(told.Data, &d))
			env.Equal(map[string]schemas.Outcome{"older": schemas.Denied, "newer": schemas.Withdrawn}[version], d.Outcome)
			asks(schemas.AwaitSubject("ada"), "await", &stands)
			env.Equal(d.DecisionID, stands.Results[0].Decision.DecisionID)
		})
	}
}

// A hook of this version asks an engine one minor version apart.
func TestThisHookAsksAnEngineOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"older", "newer"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			env := start(t, func(s *setup) { s.engines = 0 })
			nc := env.rawConn(roles.ID{Role: roles.Engine})
			answers := func(id, what string) {
				_, err := nc.Subscribe(schemas.RequestSubject("ada", "S", id), func(m *nats.Msg) { _ = m.Respond(env.said(version, what)) })
				env.NoError(err)
			}
			answers("perm-1", "receipt")
			answers("perm-3", "error")
			env.NoError(nc.Flush())

			ada := env.Agent("ada")
			asked, err := ada.asker.Submit(env.ctx, deploy("S", "perm-1"))
			env.NoError(err)
			env.EqualValues(7, asked.Receipt.Revision)
			env.NoError(nc.Publish(schemas.DecisionSubject("ada", "S", "perm-1"), env.said(version, "decision")))
			d, err := asked.Await(env.ctx)
			env.NoError(err)
			env.Equal(schemas.Denied, d.Outcome)
			env.Equal("Ann", d.By.Name)

			_, err = ada.asker.Submit(env.ctx, deploy("S", "perm-3"))
			env.Equal("nobody may answer", env.refusal(err, schemas.CodeUndeliverable).Message)
		})
	}
}
