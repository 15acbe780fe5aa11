package telegram_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

func TestNothingIsConfirmedBeforeNodTookIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	w.desk.err = func() error { return schemas.Errorf(schemas.CodeUnavailable, "no engine") }
	run := make(chan error, 1)
	go func() { run <- w.carrier.Run(w.ctx, w.desk) }()
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	w.ErrorContains(<-run, "no engine")
	w.Equal(1, w.Unconfirmed())

	w.desk.err = func() error { return nil }
	stop := w.run()
	w.Equal("allow_once", (<-w.desk.answers).OptionID)
	w.waits(func() bool { return w.Unconfirmed() == 0 })
	w.ErrorIs(stop(), context.Canceled)
}

func TestAPressOnADeletedMessageIsResolvedByItsDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	defer w.run()()
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, true)
	a := <-w.desk.answers
	w.Equal(w.desk.prompt.Digest, a.Digest)
	w.Equal(schemas.From{UserID: peopletest.Ann, Chat: peopletest.Ann, MessageID: refOf(m.ID)}, a.From)
}

// A refusal is an alert, which stays on the screen until the person closes it. The text "Nothing
// left to do" is no refusal and no alert, although it begins like "Nothing changed".
func TestARefusalIsAnAlert(t *testing.T) {
	t.Parallel()
	bob := &schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Bob"}}
	stale := schemas.Errorf(schemas.CodeStale, "over")
	for _, c := range []struct {
		text    string
		decided *schemas.Decision
		err     error
		alert   bool
	}{
		{text: "✅ Allowed once"},
		{text: "Nothing left to do", decided: bob},
		{text: "Nothing changed: Bob allowed", err: stale.WithDecision(bob), alert: true},
		{text: "Nothing changed: you are not", err: schemas.Errorf(schemas.CodeForbidden, "no"), alert: true},
	} {
		t.Run(c.text, func(t *testing.T) {
			w := newWorld(t)
			m := w.shows()
			w.desk.prompt.Decision = c.decided
			w.desk.err = func() error { return c.err }
			defer w.run()()
			w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
			var toast telegramtest.Read
			w.waits(func() bool {
				all := w.Read(ann)
				toast = all[len(all)-1]
				return toast.Toast != ""
			})
			w.Contains(toast.Toast, c.text)
			w.Equal(c.alert, toast.Alert)
		})
	}
}

func TestAPressThatCameLongAgoIsAnsweredWithAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	w.desk.err = func() error {
		return schemas.Errorf(schemas.CodeStale, "over").WithDecision(&schemas.Decision{Outcome: schemas.TimedOut})
	}
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	w.Expire()
	defer w.run()()
	w.told("Nothing changed: this expired")
}

func TestAPanicDoesNotStopLaterUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	first := true
	w.desk.err = func() error {
		if first {
			first = false
			panic("a bug")
		}
		return nil
	}
	defer w.run()()
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	<-w.desk.answers
	w.waits(func() bool { return w.Unconfirmed() == 0 })
}

// If nod no longer stores the request of a prompt, a press removes the buttons of the prompt.
func TestAPressOnADeletedQuestionRemovesItsButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	w.desk.gone = true
	defer w.run()()
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	w.told("Nothing changed")
	w.waits(func() bool { return len(w.Chat(ann)[0].Buttons) == 0 })
	w.Empty(w.Rejected())
}

// If a second poller takes over the bot, the first poller returns an error that names the remedy.
func TestASecondPollerReplacesTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := make(chan error, 1)
	go func() { first <- w.carrier.Run(w.ctx, w.desk) }()
	w.waits(w.awaits)
	stop := w.run()
	err := <-first
	var e *people.Error
	w.ErrorAs(err, &e)
	w.Greater(e.After, 5*time.Second, "the other one is left alone for a while")
	w.ErrorContains(err, "one program at a time may poll")
	w.ErrorIs(stop(), context.Canceled)
	w.ForeignWebhook()
	w.ErrorContains(w.carrier.Run(w.ctx, w.desk), "another program receives")
	w.Zero(w.Calls("deleteWebhook"), "it is not nod's to remove")
}

func TestTheRateOfAChatIsObeyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 1000 {
		_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
		var e *people.Error
		if errors.As(err, &e) {
			w.GreaterOrEqual(e.After, time.Second)
			w.False(e.Permanent || e.Unreachable)
			return
		}
		w.NoError(err)
	}
	t.Fatal("no limit was met")
}

func TestUnreachableRecipientsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	for recipient, want := range map[string]people.Error{
		"4242":              {Unreachable: true}, // the user 4242 has never opened the bot
		peopletest.Ann:      {Unreachable: true}, // Ann blocked the bot
		"ann@example.org":   {Permanent: true},
		"47 11":             {Permanent: true},
		"99999999999999999": {Unreachable: true},
	} {
		w.Block(ann)
		p := w.desk.prompt
		p.Recipient = recipient
		_, err := w.carrier.Prompt(w.ctx, p)
		var e *people.Error
		w.ErrorAs(err, &e, recipient)
		w.Equal(want, people.Error{After: e.After, Permanent: e.Permanent, Unreachable: e.Unreachable}, err)
	}
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Withdrawn}
	w.NoError(w.carrier.Settle(w.ctx, people.Ref(peopletest.Ann+"/"+refOf(m.ID)), ended))
	w.Delete(ann)
	w.NoError(w.carrier.Settle(w.ctx, people.Ref(peopletest.Ann+"/"+refOf(m.ID)), ended), "a message that is gone")
	w.Error(w.carrier.Settle(w.ctx, "no ref", ended))
}

func TestCommandsAndRepliesAreHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Start(666)
	m := w.shows()
	defer w.run()()
	w.Write(ann, "/start", 0)
	w.told("Your Telegram user id is 4711")
	w.Write(ann, "/pending", 0)
	w.told("1 waiting")
	w.told("│ make")
	w.Write(666, "/pending", 0)
	w.waits(func() bool {
		all := w.Chat(666)
		return len(all) == 1 && all[0].Text == "Nothing is waiting for you."
	})
	w.Write(ann, "no", m.ID)
	w.Equal("reject_once", (<-w.desk.answers).OptionID)
	w.Empty(w.desk.answers)
	w.Empty(w.Rejected())
}

// A reply to a message without buttons answers nothing, because nod may have lost the Ref of that
// message. If the request is decided, the reply tells the person who decided it.
func TestAReplyToAMessageWithoutButtonsDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.NoError(err)
	lost := w.Last(ann)
	defer w.run()()
	w.Write(ann, "yes", lost)
	w.told("Nothing changed: a message without buttons takes no answer")
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}}
	w.desk.shows = func() schemas.Prompt { return ended }
	w.Write(ann, "yes", lost)
	w.told("Nothing changed: Bob denied this")
	w.Empty(w.desk.answers)
	w.Empty(w.Rejected())
}

// A person copies the text of a message from nod and then replies to this copy. The reply decides
// nothing.
func TestAReplyToACopiedMessageDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shows()
	w.Write(ann, "Reply to this message and say why: your reply denies it.\nRequest: perm-1\nSession: S-1", 0)
	copied := w.Last(ann)
	defer w.run()()
	w.told("Nothing changed")
	w.Write(ann, "yes", copied)
	w.waits(func() bool { return w.Unconfirmed() == 0 })
	w.Empty(w.desk.answers)
}

// Only the recipient of a prompt can open steps that decide nothing, such as the list of further options.
func TestOnlyTheRecipientOpensASecondStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Start(666)
	w.desk.prompt.Request.Options = append(w.desk.prompt.Request.Options, schemas.Option{OptionID: "always", Name: "Bash(make:*)", Kind: schemas.AllowAlways})
	m := w.shows()
	w.Len(m.Buttons, 4)
	defer w.run()()
	for i, b := range m.Buttons[2:] { // the buttons "Deny with a reason" and "More options"
		w.Press(666, ann, m.ID, b.Data, false)
		w.waits(func() bool { return len(w.Read(666)) == i+1 })
		w.Contains(w.Read(666)[i].Toast, "you are not among those who may decide this")
	}
	w.Equal([]telegramtest.Message{m}, w.Chat(ann), "nothing was changed or added")
}

// If a request ends while a press opens further buttons, nod removes these buttons.
func TestASecondStepLeavesNoButtonsUnderAnOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.desk.prompt.Request.Options = append(w.desk.prompt.Request.Options, schemas.Option{OptionID: "always", Name: "Bash(make:*)", Kind: schemas.AllowAlways})
	m := w.shows()
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Withdrawn}
	first := w.desk.prompt
	w.desk.shows = func() schemas.Prompt { defer func() { first = ended }(); return first }
	defer w.run()()
	w.Press(ann, ann, m.ID, m.Buttons[3].Data, false)
	w.told("Withdrawn")
	w.Empty(w.Chat(ann)[0].Buttons)
}

// Revise changes the text of a pending prompt and keeps its buttons.
func TestAChangedQuestionKeepsItsButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	ref := people.Ref(peopletest.Ann + "/" + refOf(m.ID))
	p := w.desk.prompt
	p.Detached = true
	w.NoError(w.carrier.Revise(w.ctx, ref, p))
	now := w.Chat(ann)[0]
	w.Contains(now.Text, "the agent has stopped waiting; an answer counts if it asks again")
	w.Equal(m.Buttons, now.Buttons)
	w.NoError(w.carrier.Revise(w.ctx, ref, p), "as it is already")
	p.Detached, p.Request.HostAsks = false, true
	w.NoError(w.carrier.Revise(w.ctx, ref, p))
	w.Contains(w.Chat(ann)[0].Text, "can also be answered in the agent's own terminal")
	w.Delete(ann)
	var e *people.Error
	w.ErrorAs(w.carrier.Revise(w.ctx, ref, p), &e, "a message that is gone")
	w.True(e.Permanent)
	w.Error(w.carrier.Revise(w.ctx, "no ref", p))
	w.Empty(w.Rejected())
}
