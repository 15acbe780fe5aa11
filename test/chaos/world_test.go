package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// askers is how many connections the agent has: identical calls come from different
// ones, and so through different engines.
const askers = 3

// world is the agents and people of one scenario, in this process, and what they
// did.
type world struct {
	*history
	place  place
	agents []*bus.Asker
	people []*person
	system *actors.System

	eyes eyes
	say  func(...any) // to the test's log

	stops []func()

	mu      sync.Mutex
	groups  map[string]string // of asked ids, by key
	active  map[string]bool   // the stories that are told
	revoked []*reach          // standing answers that ended, the newest last
}

// person is an approver at one connector. Ann and Bob see what their viewer shows.
type person struct {
	name   string // as in the settings
	userID string
	desk   *connector.Desk
	viewer *connector.Viewer // nil for Carl, whose prompts are on his phone

	mu      sync.Mutex
	shown   map[string]schemas.Prompt // what is open, as it was shown last, by key
	changed chan struct{}             // closed at the next change
}

// quiet hides what the faults provoke. NOD_TEST_LOG=1 shows it.
func quiet() *slog.Logger {
	if os.Getenv("NOD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

func newWorld(ctx context.Context, p place, say func(...any)) (*world, error) {
	w := &world{say: say, history: newHistory(), place: p, system: actors.NewSystem(quiet()), groups: map[string]string{}, active: map[string]bool{}}
	if err := w.open(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) open(ctx context.Context) error {
	for range askers {
		conn, err := w.dial(ctx, "agents", roles.AgentID("ada"))
		if err != nil {
			return err
		}
		asker := bus.NewAsker(conn, "ada")
		w.agents = append(w.agents, asker)
		w.stops = append(w.stops, asker.Close)
	}
	for _, who := range []struct{ name, connector, userID string }{{"Ann", "terminal", ann}, {"Bob", "web", bob}, {"Carl", "telegram", carl}} {
		conn, err := w.dial(ctx, "people", roles.ConnectorID(who.connector))
		if err != nil {
			return err
		}
		p := &person{name: who.name, userID: who.userID, desk: connector.NewDesk(conn, who.connector), shown: map[string]schemas.Prompt{}, changed: make(chan struct{})}
		w.people = append(w.people, p)
		if !schemas.Inbox(who.connector) {
			continue
		}
		if p.viewer, err = connector.View(ctx, w.system, conn, who.connector, quiet(), func(prompt schemas.Prompt) { w.sees(p, prompt) }); err != nil {
			return err
		}
		w.stops = append(w.stops, func() { _ = p.viewer.Stop(context.Background()) }) // nothing waits for its lanes
	}
	return nil
}

// dial opens a connection that ends with the world.
func (w *world) dial(ctx context.Context, client string, id roles.ID) (*bus.Conn, error) {
	conn, err := bus.Connect(ctx, bus.Options{
		URL: w.place.urls(client), Name: "chaos-" + id.String(), Creds: w.place.keys().Path(id), Inbox: id.InboxPrefix(), Log: quiet(), Wait: 30 * time.Second,
	})
	if err == nil {
		w.stops = append(w.stops, conn.Close)
	}
	return conn, err
}

func (w *world) close() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
	w.system.Stop()
}

func (w *world) ann() *person  { return w.people[0] }
func (w *world) bob() *person  { return w.people[1] }
func (w *world) carl() *person { return w.people[2] }

// sees notes a version that a viewer showed.
func (w *world) sees(p *person, prompt schemas.Prompt) {
	w.begin(event{Op: opView, Session: prompt.SessionID, ID: prompt.PendingID, Who: p.name, Group: w.groupOf(prompt.Key())})(func(e *event) {
		e.Decision, e.Pending, e.Waiters = prompt.Decision, prompt.Decision == nil, prompt.Waiters
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown[prompt.Key()] = prompt; prompt.Decision != nil {
		delete(p.shown, prompt.Key())
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (w *world) groupOf(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups[key]
}

// finds waits until the person is shown an open request that fits.
func (p *person) finds(ctx context.Context, fits func(*schemas.Prompt) bool) (schemas.Prompt, error) {
	for {
		p.mu.Lock()
		changed := p.changed
		for _, prompt := range p.shown {
			if fits(&prompt) {
				p.mu.Unlock()
				return prompt, nil
			}
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return schemas.Prompt{}, ctx.Err()
		}
	}
}

// story is one strand of the load: a few requests that belong together, by one seed.
type story struct {
	*world
	name    string
	session string
	rng     *rand.Rand
	asks    sync.WaitGroup // those that wait for their decision
}

// call is a tool call that no rule settles. Calls of one group are identical.
func (s *story) call(group string) schemas.Request {
	return schemas.Request{
		SessionID: s.session, PendingID: bus.NewID(), Kind: schemas.KindToolCall, Title: "Use Frobnicate", ToolName: "Frobnicate",
		ActionType: schemas.ActionOther, ActionDetails: fmt.Appendf(nil, `{"group":%q}`, group), Options: schemas.DefaultOptions(),
	}
}

// asked is a request on its way.
type asked struct {
	request schemas.Request
	group   string
	receipt schemas.Receipt
	heard   chan struct{} // closed once the asker has its decision, or an error for good
	drop    func()        // has the asker stop waiting
	outcome *schemas.Decision
	err     error
}

// open reports whether the request was told to be open.
func (a *asked) open() bool { return a.receipt.Revision != 0 }

// ask asks through one of the agent's connections and returns once it has a receipt
// or a decision; what waits is heard in the background.
func (s *story) ask(ctx context.Context, conn int, group string, r schemas.Request) *asked {
	s.mu.Lock()
	s.groups[r.Key()] = group
	s.mu.Unlock()
	who := fmt.Sprint("ada", conn)
	a := &asked{request: r, group: group, heard: make(chan struct{})}
	end := s.begin(event{Op: opAsk, Story: s.name, Session: r.SessionID, ID: r.PendingID, Who: who, Group: group})
	q, err := s.agents[conn].SubmitAs(ctx, r)
	if err != nil {
		a.err = err
		close(a.heard)
		end(func(e *event) { e.Err = err })
		return a
	}
	a.receipt = q.Receipt
	if !a.open() {
		d, err := q.Await(ctx) // it is there
		a.outcome, a.err = &d, err
		close(a.heard)
		end(func(e *event) { e.Decision, e.Err = &d, err })
		return a
	}
	end(func(e *event) { e.Pending, e.Deadline = true, q.Receipt.Deadline })
	s.hear(ctx, who, a, q)
	return a
}

// hear waits for the decision until the asker drops it.
func (s *story) hear(ctx context.Context, who string, a *asked, q *bus.Asked) {
	waits, drop := context.WithCancel(ctx)
	dropped := make(chan struct{})
	a.drop = func() { drop(); <-dropped }
	end := s.begin(event{Op: opHear, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: who, Group: a.group, Deadline: q.Receipt.Deadline})
	s.asks.Go(func() {
		defer close(dropped)
		defer drop()
		d, err := q.Await(waits)
		if err != nil && waits.Err() != nil && errors.Is(err, waits.Err()) {
			q.Drop() // it wants to hear no more, or the scenario ends
			end(func(e *event) { e.Err = err })
			return
		}
		a.err = err
		if err == nil {
			a.outcome = &d
		}
		end(func(e *event) { e.Decision, e.Err = a.outcome, err })
		close(a.heard)
	})
}

// allowed reports whether the asker has heard that its call may run.
func (a *asked) allowed() bool {
	select {
	case <-a.heard:
		return a.outcome != nil && a.outcome.Outcome == schemas.Allowed
	default:
		return false
	}
}

// answers has a person answer a request, whether or not it was on their screen.
func (s *story) answers(ctx context.Context, p *person, a schemas.Answer, group string) (schemas.Decision, error) {
	a.From = schemas.From{UserID: p.userID}
	end := s.begin(event{
		Op: opAnswer, Story: s.name, Session: a.SessionID, ID: a.PendingID, Who: p.name, Group: group,
		Option: a.OptionID, Scope: a.Scope, Waiters: max(a.Waiters, 1),
	})
	d, err := p.desk.Answer(ctx, a)
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision = &d
		}
	})
	return d, err
}

// reply is an answer to a prompt, about as many calls as it counted.
func reply(p *schemas.Prompt, option string) schemas.Answer {
	return schemas.Answer{SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, OptionID: option, Waiters: p.Waiters}
}

// blind is an answer to a request by its receipt.
func (a *asked) blind(option string) schemas.Answer {
	return schemas.Answer{SessionID: a.request.SessionID, PendingID: a.request.PendingID, Digest: a.receipt.Digest, OptionID: option, Waiters: 1}
}

// withdraws takes a request back.
func (s *story) withdraws(ctx context.Context, conn int, a *asked) {
	end := s.begin(event{Op: opWithdraw, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: fmt.Sprint("ada", conn), Group: a.group})
	d, err := s.agents[conn].Withdraw(ctx, a.request.SessionID, a.request.PendingID, "changed my mind")
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision = &d
		}
	})
}

