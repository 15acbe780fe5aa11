package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// twoPeople is a settings.json under which Ann and Bob answer at the terminal.
const twoPeople = `{"approvers":{"people":[
	{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]},
	{"name":"Bob","identities":[{"connector":"terminal","user_id":"bob"}]}]}%s}`

// world is a nod with two agents and two people.
type world struct {
	t   *testing.T
	ctx context.Context
	dir string
	nod *embed.Nod
}

// newWorld starts a nod. more is added to settings.json, with a leading comma.
func newWorld(t *testing.T, more string) *world {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dir: t.TempDir()}
	keys, err := roles.OpenKeys(w.dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(roles.AgentID("other")))
	w.start([]byte(fmt.Sprintf(twoPeople, more)))
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start(settings []byte) {
	n, err := embed.Start(w.ctx, embed.Options{DataDir: w.dir, Settings: settings, SyncInterval: time.Minute})
	require.NoError(w.t, err)
	w.nod = n
}

func (w *world) stop() { require.NoError(w.t, w.nod.Stop(context.Background())) }

func (w *world) connect(id roles.ID) *bus.Conn {
	conn, err := w.nod.Connect(w.ctx, id)
	require.NoError(w.t, err)
	w.t.Cleanup(conn.Close)
	return conn
}

// agent asks as an agent of that name.
func (w *world) agent(name string) *bus.Asker {
	a := bus.NewAsker(w.connect(roles.AgentID(name)), name)
	w.t.Cleanup(a.Close)
	return a
}

func (w *world) desk() *connector.Desk {
	return connector.NewDesk(w.connect(roles.ConnectorID("terminal")), "terminal")
}

func (w *world) owner() *connector.Owner {
	return connector.NewOwner(w.connect(roles.ID{Role: roles.Owner}), "terminal")
}

// bash is a request that asks under the built-in rules.
func bash(session, id, command string) schemas.Request {
	details, _ := schemas.Encode(map[string]string{"command": command})
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: details,
	}
}

// answer is what a person says of a receipt's request.
func answer(r schemas.Receipt, who, option string) schemas.Answer {
	return schemas.Answer{SessionID: r.SessionID, PendingID: r.PendingID, Digest: r.Digest, OptionID: option, From: schemas.From{UserID: who}}
}
