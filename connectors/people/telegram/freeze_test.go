package telegram_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// brakingDesk can be frozen from, and notes how.
type brakingDesk struct {
	*desk
	frozen, thawed chan schemas.FreezeRequest
}

func (d *brakingDesk) Freeze(_ context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	d.frozen <- b
	return schemas.FreezeState{Denied: 2, Laggards: []string{"slow"}}, nil
}

func (d *brakingDesk) Thaw(_ context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	if b.SessionID == "gone" {
		return schemas.FreezeState{}, schemas.Errorf(schemas.CodeNotFound, "nothing of that is frozen")
	}
	d.thawed <- b
	return schemas.FreezeState{Freezes: []schemas.Freeze{{SessionID: "S", By: schemas.By{Name: "Bob"}}}}, nil
}

// A freeze is about what its words name, and says so; where they name nothing
// whole, it is about everything. A thaw must be meant as it is written.
func TestTheBrakeTakesWhatItIsAbout(t *testing.T) {
	w := newWorld(t)
	d := &brakingDesk{w.desk, make(chan schemas.FreezeRequest, 10), make(chan schemas.FreezeRequest, 10)}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.carrier.Run(ctx, d) }()
	t.Cleanup(func() { cancel(); <-ended })

	for _, row := range []struct {
		text string
		want schemas.FreezeRequest
		told string
	}{
		{"/freeze", schemas.FreezeRequest{}, "whatever any agent asks is denied until you send /thaw. Open requests denied: 2"},
		{"/freeze too many deletions", schemas.FreezeRequest{Reason: "too many deletions"}, "whatever any agent asks"},
		{"/freeze\nstop it", schemas.FreezeRequest{Reason: "stop it"}, "whatever any agent asks"},
		{"/freeze agent ada deletes  too much", schemas.FreezeRequest{Agent: "ada", Reason: "deletes  too much"}, "whatever agent ada asks is denied until you send /thaw agent ada. Open requests denied: 2. Commands that run already are not stopped. All others go on"},
		{"/freeze Session s-1", schemas.FreezeRequest{SessionID: "s-1"}, "whatever session s-1 asks is denied until you send /thaw session s-1"},
		{"/freeze agent", schemas.FreezeRequest{Reason: "agent"}, "whatever any agent asks"},
		{"/freeze agent: ada", schemas.FreezeRequest{Reason: "agent: ada"}, "whatever any agent asks"},
		{"/freeze session s.1", schemas.FreezeRequest{Reason: "session s.1"}, "whatever any agent asks"},
	} {
		w.Write(ann, row.text, 0)
		got := <-d.frozen
		require.NotEmpty(t, got.From.UserID)
		got.From = schemas.From{}
		require.Equal(t, row.want, got, row.text)
		w.told(row.told)
	}
	w.told("have not said that they obey, and may still allow by a rule: slow")

	for _, text := range []string{"/thaw agent", "/thaw everything", "/thaw agent ada now", "/thaw session s.1"} {
		w.Write(ann, text, 0)
		w.waits(func() bool {
			all := w.Chat(ann)
			return all[len(all)-1].Text == "Nothing changed. It is /thaw, /thaw agent NAME or /thaw session ID, and nothing else."
		})
		w.Write(ann, "hello", 0)
		w.waits(func() bool {
			all := w.Chat(ann)
			return all[len(all)-1].Text != "Nothing changed. It is /thaw, /thaw agent NAME or /thaw session ID, and nothing else."
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
