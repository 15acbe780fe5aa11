package test

import (
	"errors"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// agent asks.
type agent struct {
	*env
	name  string
	conn  *bus.Conn
	asker *bus.Asker
}

// Agent is ada, ben or local.
func (e *env) Agent(name string) *agent {
	e.t.Helper()
	if a := e.agents[name]; a != nil {
		return a
	}
	conn := e.conn(roles.AgentID(name))
	e.agents[name] = &agent{e, name, conn, bus.NewAsker(conn, name)}
	return e.agents[name]
}

// deploy is a tool call that no rule settles.
func deploy(session, id string) schemas.Request { return call("Deploy", session, id) }

// lookup is one that a rule allows.
func lookup(session, id string) schemas.Request { return call("Lookup", session, id) }

func call(tool, session, id string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"to":"production"}`),
		Options: schemas.DefaultOptions(),
	}
}

// question is a request that waits.
type question struct {
	*bus.OpenRequest
	agent *agent
}

// Asks asks something that is not decided at once.
func (a *agent) Asks(r schemas.Request) *question {
	a.t.Helper()
	asked, err := a.asker.Submit(a.ctx, r)
	a.NoError(err)
	a.NotZero(asked.Receipt.Revision, "%s was decided at once", asked.Key)
	return &question{asked, a}
}

// Gets asks something that is decided by the time it is asked.
func (a *agent) Gets(r schemas.Request) schemas.Decision {
	a.t.Helper()
	asked, err := a.asker.Submit(a.ctx, r)
	a.NoError(err)
	a.Zero(asked.Receipt.Revision, "%s waits for a person", asked.Key)
	return (&question{asked, a}).Hears()
}

// Refused asks something that nod refuses.
func (a *agent) Refused(r schemas.Request, code schemas.Code) *schemas.Error {
	a.t.Helper()
	_, err := a.asker.Submit(a.ctx, r)
	return a.refusal(err, code)
}

// Sends asks in a single message of its own making.
func (a *agent) Sends(r schemas.Request, rejoin bool) (bus.Reply, error) {
	r.Type, r.Rejoin, r.CreatedAt = schemas.TypeRequest, rejoin, time.Now().UTC()
	return a.conn.Call(a.ctx, schemas.RequestSubject(a.name, r.SessionID, r.PendingID), r)
}

// Withdraws takes a request back and returns the decision it then has.
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

// Ends waits for the decision, of this outcome.
func (q *question) Ends(outcome schemas.Outcome) schemas.Decision {
	q.agent.t.Helper()
	d := q.Hears()
	q.agent.Equal(outcome, d.Outcome)
	return d
}

// refusal is the nod error in err, of this code.
func (e *env) refusal(err error, code schemas.Code) *schemas.Error {
	e.t.Helper()
	var refused *schemas.Error
	e.True(errors.As(err, &refused), "%v", err)
	e.Equal(code, refused.Code, refused.Message)
	e.NotContains(refused.Message, "\n")
	return refused
}

// person answers.
type person struct {
	*env
	*connector.Desk
	connector, user string
}

// Ann is at the terminal and Bob on the web.
func (e *env) Ann() *person { return e.person("terminal", "ann") }

// Bob answers too.
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

// SaysOf is Says about a question whose prompt counted so many calls.
func (p *person) SaysOf(q *question, option string, calls int) (schemas.Decision, error) {
	a := p.answer(q, option)
	a.Waiters = calls
	return p.Answer(p.ctx, a)
}

// Allows answers, and must be the one who decides or say the same.
func (p *person) Allows(q *question) schemas.Decision { p.t.Helper(); return p.must(q, "allow_once") }

// Denies is Allows with the other word.
func (p *person) Denies(q *question) schemas.Decision { p.t.Helper(); return p.must(q, "reject_once") }

func (p *person) must(q *question, option string) schemas.Decision {
	p.t.Helper()
	d, err := p.Says(q, option)
	p.NoError(err)
	return d
}

// holds says that a client is there, or wants the lock.
func (p *person) does(op schemas.PresenceOp, session, client, kind string) schemas.Lock {
	p.t.Helper()
	lock, err := p.Hold(p.ctx, schemas.Presence{
		Op: op, SessionID: session, ClientID: client, Kind: kind, From: schemas.From{UserID: p.user},
	})
	p.NoError(err)
	return lock
}
