package slack_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
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
	desk    *desk
	stop    func() error
	stopped func() error // waits for Run's error
}

func newWorld(t *testing.T, change ...func(*schemas.Prompt)) *world {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	w := &world{require.New(t), newRig(t), ctx, nil, newDesk(t, change...), nil, nil}
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
	ref, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.NoError(err)
	w.NoError(w.carrier.(people.Reviser).Revise(w.ctx, ref, w.desk.prompt))
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

// desk stands in for nod. It has one request, and records the answers.
type desk struct {
	people.Desk
	mu      sync.Mutex
	prompt  schemas.Prompt
	said    []schemas.Answer
	handled map[string]bool
	codes   []string
	freezes int
}

func newDesk(t *testing.T, change ...func(*schemas.Prompt)) *desk {
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "S-1", PendingID: "perm-1", Kind: schemas.KindToolCall, Title: "t", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`), Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	p := schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: "S-1", PendingID: "perm-1", Connector: "slack", Recipient: ann, Agent: "local",
		Request: r, Risk: schemas.RiskLow, Deadline: time.Now().Add(time.Hour), Waiters: 1, Waiting: 1,
	}
	for _, c := range change {
		c(&p)
	}
	var err error
	p.Digest, err = schemas.Digest(&p.Request)
	require.NoError(t, err)
	return &desk{prompt: p, handled: map[string]bool{}}
}

func (d *desk) answers() []schemas.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]schemas.Answer{}, d.said...)
}

func (d *desk) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, a)
	if a.CodeWord == "wrong" {
		return schemas.Decision{}, schemas.Errorf(schemas.CodeForbidden, "not the code word")
	}
	o, _ := d.prompt.Request.Option(a.OptionID)
	out := schemas.Decision{Outcome: schemas.Denied, OptionKind: o.Kind, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, DecidedAt: time.Now(), UpdatedInput: a.UpdatedInput}
	if o.Kind.Allows() {
		out.Outcome = schemas.Allowed
	}
	return out, nil
}

func (d *desk) EachPending(_ context.Context, q schemas.Query, f func([]schemas.Prompt) error) error {
	if q.Recipient != ann {
		return nil
	}
	return f([]schemas.Prompt{d.prompt})
}

func (d *desk) Show(_ context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	if session != "S-1" || id != "perm-1" {
		return schemas.Prompt{}, schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "no request is known")
	}
	return d.prompt, schemas.Page{Now: time.Now()}, nil
}

func (d *desk) Handled(_ context.Context, id string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handled[id], nil
}

func (d *desk) MarkHandled(_ context.Context, id string, _ time.Time) (first bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, d.handled[id] = !d.handled[id], true
	return first, nil
}

func (d *desk) Pair(_ context.Context, code string, from schemas.From) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.codes = append(d.codes, from.UserID+" "+code)
	return nil
}

func (d *desk) Freeze(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freezes++
	return schemas.FreezeState{}, nil
}

func (d *desk) Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.Freeze(ctx, b)
}

func (d *desk) LoginLink(context.Context, schemas.From) (schemas.LoginCode, error) {
	return schemas.LoginCode{URL: "https://nod.example.com", Code: "c0de", Until: time.Now().Add(time.Minute)}, nil
}

var _ people.Carrier = (*slack.Carrier)(nil)
