// Package agent hosts several sessions of an agent in one process. Each session has an actor, which
// keeps the ids of the session's open requests and receives the session's notices. The caller's
// goroutine sends each request and waits for the decision.
package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// withdrawWithin is the time limit for withdrawing a session's requests when the session ends.
const withdrawWithin = 5 * time.Second

// Host sends the requests of one agent, in any number of sessions.
type Host struct {
	sys   *actors.System
	conn  *bus.Conn
	asker *bus.Asker
	agent string
	log   *slog.Logger
}

// NewHost returns a Host for sessions of the agent with this name. The connection must use the
// agent's key.
func NewHost(sys *actors.System, conn *bus.Conn, agent string, log *slog.Logger) *Host {
	return &Host{sys: sys, conn: conn, asker: bus.NewAsker(conn, agent), agent: agent, log: log}
}

// Close ends the host. Before that, the caller must call Leave on each of the host's sessions.
func (h *Host) Close() { h.asker.Close() }

// Session is an agent's session in this process.
type Session struct {
	id    string
	host  *Host
	actor *actors.Actor
	unsub func()
}

// The messages that a session's actor handles.
type (
	requestOpened  struct{ id string }
	requestEnded   struct{ id string }
	noticeReceived struct{ notice schemas.Notice }
	listOpen       struct{ open chan []string }
)

// Join starts a session in this process. It calls the function notice for each notice of the session,
// one at a time. The function may be nil. The error is VALIDATION_ERROR if id is malformed.
func (h *Host) Join(id string, notice func(schemas.Notice)) (*Session, error) {
	if !schemas.ValidID(id) {
		return nil, schemas.Errorf(schemas.CodeValidation, "session_id: must be 1 to 128 letters, digits, - or _")
	}
	open := map[string]bool{}
	s := &Session{id: id, host: h}
	s.actor = h.sys.Actor("session", func(message any) {
		switch m := message.(type) {
		case requestOpened:
			open[m.id] = true
		case requestEnded:
			delete(open, m.id)
		case noticeReceived:
			if notice != nil {
				notice(m.notice)
			}
		case listOpen:
			ids := make([]string, 0, len(open))
			for id := range open {
				ids = append(ids, id)
			}
			m.open <- ids
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	s.unsub = cancel
	if err := h.asker.Notices(ctx, id, func(n schemas.Notice) { s.actor.Send(noticeReceived{n}) }); err != nil {
		cancel()
		s.actor.Stop()
		return nil, err
	}
	return s, nil
}

// Ask sends a request in this session and waits for its decision. If nod reports an error, the error
// is a *schemas.Error. If ctx ends first, Ask withdraws the request and returns the error of ctx.
func (s *Session) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	r.SessionID = s.id
	r.Rejoin = r.Rejoin || r.PendingID != "" // if the caller chose the pending_id, it may have sent this request before
	if r.PendingID == "" {
		r.PendingID = bus.NewID()
	}
	s.actor.Send(requestOpened{r.PendingID})
	defer s.actor.Send(requestEnded{r.PendingID})
	return s.host.asker.AskAs(ctx, r)
}

// Leave ends the session in this process and withdraws its open requests. A request whose
// withdrawal fails is logged, and stays pending until its deadline.
func (s *Session) Leave(reason string) {
	s.unsub()
	open := make(chan []string, 1)
	s.actor.Send(listOpen{open})
	ctx, cancel := context.WithTimeout(context.Background(), withdrawWithin)
	defer cancel()
	for _, id := range <-open {
		if _, err := s.host.asker.Withdraw(ctx, s.id, id, reason); err != nil {
			s.host.log.Warn("agent: a request was not withdrawn; its deadline ends it", "session", s.id, "id", id, "error", err)
		}
	}
	s.actor.Stop()
}