// detaches stops waiting for a call and leaves it open.
func (s *story) detaches(ctx context.Context, conn int, a *asked) {
	if a.drop(); a.allowed() {
		return // it runs
	}
	end := s.begin(event{Op: opDetach, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: fmt.Sprint("ada", conn), Group: a.group})
	err := s.agents[conn].Detach(ctx, a.request.SessionID, a.request.PendingID, "nobody answered in time")
	end(func(e *event) { e.Err = err })
}

// shows has a person read a request.
func (s *story) shows(ctx context.Context, p *person, a *asked) {
	end := s.begin(event{Op: opShow, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: p.name, Group: a.group})
	prompt, _, err := p.desk.Show(ctx, a.request.SessionID, a.request.PendingID)
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision, e.Pending = prompt.Decision, prompt.Decision == nil
		}
	})
}

// someone is Ann or Bob.
func (s *story) someone() *person { return s.people[s.rng.IntN(2)] }

// option is the one or the other, one in four a denial.
func (s *story) option() string {
	if s.rng.IntN(4) == 0 {
		return "reject_once"
	}
	return "allow_once"
}

// thinks waits for up to d, as people and agents do.
func (s *story) thinks(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(time.Duration(s.rng.Int64N(int64(d) + 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// about fits the prompts of one request.
func about(r *schemas.Request) func(*schemas.Prompt) bool {
	return func(p *schemas.Prompt) bool { return p.SessionID == r.SessionID && p.PendingID == r.PendingID }
}

// grouped fits the prompts of a group.
func (s *story) grouped(group string) func(*schemas.Prompt) bool {
	return func(p *schemas.Prompt) bool { return p.SessionID == s.session && s.groupOf(p.Key()) == group }
}

// onPhone waits until a question is on Carl's phone with its buttons, and returns what
// presses one of them.
func (s *story) onPhone(ctx context.Context, id string) (press func(words string), err error) {
	var found telegramtest.Message
	err = every(ctx, 100*time.Millisecond, func() (there bool) {
		found, there = s.eyes.sees(id)
		return there
	})
	return func(words string) {
		for _, b := range found.Buttons {
			if strings.Contains(b.Text, words) {
				s.place.telegram().Press(carlID, carlID, found.ID, b.Data, false)
			}
		}
	}, err
}

// eyes are Carl's: the questions on his phone that have buttons, by their request, as
// they were a moment ago.
type eyes struct {
	mu        sync.Mutex
	questions map[string]telegramtest.Message
}

func (e *eyes) sees(id string) (telegramtest.Message, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, there := e.questions[id]
	return m, there
}

// watch looks at the phone until ctx ends.
func (e *eyes) watch(ctx context.Context, phone *telegramtest.Server) {
	_ = every(ctx, 200*time.Millisecond, func() bool { // it ends with ctx
		questions := map[string]telegramtest.Message{}
		for _, m := range phone.Chat(carlID) {
			if id, ok := requestOn(m); ok && len(m.Buttons) > 0 {
				questions[id] = m
			}
		}
		e.mu.Lock()
		e.questions = questions
		e.mu.Unlock()
		return false
	})
}

// requestOn is the id of the request that a message asks about.
func requestOn(m telegramtest.Message) (id string, ok bool) {
	_, rest, ok := strings.Cut(m.First, "Request: ")
	id, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSpace(id), ok
}
