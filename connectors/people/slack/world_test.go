package slack_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
	"github.com/nodbus/nod/schemas"
)

const ann = peopletest.Ann

// world is an in-memory Slack, a carrier whose Run runs, and a desk with one request.
type world struct {
	*require.Assertions
	*rig
	ctx     context.Context
	carrier people.Carrier
	desk    *peopletest.SingleDesk
	stop    func() error
	stopped func() error // waits until Run has ended, and returns its error
}

func newWorld(t *testing.T, change ...func(*schemas.Prompt)) *world {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	w := &world{require.New(t), newRig(t), ctx, nil, peopletest.NewSingleDesk(t, slack.Name, change...), nil, nil}
	w.carrier = w.rig.Open(slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	var err error
	go func() { defer close(ended); err = w.carrier.Run(ctx, w.desk) }()
	w.stopped = func() error { <-ended; return err }
	w.stop = func() error { cancel(); return w.stopped() }
	t.Cleanup(func() { _ = w.stop() })
	w.waits(func() bool { return w.Connected() == 1 })
	return w
}

func (w *world) waits(holds func() bool) {
	w.t.Helper()
	w.Eventually(holds, 30*time.Second, 2*time.Millisecond)
}

// shows shows the request to Ann and returns its message.
func (w *world) shows() slacktest.Message {
	w.t.Helper()
	ref, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
	w.NoError(err)
	w.NoError(w.carrier.(people.Reviser).Revise(w.ctx, ref, w.desk.Prompt))
	all := w.Chat(ann)
	return all[len(all)-1]
}

// presses makes Ann press the button with this label, in the open dialog or, if no dialog is
// open, under the message.
func (w *world) presses(m slacktest.Message, label string) {
	w.t.Helper()
	if d, open := w.Server.Open(ann); open {
		for _, b := range d.Buttons {
			if strings.HasPrefix(b.Label, label) {
				w.PressInDialog(ann, b.Value)
				return
			}
		}
	}
	for _, b := range m.Buttons {
		if strings.HasPrefix(b.Label, label) {
			w.Press(ann, ann, m.TS, b.Value)
			return
		}
	}
	w.Fail("no button", label)
}

// dialog waits for a dialog with this title.
func (w *world) dialog(title string) (d slacktest.Dialog) {
	w.t.Helper()
	w.waits(func() bool {
		var open bool
		d, open = w.Server.Open(ann)
		return open && d.Title == title
	})
	return d
}

// told waits for a text that only Ann sees.
func (w *world) told(text string) {
	w.t.Helper()
	w.waits(func() bool {
		for _, r := range w.Server.Read(ann) {
			if strings.Contains(r.Text, text) {
				return true
			}
		}
		return false
	})
}
