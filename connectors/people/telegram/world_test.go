package telegram_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

var ann = id(peopletest.Ann)

// world is an in-memory Telegram with its limits, a carrier, and a desk with one request.
type world struct {
	*require.Assertions
	*telegramtest.Server
	t       *testing.T
	ctx     context.Context
	carrier *telegram.Carrier
	desk    *desk
}

func newWorld(t *testing.T) *world {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w := &world{require.New(t), telegramtest.New(token), t, ctx, nil, newDesk(t)}
	w.Start(ann)
	t.Cleanup(w.Close)
	w.carrier = w.open()
	return w
}

func (w *world) open() *telegram.Carrier {
	c, err := telegram.New(w.URL(), token, slog.New(slog.DiscardHandler))
	w.NoError(err)
	return c
}

// run runs the carrier until the returned function is called. That function returns Run's error.
func (w *world) run() (stop func() error) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.carrier.Run(ctx, w.desk) }()
	return func() error { cancel(); return <-ended }
}

func (w *world) waits(holds func() bool) {
	w.t.Helper()
	w.Eventually(holds, 30*time.Second, 2*time.Millisecond)
}

// told waits until Ann sees a message or toast that contains this text.
func (w *world) told(text string) {
	w.t.Helper()
	w.waits(func() bool {
		for _, r := range w.Read(ann) {
			if strings.Contains(r.Toast, text) {
				return true
			}
		}
		for _, m := range w.Chat(ann) {
			if strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	})
}

func (w *world) shows() telegramtest.Message {
	w.t.Helper()
	ref, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.NoError(err)
	w.NoError(w.carrier.Revise(w.ctx, ref, w.desk.prompt))
	all := w.Chat(ann)
	return all[len(all)-1]
}

// desk stands in for nod. It has one request, and records the answers.
type desk struct {
	people.Desk
	prompt  schemas.Prompt
	answers chan schemas.Answer
	err     func() error
	shows   func() schemas.Prompt // if not nil, Show returns the prompt of this function instead of the field prompt
	gone    bool                  // nod no longer stores the request
}

func newDesk(t *testing.T) *desk {
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "S-1", PendingID: "perm-1", Kind: schemas.KindToolCall, Title: "t", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`), Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	digest, err := schemas.Digest(&r)
	require.NoError(t, err)
	return &desk{
		prompt: schemas.Prompt{
			Type: schemas.TypePrompt, SessionID: "S-1", PendingID: "perm-1", Connector: "telegram", Recipient: peopletest.Ann, Agent: "local",
			Request: r, Digest: digest, Risk: schemas.RiskLow, Deadline: time.Now().Add(time.Hour),
		},
		answers: make(chan schemas.Answer, 100),
		err:     func() error { return nil },
	}
}

func (d *desk) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	if err := d.err(); err != nil {
		return schemas.Decision{}, err
	}
	d.answers <- a
	return schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, DecidedAt: time.Now()}, nil
}

func (d *desk) EachPending(_ context.Context, q schemas.Query, f func([]schemas.Prompt) error) error {
	if q.Recipient != peopletest.Ann {
		return nil
	}
	return f([]schemas.Prompt{d.prompt})
}

func (d *desk) Show(context.Context, string, string) (schemas.Prompt, schemas.Page, error) {
	if d.gone {
		return schemas.Prompt{}, schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "no request is known")
	}
	if d.shows != nil {
		return d.shows(), schemas.Page{Now: time.Now()}, nil
	}
	return d.prompt, schemas.Page{Now: time.Now()}, nil
}
