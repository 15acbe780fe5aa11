package inbox

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

var start = time.Date(2026, 2, 8, 9, 30, 0, 0, time.UTC)

// rig is a screen without a terminal. A test sends messages to the screen, and reads its content and its
// calls to the desk. Only the test moves the screen's clock.
type rig struct {
	*require.Assertions
	t      testing.TB
	m      *model
	desk   *desk
	at     time.Time
	closed bool
	later  []tea.Cmd // calls that wait until the test completes them
	slow   bool
}

func newRig(t testing.TB, width, height int) *rig {
	r := &rig{Assertions: require.New(t), t: t, at: start, desk: &desk{prompts: map[string]*schemas.Prompt{}}}
	r.desk.now = func() time.Time { return r.at }
	o := Options{Desk: r.desk, UserID: "ann", ClientID: "screen"}
	r.m = newModel(context.Background(), o, func() time.Time { return r.at }, func(time.Duration, tea.Msg) tea.Cmd { return nil })
	r.does(r.m.Init())
	r.hears(tea.WindowSizeMsg{Width: width, Height: height})
	return r
}

// hears passes messages to the screen's model. It runs the calls that the model then makes, and
// passes their results to the model.
func (r *rig) hears(msgs ...tea.Msg) {
	for _, msg := range msgs {
		_, cmd := r.m.Update(msg)
		r.does(cmd)
	}
}

func (r *rig) does(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if r.slow {
		r.later = append(r.later, cmd)
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, cmd := range msg {
			r.does(cmd)
		}
	case tea.QuitMsg:
		r.closed = true
	default:
		r.hears(msg)
	}
}

// returns runs the calls that hears has kept in r.later.
func (r *rig) returns() {
	r.slow = false
	later := r.later
	r.later = nil
	for _, cmd := range later {
		r.does(cmd)
	}
}

// rests waits until the keys have an effect again after a change.
func (r *rig) rests() {
	for !r.m.guard.armed {
		r.at = r.at.Add(inert)
		r.hears(armMsg{r.m.guard.count})
	}
}

// ticks moves the clock by a number of seconds, with a tick for each second.
func (r *rig) ticks(seconds int) {
	for range seconds {
		r.at = r.at.Add(time.Second)
		r.hears(tickMsg{})
	}
}

func keyPress(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"esc": tea.KeyEscape, "enter": tea.KeyEnter, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace,
	}
	switch code, ok := codes[name]; {
	case ok:
		return tea.KeyPressMsg{Code: code}
	case name == "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case name == "ctrl+c":
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

// types presses keys without a pause between them. The method presses, in contrast, waits before each key
// until keys have an effect.
func (r *rig) types(keys ...string) {
	for _, k := range keys {
		r.hears(keyPress(k))
	}
}

func (r *rig) presses(keys ...string) {
	for _, k := range keys {
		r.rests()
		r.types(k)
	}
}

// asks stores a version of a request in the desk and sends it to the screen.
func (r *rig) asks(p schemas.Prompt) schemas.Prompt {
	r.desk.prompts[p.Key()] = &p
	r.hears(shownMsg{p})
	return p
}

// ends stores a decision from another channel and sends it to the screen.
func (r *rig) ends(p schemas.Prompt, d schemas.Decision) {
	d.SessionID, d.PendingID, d.DecidedAt = p.SessionID, p.PendingID, r.at
	p.Revision, p.Decision = p.Revision+10, &d
	r.desk.prompts[p.Key()] = &p
	r.hears(shownMsg{p})
}

// screen returns the content of the terminal's cells.
func (r *rig) screen() string {
	view := r.m.View()
	buf := uv.NewScreenBuffer(r.m.width, r.m.height)
	uv.NewStyledString(view.Content).Draw(buf, buf.Bounds())
	rows := make([]string, buf.Height())
	for y := range rows {
		rows[y] = strings.TrimRight(buf.Line(y).String(), " ")
	}
	return strings.Join(rows, "\n")
}

func (r *rig) says(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.Contains(r.screen(), text)
	}
}

func (r *rig) saysNot(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.NotContains(r.screen(), text)
	}
}

