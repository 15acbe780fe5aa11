package test

import (
	"errors"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// agent sends requests over its own connection.
type agent struct {
	*env
	name  string
	conn  *bus.Conn
	asker *bus.Asker
}

// Agent returns the agent of a name: ada, ben or local.
func (e *env) Agent(name string) *agent {
	e.t.Helper()
	if a := e.agents[name]; a != nil {
		return a
	}
	conn := e.conn(roles.AgentID(name))
	e.agents[name] = &agent{e, name, conn, bus.NewAsker(conn, name)}
	return e.agents[name]
}

// deploy is a tool call that no rule decides.
func deploy(session, id string) schemas.Request { return call("Deploy", session, id) }

// lookup is a tool call that a rule allows.
func lookup(session, id string) schemas.Request { return call("Lookup", session, id) }

func call(tool, session, id string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"to":"production"}`),
		Options: schemas.DefaultOptions(),
	}
}

// question is a request that was sent, with its agent.
type question struct {
	*bus.OpenRequest
	agent *agent
}

// Asks sends a request, which must not be decided at once.
func (a *agent) Asks(r schemas.Request) *question {
	a.t.Helper()
	asked, err := a.asker.Submit(a.ctx, r)
	a.NoError(err)
	a.NotZero(asked.Receipt.Revision, "%s was decided at once", asked.Key)
	return &question{asked, a}
}

// Gets sends a request, which must be decided at once, and returns the decision.
func (a *agent) Gets(r schemas.Request) schemas.Decision {
	a.t.Helper()
	asked, err := a.asker.Submit(a.ctx, r)
	a.NoError(err)
	a.Zero(asked.Receipt.Revision, "%s waits for a person", asked.Key)
	return (&question{asked, a}).Hears()
}

// Refused sends a request that nod refuses with this code.
func (a *agent) Refused(r schemas.Request, code schemas.Code) *schemas.Error {
	a.t.Helper()
	_, err := a.asker.Submit(a.ctx, r)
	return a.refusal(err, code)
}

// Sends sends a request as one message, without the client's retries.
func (a *agent) Sends(r schemas.Request, rejoin bool) (bus.Reply, error) {
	r.Type, r.Rejoin, r.CreatedAt = schemas.TypeRequest, rejoin, time.Now().UTC()
	return a.conn.Call(a.ctx, schemas.RequestSubject(a.name, r.SessionID, r.PendingID), r)
}

// Withdraws withdraws a request and returns its decision.
func (a *agent) Withdraws(session, id string) schemas.Decision {
	a.t.Helper()
	d, err := a.asker.Withdraw(a.ctx, session, id, "changed my mind")
	a.NoError(err)
	return d
}

// Hears waits for the decision.
func (q *question) Hears() schemas.Decision {
	q.agent.t.Helper()
	d, err := q.Await(q.agent.ctx)
	q.agent.NoError(err)
	return d
}

// Ends waits for the decision, which must have this outcome.
func (q *question) Ends(outcome schemas.Outcome) schemas.Decision {
	q.agent.t.Helper()
	d := q.Hears()
	q.agent.Equal(outcome, d.Outcome)
	return d
}

// refusal returns the nod error in err, which must have this code and a one-line text.
func (e *env) refusal(err error, code schemas.Code) *schemas.Error {
	e.t.Helper()
	var refused *schemas.Error
	e.True(errors.As(err, &refused), "%v", err)
	e.Equal(code, refused.Code, refused.Message)
	e.NotContains(refused.Message, "\n")
	return refused
}

// person is a user of one connector, who answers through its desk.
type person struct {
	*env
	*connector.Desk
	connector, user string
}

// Ann is the approver at the terminal.
func (e *env) Ann() *person { return e.person("terminal", "ann") }

// Bob is the approver on the web.
func (e *env) Bob() *person { return e.person("web", "bob") }

func (e *env) person(connectorName, userID string) *person {
	e.t.Helper()
	return &person{e, connector.NewDesk(e.conn(roles.ConnectorID(connectorName)), connectorName), connectorName, userID}
}

// Says answers a request with an option.
func (p *person) Says(q *question, option string) (schemas.Decision, error) {
	return p.Answer(p.ctx, p.answer(q, option))
}

func (p *person) answer(q *question, option string) schemas.Answer {
	return schemas.Answer{
		SessionID: q.Receipt.SessionID, PendingID: q.Receipt.PendingID, Digest: q.Receipt.Digest,
		OptionID: option, From: schemas.From{UserID: p.user},
	}
}

// SaysOf is Says for an answer to a prompt that counted this many calls.
func (p *person) SaysOf(q *question, option string, calls int) (schemas.Decision, error) {
	a := p.answer(q, option)
	a.Waiters = calls
	return p.Answer(p.ctx, a)
}

// Allows allows a request once. It fails if another answer has decided otherwise.
func (p *person) Allows(q *question) schemas.Decision { p.t.Helper(); return p.must(q, "allow_once") }

// Denies denies a request once, like Allows.
func (p *person) Denies(q *question) schemas.Decision { p.t.Helper(); return p.must(q, "reject_once") }

func (p *person) must(q *question, option string) schemas.Decision {
	p.t.Helper()
	d, err := p.Says(q, option)
	p.NoError(err)
	return d
}

// does sends one presence message: a client joins, leaves, or takes, renews or
// gives back the input lock.
func (p *person) does(op schemas.PresenceOp, session, client, kind string) schemas.Lock {
	p.t.Helper()
	lock, err := p.Hold(p.ctx, schemas.Presence{
		Op: op, SessionID: session, ClientID: client, Kind: kind, From: schemas.From{UserID: p.user},
	})
	p.NoError(err)
	return lock
}
