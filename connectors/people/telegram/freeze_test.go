package telegram_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// freezingDesk is a people.Freezer that records its calls.
type freezingDesk struct {
	*desk
	frozen, thawed chan schemas.FreezeRequest
}

func (d *freezingDesk) Freeze(_ context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	d.frozen <- b
	return schemas.FreezeState{Denied: 2, Laggards: []string{"slow"}}, nil
}

func (d *freezingDesk) Thaw(_ context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	if b.SessionID == "gone" {
		return schemas.FreezeState{}, schemas.Errorf(schemas.CodeNotFound, "nothing of that is frozen")
	}
	d.thawed <- b
	return schemas.FreezeState{Freezes: []schemas.Freeze{{SessionID: "S", By: schemas.By{Name: "Bob"}}}}, nil
}

// The reply to a freeze names its target. Without a valid target, a freeze freezes all agents, and a
// thaw changes nothing.
func TestAFreezeNamesItsTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := &freezingDesk{w.desk, make(chan schemas.FreezeRequest, 10), make(chan schemas.FreezeRequest, 10)}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.carrier.Run(ctx, d) }()
	t.Cleanup(func() { cancel(); <-ended })

	for _, row := range []struct {
		text string
		want schemas.FreezeRequest
		told string
	}{
		{"/freeze", schemas.FreezeRequest{}, "every request of any agent is denied until you send /thaw. Open requests denied: 2"},
		{"/freeze too many deletions", schemas.FreezeRequest{Reason: "too many deletions"}, "every request of any agent"},
		{"/freeze\nstop it", schemas.FreezeRequest{Reason: "stop it"}, "every request of any agent"},
		{"/freeze agent ada deletes  too much", schemas.FreezeRequest{Agent: "ada", Reason: "deletes  too much"}, "every request of agent ada is denied until you send /thaw agent ada. Open requests denied: 2. Commands that already run are not stopped. All others go on"},
		{"/freeze Session s-1", schemas.FreezeRequest{SessionID: "s-1"}, "every request of session s-1 is denied until you send /thaw session s-1"},
		{"/freeze agent", schemas.FreezeRequest{Reason: "agent"}, "every request of any agent"},
		{"/freeze agent: ada", schemas.FreezeRequest{Reason: "agent: ada"}, "every request of any agent"},
		{"/freeze session s.1", schemas.FreezeRequest{Reason: "session s.1"}, "every request of any agent"},
	} {
		w.Write(ann, row.text, 0)
		got := <-d.frozen
		require.NotEmpty(t, got.From.UserID)
		got.From = schemas.From{}
		require.Equal(t, row.want, got, row.text)
		w.told(row.told)
	}
	w.told("have not confirmed the freeze and may still allow by a rule: slow")

	for _, text := range []string{"/thaw agent", "/thaw everything", "/thaw agent ada now", "/thaw session s.1"} {
		w.Write(ann, text, 0)
		w.waits(func() bool {
			all := w.Chat(ann)
			return all[len(all)-1].Text == "Nothing changed. Send /thaw, /thaw agent NAME or /thaw session ID, and nothing else."
		})
		w.Write(ann, "hello", 0)
		w.waits(func() bool {
			all := w.Chat(ann)
			return all[len(all)-1].Text != "Nothing changed. Send /thaw, /thaw agent NAME or /thaw session ID, and nothing else."
		})
	}
	w.Write(ann, "/thaw session gone", 0)
	w.told("Nothing changed: nothing of that is frozen")
	for text, want := range map[string]schemas.FreezeRequest{"/thaw": {}, "/thaw agent ada": {Agent: "ada"}, "/thaw session S": {SessionID: "S"}} {
		w.Write(ann, text, 0)
		got := <-d.thawed
		got.From = schemas.From{}
		require.Equal(t, want, got, text)
	}
	w.told("Thawed: agent ada may ask again.\nStill in force: session S is frozen by Bob")
}
