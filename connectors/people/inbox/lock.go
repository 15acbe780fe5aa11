package inbox

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The screen renews its input lock at the interval renewEvery. It stops renewing the lock if its window
// has lost the focus, or if the user has not typed or pasted anything for the time thereFor.
const (
	renewEvery  = 5 * time.Second
	thereFor    = 60 * time.Second
	lockTimeout = 4 * time.Second
)

// inputLock is the state of the input lock. The lock is for one session.
type inputLock struct {
	wanted  string // the session whose lock the user wants; may be empty
	held    string // the session whose lock this screen may have: the screen has requested the lock and not released it, and nod has not refused it
	granted bool   // nod's last reply has granted the lock of the session in held
	calling bool
	renewed time.Time
	typed   time.Time // the time of the user's last key or pasted text
	focused bool
	notice  string // the reason why nod has not granted the wanted lock
}

type lockReplyMsg struct {
	session string
	op      schemas.PresenceOp
	lock    schemas.Lock
	err     error
}

// toggleLock sets the wanted lock to the lock of the selected request's session. If the user already
// wants a lock, no lock is wanted from then on.
func (m *model) toggleLock() {
	m.lock.notice = ""
	if m.lock.wanted != "" {
		m.lock.wanted = ""
		return
	}
	if i := m.requests.current(); i != nil {
		m.lock.wanted = i.SessionID
	}
}

// syncLock acquires or releases a lock, so that the screen has the lock that the user wants. While the
// user is away, it releases the lock.
func (m *model) syncLock() tea.Cmd {
	want := m.lock.wanted
	if !m.lock.focused || m.clock().Sub(m.lock.typed) > thereFor {
		want = ""
	}
	switch {
	case m.lock.calling || want == m.lock.held && (want == "" || m.lock.granted):
		return nil
	case m.lock.held != "" && m.lock.held != want:
		return m.changeLock(schemas.PresenceLeave, m.lock.held)
	}
	return m.changeLock(schemas.PresenceLock, want)
}

// renewLock does the same as syncLock, and also renews the lock if the renewal is due.
func (m *model) renewLock() tea.Cmd {
	if cmd := m.syncLock(); cmd != nil {
		return cmd
	}
	if m.lock.calling || m.lock.held == "" || m.clock().Sub(m.lock.renewed) < renewEvery {
		return nil
	}
	return m.changeLock(schemas.PresenceLock, m.lock.held) // if the lock's lease has ended, this call acquires the lock again
}

// changeLock requests or releases the lock of a session. A requested lock counts as held before nod
// replies. If the reply is lost, nod may have granted the lock, and the screen must release it.
func (m *model) changeLock(op schemas.PresenceOp, session string) tea.Cmd {
	m.lock.calling, m.lock.renewed, m.lock.held = true, m.clock(), session
	if op == schemas.PresenceLeave {
		m.lock.granted = false
	}
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
	case unreachable(msg.err): // the next tick tries again; if nod stays unreachable, the lock's lease ends
		m.lock.granted = false
		return nil
	case msg.op == schemas.PresenceLeave:
		m.lock.held = ""
	case msg.err != nil:
		m.lock.wanted, m.lock.held, m.lock.granted = "", "", false
		m.lock.notice = "Not held: " + people.Line(msg.err.Error())
	case !msg.lock.Granted:
		m.lock.wanted, m.lock.held, m.lock.granted = "", "", false
		m.lock.notice = "Not held: " + people.Line(msg.lock.Holder) + " holds it"
	default:
		m.lock.granted = true
	}
	return m.syncLock()
}

// releaseLock releases the lock when the program has ended, because a closed screen must not keep
// a lock.
func (m *model) releaseLock() {
	if m.lock.held == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), lockTimeout)
	defer cancel()
	_, _ = m.o.Desk.Hold(ctx, m.presence(schemas.PresenceLeave, m.lock.held)) // after an error, the lock's lease ends by itself
}
