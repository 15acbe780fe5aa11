package inbox

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The lock is kept for as long as its user is at the keyboard: it is renewed
// every few seconds, with real input in the last minute and in no other window.
const (
	renewEvery  = 5 * time.Second
	thereFor    = 60 * time.Second
	lockTimeout = 4 * time.Second
)

// lock is the input lock of one session, held because its user asked for it.
type inputLock struct {
	session string // empty where none is wanted
	held    string // the session whose lock nod has granted, or may have
	calling bool
	renewed time.Time
	typed   time.Time // the last real input
	focused bool
	said    string // why it is not held
}

// heldMsg answers an operation on the lock.
type lockReplyMsg struct {
	session string
	op      schemas.PresenceOp
	lock    schemas.Lock
	err     error
}

// toggleLock asks for the lock of the selected request's session, or lets go.
func (m *model) toggleLock() {
	m.lock.said = ""
	if m.lock.session != "" {
		m.lock.session = ""
		return
	}
	if i := m.requests.current(); i != nil {
		m.lock.session = i.SessionID
	}
}

// keepLock takes, or lets go of, what is not as it should be.
func (m *model) syncLock() tea.Cmd {
	want := m.lock.session
	if !m.lock.focused || m.clock().Sub(m.lock.typed) > thereFor {
		want = ""
	}
	switch {
	case m.lock.calling || want == m.lock.held:
		return nil
	case m.lock.held != "":
		return m.changeLock(schemas.PresenceLeave, m.lock.held)
	}
	return m.changeLock(schemas.PresenceLock, want)
}

// renewLock is keepLock that renews what is held as well, when it is time.
func (m *model) renewLock() tea.Cmd {
	if cmd := m.syncLock(); cmd != nil {
		return cmd
	}
	if m.lock.calling || m.lock.held == "" || m.clock().Sub(m.lock.renewed) < renewEvery {
		return nil
	}
	return m.changeLock(schemas.PresenceLock, m.lock.held) // which takes a lost one again
}

func (m *model) changeLock(op schemas.PresenceOp, session string) tea.Cmd {
	m.lock.calling, m.lock.renewed = true, m.clock()
	return m.call(lockTimeout, func(ctx context.Context) tea.Msg {
		l, err := m.o.Desk.Hold(ctx, m.presence(op, session))
		return lockReplyMsg{session, op, l, err}
	})
}

func (m *model) presence(op schemas.PresenceOp, session string) schemas.Presence {
	return schemas.Presence{
		Type: schemas.TypePresence, Op: op, SessionID: session, ClientID: m.o.ClientID,
		Kind: schemas.ConnectorTerminal, From: schemas.From{UserID: m.o.UserID},
	}
}

func (m *model) applyLockReply(msg lockReplyMsg) tea.Cmd {
	m.lock.calling = false
	switch {
	case msg.op == schemas.PresenceLeave && !unreachable(msg.err):
		m.lock.held = ""
	case msg.op == schemas.PresenceLeave: // tried again at the next tick; the lease ends by itself
		return nil
	case unreachable(msg.err):
		m.lock.held = ""
		return nil
	case msg.err != nil:
		m.lock.session, m.lock.held = "", ""
		m.lock.said = "Not held: " + people.Line(msg.err.Error())
	case !msg.lock.Granted:
		m.lock.session, m.lock.held = "", ""
		m.lock.said = "Not held: " + people.Line(msg.lock.Holder) + " holds it"
	default:
		m.lock.held = msg.session
	}
	return m.syncLock()
}

// letGo gives back what is held, after the program has ended: closing the
// screen is leaving the session.
func (m *model) releaseLock() {
	held := m.lock.held
	if held == "" && m.lock.calling {
		held = m.lock.session
	}
	if held == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), lockTimeout)
	defer cancel()
	_, _ = m.o.Desk.Hold(ctx, m.presence(schemas.PresenceLeave, held)) // where it fails, the lease ends by itself
}
