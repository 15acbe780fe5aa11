package discord_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

const ann = peopletest.Ann

// world is an in-memory Discord, a carrier whose Run runs, and a desk with one request.
type world struct {
	*require.Assertions
	*rig
	ctx     context.Context
	carrier people.Carrier
	desk    *peopletest.SingleDesk
	stop    func()
	stopped func() error // waits until Run has ended, and returns its error
}

func newWorld(t *testing.T, change ...func(*schemas.Prompt)) *world {
	w := &world{Assertions: require.New(t), rig: newRig(t), desk: peopletest.NewSingleDesk(t, discord.Name, change...)}
	w.carrier, w.stop, w.stopped = w.runs()
	w.waits(func() bool { return w.Connected() == 1 })
	return w
}

// runs runs a carrier on the same Discord and desk.
func (w *world) runs() (c people.Carrier, stop func(), stopped func() error) { return w.runsOn(w.desk) }

// runsOn runs a carrier on the same Discord and another desk.
func (w *world) runsOn(desk people.Desk) (c people.Carrier, stop func(), stopped func() error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	w.ctx = ctx
	c = w.rig.Open(slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	var err error
	go func() { defer close(ended); err = c.Run(ctx, desk) }()
	w.t.Cleanup(func() { cancel(); <-ended })
	return c, cancel, func() error { <-ended; return err }
}

// ends stops the carrier, and waits until Discord notices.
func (w *world) ends() {
	w.t.Helper()
	w.stop()
	_ = w.stopped()
	w.waits(func() bool { return w.Connected() == 0 })
}

func (w *world) waits(holds func() bool) {
	w.t.Helper()
	w.Eventually(holds, 30*time.Second, 2*time.Millisecond)
}

// shows shows the request to Ann and returns its message.
func (w *world) shows() discordtest.Message {
	w.t.Helper()
	ref, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
	w.NoError(err)
	w.NoError(w.carrier.(people.Reviser).Revise(w.ctx, ref, w.desk.Prompt))
	return w.question()
}

// question returns the present state of the message of the newest prompt.
func (w *world) question() (q discordtest.Message) {
	for _, m := range w.Chat(ann) {
		if !m.Ephemeral {
			q = m
		}
	}
	return q
}

// presses makes Ann press the button with this label under a message.
func (w *world) presses(m discordtest.Message, label string) {
	w.t.Helper()
	for _, b := range m.Buttons {
		if strings.HasPrefix(b.Label, label) {
			w.Press(ann, ann, m.ID, b.ID)
			return
		}
	}
	w.Fail("no button", label)
}

// opens waits for the menu under a message.
func (w *world) opens(m discordtest.Message) (menu discordtest.Message) {
	w.t.Helper()
	w.waits(func() bool {
		var open bool
		menu, open = w.menu(ann, m.ID)
		return open
	})
	return menu
}

// modal waits for a modal with this title.
func (w *world) modal(title string) (m discordtest.Modal) {
	w.t.Helper()
	w.waits(func() bool {
		var open bool
		m, open = w.Server.Open(ann)
		return open && m.Title == title
	})
	return m
}

// told waits until Ann has read a text.
func (w *world) told(text string) {
	w.t.Helper()
	w.waits(func() bool { return w.count(text) > 0 })
}

// count returns in how many of the texts that Ann has read the given text occurs.
func (w *world) count(text string) (n int) {
	for _, r := range w.Server.Read(ann) {
		if strings.Contains(r.Text, text) {
			n++
		}
	}
	return n
}
