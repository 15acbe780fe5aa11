package telegram_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// expires ends the request at its deadline. It returns a function announce, which calls Settle once to
// show the expiry in message m.
func (w *world) expires(m telegramtest.Message) (announce func() error) {
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.TimedOut, By: schemas.By{Kind: schemas.ByClock}, DecidedAt: time.Now()}
	w.desk.prompt = ended
	w.desk.err = func() error { return schemas.Errorf(schemas.CodeStale, "over").WithDecision(ended.Decision) }
	return func() error { return w.carrier.Settle(w.ctx, people.Ref(peopletest.Ann+"/"+refOf(m.ID)), ended) }
}

// announcing makes the desk refuse each answer. Before each refusal the desk calls the function announce,
// so that Settle runs while an answer is being handled. The channel meanwhile gets the results of that
// function.
func (w *world) announcing(announce func() error) (meanwhile chan error) {
	meanwhile = make(chan error, 100)
	refused := w.desk.err
	w.desk.err = func() error { meanwhile <- announce(); return refused() }
	return meanwhile
}

// heldBack requires that err, the result of Settle, makes the worker call Settle again later.
func (w *world) heldBack(err error) {
	w.t.Helper()
	var e *people.Error
	w.True(errors.As(err, &e), "%v", err)
	w.Positive(e.After)
	w.False(e.Permanent || e.Unreachable)
}

// runs starts the carrier. The channel ended gets the error of Run.
func (w *world) runs() (ended chan error) {
	ended = make(chan error, 1)
	go func() { ended <- w.carrier.Run(w.ctx, w.desk) }()
	return ended
}

// awaits reports whether the carrier has received all waiting updates and now waits in an open poll.
func (w *world) awaits() bool { return w.Calls("getUpdates") == 2 && w.Polling() }

// A person pressed a button while nod was away. nod handles this press before it shows that the
// request expired. The test covers polling and a webhook.
func TestEarlierTapsAreHandledBeforeALateExpiryIsShown(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*world){"polling": func(*world) {}, "webhook": func(w *world) { w.useWebhook() }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.shows()
			prepare(w)
			announce := w.expires(m)
			meanwhile := w.announcing(announce)
			w.heldBack(announce())
			w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
			defer w.run()()
			w.heldBack(<-meanwhile)
			w.told("Nothing changed: this expired")
			w.waits(func() bool { return announce() == nil })
			w.Contains(w.seen().Text, "Expired")
		})
	}
}

// A poll that was open while the machine slept receives no more data. nod aborts it when the machine
// wakes. It then handles presses from the time of the sleep, before it shows an expiry.
func TestTapsDuringASleepAreHandledBeforeAnExpiryIsShown(t *testing.T) {
	t.Parallel()
	for _, slept := range []time.Duration{10 * time.Second, 8 * time.Hour} {
		t.Run(slept.String(), func(t *testing.T) {
			w := newWorld(t)
			m := w.shows()
			announce := w.expires(m)
			meanwhile := w.announcing(announce)
			defer w.run()()
			w.waits(w.awaits)
			w.Strand()
			w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
			w.Empty(meanwhile)
			w.carrier.Sleeps(slept)
			w.waits(func() bool { return len(meanwhile) > 0 })
			w.heldBack(<-meanwhile)
			w.told("Nothing changed: this expired")
			w.waits(func() bool { return announce() == nil })
			w.Contains(w.seen().Text, "Expired")
		})
	}
}

// While nod cannot reach Telegram, it does not show that a request expired, however long that takes. It
// shows the expiry after it has received the updates from Telegram.
func TestALateExpiryIsHeldBackDuringAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	announce := w.expires(m)
	for range 10 {
		w.Server.Fail(telegramtest.Fault{Method: "getMe"}) // the connection breaks during the call getMe
		w.ErrorContains(<-w.runs(), "getMe")
		w.heldBack(announce())
		w.carrier.Runs(time.Minute)
	}
	w.heldBack(announce())
	w.NoError(w.afterRun(announce))
}

// afterRun runs the carrier, and calls the function announce until nod may show the expiry. It returns
// the last result of that function.
func (w *world) afterRun(announce func() error) (err error) {
	defer w.run()()
	w.waits(func() bool {
		err = announce()
		var e *people.Error
		return !errors.As(err, &e) || e.After == 0
	})
	return err
}

// nod shows that a request expired only after it has handled all updates from Telegram. If it cannot
// handle them, it waits at most holdFor.
func TestALateExpiryIsHeldBackForALimitedTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	announce := w.expires(m)
	w.desk.err = func() error { return schemas.Errorf(schemas.CodeUnavailable, "no engine") }
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	for range 5 {
		w.ErrorContains(<-w.runs(), "no engine")
		w.heldBack(announce())
		w.carrier.Runs(time.Minute)
	}
	w.NoError(announce())
	w.Contains(w.seen().Text, "Expired")
}

// A worker shows an expiry at once if another worker or program receives the updates.
func TestALateExpiryDoesNotWaitForAnotherReceiver(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*world) (end func()){
		"a poller": func(w *world) func() {
			ended := w.runs()
			w.waits(w.awaits)
			first := w.carrier
			w.carrier = w.open()
			stop := w.run()
			w.ErrorContains(<-ended, "Conflict")
			w.carrier = first
			return func() { _ = stop() } // ignore the error of the context that ends Run
		},
		"a webhook": func(w *world) func() {
			w.ForeignWebhook()
			w.ErrorContains(<-w.runs(), "another program receives")
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.shows()
			announce := w.expires(m)
			defer other(w)()
			w.NoError(announce())
			w.Contains(w.seen().Text, "Expired")
		})
	}
}