// said returns the answers that the desk received.
func (r *rig) said() []schemas.Answer { return r.desk.answers }

func runs(id, command string) schemas.Prompt {
	details, err := json.Marshal(map[string]string{"command": command, "cwd": "/home/ann/app"})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return prompt(id, schemas.Request{
		Kind: schemas.KindToolCall, ToolName: "Bash", Title: "Bash", ActionType: schemas.ActionCommand, ActionDetails: details,
	})
}

func prompt(id string, req schemas.Request) schemas.Prompt {
	req.PendingID, req.SessionID, req.CreatedAt = id, "session-"+id, start
	if req.Options == nil {
		req.Options = schemas.DefaultOptions()
	}
	return schemas.Prompt{
		SessionID: req.SessionID, PendingID: id, Revision: 1, Agent: "local", Request: req, Digest: "digest-" + id,
		Risk: schemas.RiskMedium, Deadline: start.Add(time.Hour),
	}
}

// desk stands in for nod, in memory. The first answer to a request counts.
type desk struct {
	prompts map[string]*schemas.Prompt
	now     func() time.Time
	answers []schemas.Answer
	holds   []schemas.Presence
	away    bool
	fails   string // the query that must fail: "pending" or the id of a request; may be empty
	refuses *schemas.Error
	holder  string // another person who has the input lock; may be empty
}

var _ people.Desk = (*desk)(nil)

func (d *desk) unavailable(query string) error {
	if d.away || query != "" && query == d.fails {
		return schemas.Errorf(schemas.CodeUnavailable, "no answer from nod")
	}
	return nil
}

func (d *desk) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	d.answers = append(d.answers, a)
	if d.refuses != nil {
		return schemas.Decision{}, d.refuses
	}
	if err := d.unavailable(""); err != nil {
		return schemas.Decision{}, err
	}
	p := *d.prompts[schemas.Key(a.SessionID, a.PendingID)]
	if p.Decision != nil {
		return schemas.Decision{}, schemas.Errorf(schemas.CodeConflict, "decided").WithDecision(p.Decision)
	}
	o, _ := p.Request.Option(a.OptionID)
	p.Decision = &schemas.Decision{
		SessionID: a.SessionID, PendingID: a.PendingID, Outcome: schemas.Denied, OptionID: o.OptionID, OptionKind: o.Kind,
		By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, Message: a.Message, DecidedAt: d.now(),
	}
	if o.Kind.Allows() {
		p.Decision.Outcome = schemas.Allowed
	}
	p.Revision++
	d.prompts[p.Key()] = &p
	return *p.Decision, nil
}

func (d *desk) EachPending(_ context.Context, _ schemas.Query, f func([]schemas.Prompt) error) error {
	var all []schemas.Prompt
	for _, p := range d.prompts {
		if p.Decision == nil {
			all = append(all, *p)
		}
	}
	if err := d.unavailable("pending"); err != nil {
		return err
	}
	return f(all)
}

func (d *desk) Show(_ context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	if err := d.unavailable(id); err != nil {
		return schemas.Prompt{}, schemas.Page{}, err
	}
	p := d.prompts[schemas.Key(session, id)]
	if p == nil {
		return schemas.Prompt{}, schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "no request %s is known", id)
	}
	return *p, schemas.Page{Now: d.now()}, nil
}

func (d *desk) Hold(_ context.Context, p schemas.Presence) (schemas.Lock, error) {
	d.holds = append(d.holds, p)
	if err := d.unavailable(""); err != nil {
		return schemas.Lock{}, err
	}
	if d.holder != "" {
		return schemas.Lock{Holder: d.holder}, nil
	}
	return schemas.Lock{Granted: p.Op == schemas.PresenceLock, Holder: "Ann", ClientID: p.ClientID}, nil
}

// held returns the lock operations that the desk received, such as "lock session-1".
func (d *desk) held() (all []string) {
	for _, p := range d.holds {
		all = append(all, string(p.Op)+" "+p.SessionID)
	}
	return all
}

func numbered(n int) string { return "request-" + strconv.Itoa(n) }
