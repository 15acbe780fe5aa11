package whatsapp_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/whatsapp"
	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

const ann = peopletest.Ann

// world is an in-memory WhatsApp with its limits, a carrier, and a desk with one request.
type world struct {
	*require.Assertions
	*rig
	t       *testing.T
	ctx     context.Context
	carrier *whatsapp.Carrier
	desk    *desk
}

func newWorld(t *testing.T, change ...func(*whatsapp.Options)) *world {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w := &world{require.New(t), newRig(t), t, ctx, nil, newDesk(t)}
	w.open(change...)
	return w
}

// open replaces the carrier, as a restart does.
func (w *world) open(change ...func(*whatsapp.Options)) {
	o := w.options(slog.New(slog.DiscardHandler))
	for _, f := range change {
		f(&o)
	}
	c, err := whatsapp.New(o)
	w.NoError(err)
	w.carrier = c
}

func withTemplate(o *whatsapp.Options) {
	o.Template = whatsapp.TemplateSettings{Name: whatsapptest.Template, Language: "en"}
}

// run runs the carrier until the returned function is called. That function returns Run's error.
func (w *world) run() (stop func() error) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	carrier := w.carrier
	go func() { ended <- carrier.Run(ctx, w.desk) }()
	return func() error { cancel(); return <-ended }
}

func (w *world) waits(holds func() bool) {
	w.t.Helper()
	w.Eventually(holds, 30*time.Second, 2*time.Millisecond)
}

// quiet waits until the webhook has confirmed every call.
func (w *world) quiet() {
	w.t.Helper()
	w.waits(func() bool { return w.Unconfirmed() == 0 })
}

func (w *world) last() whatsapptest.Message {
	w.t.Helper()
	all := w.Chat(ann)
	w.NotEmpty(all)
	return all[len(all)-1]
}

// told waits for a message to Ann that contains this text.
func (w *world) told(text string) {
	w.t.Helper()
	w.waits(func() bool {
		for _, m := range w.Chat(ann) {
			if strings.Contains(strings.ReplaceAll(m.Text, "```", ""), text) {
				return true
			}
		}
		return false
	})
}

// shows shows the desk's request to Ann and returns the message with its buttons.
func (w *world) shows() (people.Ref, whatsapptest.Message) {
	w.t.Helper()
	ref, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.NoError(err)
	return ref, w.last()
}

// desk stands in for nod. It has one request, and records answers, reports, freezes and thaws. It
// keeps its marks of handled messages when the test opens another carrier.
type desk struct {
	people.Desk
	prompt  schemas.Prompt
	mu      sync.Mutex
	answers []schemas.Answer
	reports []schemas.Delivery
	done    []string // the freezes and thaws that the desk received
	handled map[string]bool
	err     error // if not nil, the error that Answer returns
	noMarks error // if not nil, the error of Handled and MarkHandled
}

func newDesk(t *testing.T) *desk {
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "S-1", PendingID: "perm-1", Kind: schemas.KindToolCall, Title: "t", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`), Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	d := &desk{handled: map[string]bool{}}
	d.sets(t, r)
	return d
}

// sets replaces the desk's request.
func (d *desk) sets(t *testing.T, r schemas.Request) {
	digest, err := schemas.Digest(&r)
	require.NoError(t, err)
	d.prompt = schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Connector: "whatsapp", Recipient: ann, Agent: "local",
		Request: r, Digest: digest, Risk: schemas.RiskLow, Deadline: time.Now().Add(time.Hour), Waiters: 1, Waiting: 1,
	}
}

func (d *desk) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return schemas.Decision{}, d.err
	}
	d.answers = append(d.answers, a)
	return schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, DecidedAt: time.Now()}, nil
}

func (d *desk) answered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.answers)
}

func (d *desk) EachPending(_ context.Context, q schemas.Query, f func([]schemas.Prompt) error) error {
	if q.Recipient != ann {
		return nil
	}
	return f([]schemas.Prompt{d.prompt})
}

func (d *desk) Show(context.Context, string, string) (schemas.Prompt, schemas.Page, error) {
	return d.prompt, schemas.Page{Now: time.Now()}, nil
}

func (d *desk) Handled(_ context.Context, message string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handled[message], d.noMarks
}

func (d *desk) MarkHandled(_ context.Context, message string, _ time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !d.handled[message]
	d.handled[message] = true
	return first && d.noMarks == nil, d.noMarks
}

func (d *desk) Report(_ context.Context, r schemas.Delivery) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reports = append(d.reports, r)
	return nil
}

func (d *desk) reported() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, r := range d.reports {
		all = append(all, string(r.State)+" "+r.Reason)
	}
	return all
}

func (d *desk) Freeze(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.freezes("freeze")
}

func (d *desk) Thaw(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.freezes("thaw")
}

func (d *desk) freezes(what string) (schemas.FreezeState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, what)
	return schemas.FreezeState{}, nil
}

func (d *desk) did() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.done, " ")
}
