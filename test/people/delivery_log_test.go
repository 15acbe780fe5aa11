package people

import (
	"context"
	"errors"
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The log has one entry for each person to whom a phone showed a question, even if the worker reports the
// question twice. It also names the people to whom a worker could not show a question.
func TestTheLogNamesThePeopleWhoWereShownAQuestion(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phones), &chat{}
	w := startWorker(env, tg.on(nil, nil))
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "shown"))
	env.Soon("it is logged", func() bool { return env.Logged(schemas.LogShown)["S.shown"] == 1 })
	desk := connector.NewDesk(env.Conn(roles.ConnectorID("tg")), "tg")
	report := schemas.Delivery{Recipient: "7", SessionID: "S", PendingID: "shown", State: schemas.DeliveryShown}
	env.NoError(desk.Report(env.Ctx, report))
	report.Reason = "read"
	env.NoError(desk.Report(env.Ctx, report))
	env.Equal(map[string]int{"S.shown": 1}, env.Logged(schemas.LogShown))
	entry := loggedOf(env, schemas.LogShown)
	env.Equal([]string{"Ann@tg", "ada", "Deploy", q.Receipt.Digest}, []string{entry.Actor, entry.Agent, entry.ToolName, entry.Digest})
	env.Ann().Denies(q)
	w.stop()

	startWorker(env, unreachable{})
	q = ada.Asks(rig.Deploy("S", "lost"))
	env.Soon("it is logged", func() bool { return env.Logged(schemas.LogUndelivered)["S.lost"] == 1 })
	entry = loggedOf(env, schemas.LogUndelivered)
	env.Equal([]string{"Ann@tg", "the chat is blocked"}, []string{entry.Actor, entry.Rule})
	env.Ann().Denies(q)
	env.Zero(env.Logged(schemas.LogShown)["S.lost"])
}

// loggedOf returns the only log entry of a kind.
func loggedOf(env *rig.Env, kind schemas.LogKind) (found schemas.LogEntry) {
	stream, err := env.Raw.Stream(env.Ctx, "permission_log")
	env.NoError(err)
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		entry, err := env.Store.Log.Read(env.Ctx, seq)
		env.NoError(err)
		if entry.Kind == kind {
			env.Empty(found, "two entries")
			found = entry
		}
	}
	return found
}

// unreachable is a carrier whose chats are all blocked.
type unreachable struct{}

func (unreachable) Run(ctx context.Context, _ people.Desk) error {
	<-ctx.Done()
	return nil
}

func (unreachable) Prompt(context.Context, schemas.Prompt) (people.Ref, error) {
	return "", &people.Error{Permanent: true, Err: errors.New("the chat is blocked")}
}

func (unreachable) Settle(context.Context, people.Ref, schemas.Prompt) error { return nil }
