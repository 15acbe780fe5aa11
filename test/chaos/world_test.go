package chaos

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// askers is the number of the agent's connections. Identical calls use different connections, so that
// different engines get them.
const askers = 3

// world has the agents and approvers of one scenario, which run in this process. It also has the history
// of their actions.
type world struct {
	*history
	place  place
	agents []*bus.Asker
	people []*person
	system *actors.System

	eyes eyes
	say  func(...any) // a function that prints to the test's log

	stops []func()

	mu      sync.Mutex
	groups  map[string]string // the group of each request, by the key of the request
	active  map[string]bool   // the names of the running stories
	revoked []*reach          // the groups of calls that revoked standing answers covered, the newest last
}

// person is an approver on one channel. Ann and Bob see requests in their viewers.
type person struct {
	name   string // the person's name in the settings
	userID string
	desk   *connector.Desk
	viewer *connector.Viewer // the person's viewer; nil for Carl, who has only a phone

	mu      sync.Mutex
	shown   map[string]schemas.Prompt // the newest version of each pending request in the viewer, by the request's key
	changed chan struct{}             // a Go channel that is closed when the field shown changes
}

// quiet discards log lines about failures that faults cause. With NOD_TEST_LOG=1 they are shown.
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
		if !schemas.IsViewer(who.connector) {
			continue
		}
		if p.viewer, err = connector.View(ctx, w.system, conn, who.connector, quiet(), func(prompt schemas.Prompt) { w.sees(p, prompt) }); err != nil {
			return err
		}
		w.stops = append(w.stops, func() { _ = p.viewer.Stop(context.Background()) }) // Stop fails only if the viewer still has work
	}
	return nil
}

// The method dial opens a connection to nod, which w.close closes.
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

// The method sees records a version of a request from the person's viewer.
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

// The method finds waits until the person's viewer shows a pending request that the filter fits accepts.
func (p *person) finds(ctx context.Context, fits func(*schemas.Prompt) bool) (schemas.Prompt, error) {
	for {
		if ctx.Err() != nil {
			return schemas.Prompt{}, ctx.Err()
		}
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
