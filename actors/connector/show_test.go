package connector_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func (r *rig) entryOf(p schemas.Prompt) (s schemas.Shown) {
	conn, err := r.nod.Connect(r.ctx, roles.ConnectorID("pager"))
	require.NoError(r.t, err)
	defer conn.Close()
	query := schemas.Shown{Type: schemas.TypeShown, Op: schemas.ShownGet, Recipient: "ann@example.org", SessionID: p.SessionID, PendingID: p.PendingID}
	require.NoError(r.t, conn.CallInto(r.ctx, schemas.ShownSubject("pager"), query, &s))
	return s
}

func TestTheHandleIsStoredBeforeTheChoicesAreAdded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stored := make(chan schemas.Shown, 1)
	p := newReviser(func(shown schemas.Prompt) error {
		stored <- r.entryOf(shown)
		return nil
	})
	r.work(p)
	asked := r.ask()
	entry := next(r, stored)
	require.Equal(t, "message-1", entry.Ref)
	require.Zero(t, entry.Revision, "nothing can be answered yet")
	require.NotNil(t, entry.Claim)
	require.Equal(t, asked.PendingID, r.wait(p.revised).PendingID)
	_, err := (<-p.desks).Answer(r.ctx, answerTo(r.wait(p.sent), "ann@example.org"))
	require.NoError(t, err)
	require.Equal(t, schemas.Allowed, r.wait(p.ended).Decision.Outcome)
	entry = r.entryOf(prompted(asked))
	require.Empty(t, entry.Also)
	require.False(t, entry.Repeat)
}

func TestChoicesThatFailedAreAddedToTheSameMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tries := 0
	p := newReviser(func(schemas.Prompt) error {
		if tries++; tries < 3 {
			return errors.New("the connection broke")
		}
		return nil
	})
	r.work(p)
	r.ask()
	require.False(t, r.wait(p.revised).Repeat)
	r.wait(p.sent)
	require.Empty(t, p.sent, "sent once")
}

func TestAMessageThatWasDeletedWithoutChoicesIsSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tries := 0
	p := newReviser(func(schemas.Prompt) error {
		switch tries++; tries {
		case 1:
			return errors.New("the connection broke")
		case 2:
			return &people.Error{Permanent: true, Err: errors.New("message to edit not found")}
		}
		return nil
	})
	notices := r.notices()
	r.work(p)
	r.ask()
	require.False(t, r.wait(p.sent).Repeat)
	require.True(t, r.wait(p.sent).Repeat)
	require.True(t, r.wait(p.revised).Repeat)
	require.Equal(t, schemas.NoticeShown, next(r, notices).Kind)
	_, err := (<-p.desks).Answer(r.ctx, answerTo(p.shown["message-2"], "ann@example.org"))
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, schemas.Allowed, r.wait(p.ended).Decision.Outcome)
	}
}

// If a channel refuses a question's buttons, no person can answer the question on this channel. The
// worker reports the question as undeliverable and sends no second message.
func TestAQuestionWithoutChoicesIsReportedAsUndeliverable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newReviser(func(schemas.Prompt) error {
		return &people.Error{Permanent: true, Err: errors.New("the buttons are refused")}
	})
	notices := r.notices()
	r.work(p)
	asked := r.ask()
	n := next(r, notices)
	require.Equal(t, schemas.NoticeUndeliverable, n.Kind)
	require.Contains(t, n.Text, "the buttons are refused")
	r.wait(p.sent)
	require.Empty(t, p.sent)
	_, err := r.asker.Withdraw(r.ctx, "S", asked.PendingID, "changed its mind")
	require.NoError(t, err)
	require.Empty(t, r.entryOf(prompted(asked)).Also)
}

func TestAMessageWithoutAHandleIsReportedAsUndeliverable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newReviser(func(schemas.Prompt) error { return nil })
	notices := r.notices()
	r.work(struct {
		unhandled
		people.Reviser
	}{unhandled{p.pager}, p})
	r.ask()
	n := next(r, notices)
	require.Equal(t, schemas.NoticeUndeliverable, n.Kind)
	require.Contains(t, n.Text, "returned no handle")
	require.Empty(t, p.revised)
}

func prompted(r *bus.OpenRequest) schemas.Prompt {
	return schemas.Prompt{SessionID: r.Receipt.SessionID, PendingID: r.PendingID}
}
