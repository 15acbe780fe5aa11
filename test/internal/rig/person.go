package rig

import (
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Person is a user of one connector, who answers through that connector's desk.
type Person struct {
	*Env
	*connector.Desk
	connector, User string
}

// Ann returns the approver at the terminal.
func (e *Env) Ann() *Person { return e.Person("terminal", "ann") }

// Bob returns the approver on the web.
func (e *Env) Bob() *Person { return e.Person("web", "bob") }

// Person returns a user of a connector.
func (e *Env) Person(connectorName, userID string) *Person {
	e.T.Helper()
	return &Person{e, connector.NewDesk(e.Conn(roles.ConnectorID(connectorName)), connectorName), connectorName, userID}
}

// Says answers a request with an option, and returns the reply.
func (p *Person) Says(q *Question, option string) (schemas.Decision, error) {
	return p.Answer(p.Ctx, p.AnswerTo(q, option))
}

// AnswerTo returns an answer with an option, without sending it.
func (p *Person) AnswerTo(q *Question, option string) schemas.Answer {
	return schemas.Answer{
		SessionID: q.Receipt.SessionID, PendingID: q.Receipt.PendingID, Digest: q.Receipt.Digest,
		OptionID: option, From: schemas.From{UserID: p.User},
	}
}

// SaysOf is like Says, for a prompt that counted the given number of calls.
func (p *Person) SaysOf(q *Question, option string, calls int) (schemas.Decision, error) {
	a := p.AnswerTo(q, option)
	a.Waiters = calls
	return p.Answer(p.Ctx, a)
}

// Allows allows a request once, and requires that the engine accepts the answer.
func (p *Person) Allows(q *Question) schemas.Decision { p.T.Helper(); return p.must(q, "allow_once") }

// Denies denies a request once, and requires that the engine accepts the answer.
func (p *Person) Denies(q *Question) schemas.Decision { p.T.Helper(); return p.must(q, "reject_once") }

func (p *Person) must(q *Question, option string) schemas.Decision {
	p.T.Helper()
	d, err := p.Says(q, option)
	p.NoError(err)
	return d
}

// Does sends one presence message, by which a client joins, renews its lease, leaves, or takes or releases
// the input lock.
func (p *Person) Does(op schemas.PresenceOp, session, client, kind string) schemas.Lock {
	p.T.Helper()
	lock, err := p.Hold(p.Ctx, schemas.Presence{
		Op: op, SessionID: session, ClientID: client, Kind: kind, From: schemas.From{UserID: p.User},
	})
	p.NoError(err)
	return lock
}

// Remembers allows a request with a grant for later calls in the given scope. The grant lasts for the given
// number of seconds; 0 means that it does not end by itself.
func (p *Person) Remembers(q *Question, scope schemas.Scope, seconds int) schemas.Decision {
	p.T.Helper()
	a := p.AnswerTo(q, "allow_once")
	a.Scope, a.ForSeconds = scope, seconds
	d, err := p.Answer(p.Ctx, a)
	p.NoError(err)
	p.NotNil(d.Grant)
	return d
}
