package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Messages to the model from other sources than the terminal.
type (
	shownMsg struct{ prompt schemas.Prompt } // nod has sent a version of a request
	tickMsg  struct{}                        // a second has passed since the last tick
)

// model is the screen's state. Only Update changes it.
type model struct {
	ctx   context.Context
	o     Options
	clock func() time.Time // returns this machine's time
	after scheduler

	width, height int
	requests      requestList
	views         []*view // views[0] is the list; the last view receives the keys
	guard         keyGuard
	standing      standingList
	lock          inputLock
	news          string // the outcome of the last request that ended while it was not on the screen

	skew       time.Duration // the broker's time minus this machine's time
	skewKnown  bool
	refreshing bool // a refresh has been started, and its reply has not arrived
	offline    bool // the last refresh failed to reach nod
	behind     bool // the screen may have missed the ends of requests while nod was unreachable
	reached    bool // nod has replied at least once
	closing    bool
	touched    bool // the user has pressed a key; before that, the first request of the list is selected
}

func newModel(ctx context.Context, o Options, clock func() time.Time, after scheduler) *model {
	return &model{
		ctx: ctx, o: o, clock: clock, after: after, guard: keyGuard{after: after}, requests: requestList{items: map[string]*item{}},
		views: []*view{{kind: browse}}, lock: inputLock{focused: true, typed: clock()},
	}
}

// now returns the broker's time.
func (m *model) now() time.Time { return m.clock().Add(m.skew) }

// Init starts the ticks and the first query.
func (m *model) Init() tea.Cmd { return tea.Batch(m.tick(), m.refresh(), m.relayout()) }

func (m *model) tick() tea.Cmd { return m.after(time.Second, tickMsg{}) }

// Update handles one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.handle(msg)
	return m, tea.Batch(cmd, m.relayout())
}

func (m *model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		m.lock.typed, m.touched = m.clock(), true
		m.requests.hearAll()
		return tea.Batch(m.press(msg), m.syncLock())
	case tea.PasteMsg:
		m.lock.typed = m.clock()
		m.top().paste(msg.Content)
	case tea.FocusMsg:
		m.lock.focused = true
		return m.syncLock()
	case tea.BlurMsg:
		m.lock.focused = false
		return m.syncLock()
	case armMsg:
		return m.guard.arm(msg, m.clock())
	case standingMsg:
		m.applyStanding(msg)
	case tickMsg:
		m.expireStanding(m.now())
		return tea.Batch(m.tick(), m.refresh(), m.renewLock(), m.ring())
	case shownMsg:
		m.applyVersion(msg.prompt)
		return m.ring()
	case refreshMsg:
		return m.refreshed(msg)
	case missedMsg:
		m.applyMissed(msg)
	case answeredMsg:
		return m.answered(msg)
	case lockReplyMsg:
		return m.applyLockReply(msg)
	}
	return nil
}

// relayout updates the screen after a change. It lays out the views, and records which rows are
// visible. If the effect of a key has changed, it makes the keys ineffective for a moment.
func (m *model) relayout() tea.Cmd {
	if len(m.requests.order) > 0 && (m.requests.current() == nil || !m.touched) {
		m.requests.selected = m.requests.order[0]
	}
	m.closeEnded()
	m.requests.prune(m.onScreen)
	for _, v := range m.views {
		m.layOut(v)
	}
	if top := m.top(); !top.takesText() {
		top.page.markSeen(m.frame().body)
	}
	var first tea.Cmd
	if !m.skewKnown && m.requests.current() != nil {
		first = m.refresh()
	}
	return tea.Batch(first, m.guard.disarmOnChange(m.keyEffect(), m.clock()))
}

// keyEffect returns a text that changes when a key would do something else than before. After
// such a change the keys have no effect for a moment.
func (m *model) keyEffect() string {
	var b strings.Builder
	top := m.top()
	fmt.Fprint(&b, len(m.views), top.kind, m.width, m.height, top.choice, m.allowBarrier(), m.lock.wanted, m.standingEffect())
	for _, i := range m.itemsOf(top) {
		fmt.Fprint(&b, " ", i.Key(), i.Digest, i.Revision, i.open(), i.sending)
	}
	return b.String()
}

// awayAfter is the time after the last key at which the screen assumes that its user is away.
const awayAfter = 15 * time.Second

// ring rings the terminal once for the requests that are new since the user's last key, if the user
// has been away for awayAfter.
func (m *model) ring() tea.Cmd {
	if !m.o.Rings || m.clock().Sub(m.lock.typed) < awayAfter {
		return nil
	}
	var fresh []schemas.Prompt
	for _, i := range m.requests.items {
		if i.open() && !i.heard {
			i.heard = true
			fresh = append(fresh, i.Prompt)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return tea.Raw(people.Ring(fresh...))
}

// applyVersion stores a version of a request. If this version ends a request that is not on the
// screen, applyVersion stores the outcome in m.news.
func (m *model) applyVersion(p schemas.Prompt) {
	ended := m.requests.apply(p)
	if ended == nil {
		return
	}
	if !m.onScreen(ended) {
		m.news = people.Outcome(p.Decision, &p) + "  " + people.Summary(&p, 40)
	}
}

// onScreen reports whether one of the open views shows a request.
func (m *model) onScreen(i *item) bool {
	return slices.ContainsFunc(m.views, func(v *view) bool { return slices.Contains(m.itemsOf(v), i) })
}

// close ends the program. If answers are on their way, it first waits for their results. If the user
// closes again, it stops waiting.
func (m *model) close() tea.Cmd {
	if m.sending() == 0 || m.closing {
		return tea.Quit
	}
	m.closing = true
	return nil
}

func (m *model) sending() int {
	n := 0
	for _, i := range m.requests.items {
		if i.sending {
			n++
		}
	}
	return n
}
