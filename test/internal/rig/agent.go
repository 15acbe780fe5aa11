package rig

import (
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Agent is an agent of a test. It sends requests over its own connection.
type Agent struct {
	*Env
	Name  string
	Conn  *bus.Conn
	Asker *bus.Asker
}

// Agent returns the agent with the given name, which must be ada, ben or local, because only these agents
// have keys.
func (e *Env) Agent(name string) *Agent {
	e.T.Helper()
	if a := e.agents[name]; a != nil {
		return a
	}
	conn := e.Conn(roles.AgentID(name))
	e.agents[name] = &Agent{e, name, conn, bus.NewAsker(conn, name)}
	return e.agents[name]
}

// Question is a sent request with its agent.
type Question struct {
	*bus.OpenRequest
	Agent *Agent
}

// Asks sends a request and requires that it stays pending.
func (a *Agent) Asks(r schemas.Request) *Question {
	a.T.Helper()
	asked, err := a.Asker.Submit(a.Ctx, r)
	a.NoError(err)
	q := &Question{asked, a}
	if asked.Receipt.Revision == 0 {
		a.Fail("decided at once", "%s: %+v", asked.Key, q.Hears())
	}
	return q
}

// Gets sends a request, requires that it is decided at once, and returns the decision.
func (a *Agent) Gets(r schemas.Request) schemas.Decision {
	a.T.Helper()
	asked, err := a.Asker.Submit(a.Ctx, r)
	a.NoError(err)
	a.Zero(asked.Receipt.Revision, "%s waits for a person", asked.Key)
	return (&Question{asked, a}).Hears()
}

// Refused sends a request, and requires that nod refuses it with the given code.
func (a *Agent) Refused(r schemas.Request, code schemas.Code) *schemas.Error {
	a.T.Helper()
	_, err := a.Asker.Submit(a.Ctx, r)
	return a.Refusal(err, code)
}

// Sends sends a request in one message, without Asker's retries, and returns the reply.
func (a *Agent) Sends(r schemas.Request, rejoin bool) (bus.Reply, error) {
	r.Type, r.Rejoin, r.CreatedAt = schemas.TypeRequest, rejoin, time.Now().UTC()
	return a.Conn.Call(a.Ctx, schemas.RequestSubject(a.Name, r.SessionID, r.PendingID), r)
}

// Withdraws withdraws a request and returns its decision.
func (a *Agent) Withdraws(session, id string) schemas.Decision {
	a.T.Helper()
	d, err := a.Asker.Withdraw(a.Ctx, session, id, "changed my mind")
	a.NoError(err)
	return d
}

// Hears waits for the decision and returns it.
func (q *Question) Hears() schemas.Decision {
	q.Agent.T.Helper()
	d, err := q.Await(q.Agent.Ctx)
	q.Agent.NoError(err)
	return d
}

// Ends waits for the decision, requires the given outcome, and returns the decision.
func (q *Question) Ends(outcome schemas.Outcome) schemas.Decision {
	q.Agent.T.Helper()
	d := q.Hears()
	q.Agent.Equal(outcome, d.Outcome)
	return d
}

// Refusal returns the nod error in err. It requires that the error has the given code and a text of one line.
func (e *Env) Refusal(err error, code schemas.Code) *schemas.Error {
	e.T.Helper()
	var refused *schemas.Error
	e.True(errors.As(err, &refused), "%v", err)
	e.Equal(code, refused.Code, refused.Message)
	e.NotContains(refused.Message, "\n")
	return refused
}

// Detaches sends a request and then detaches it, as a hook does when its host stops waiting.
func (a *Agent) Detaches(r schemas.Request) *Question {
	a.T.Helper()
	q := a.Asks(r)
	a.NoError(a.Asker.Detach(a.Ctx, r.SessionID, r.PendingID, "the host waits no longer"))
	return q
}

// Holds asks the engine for one of the agent's sessions, with the session's grants.
func (a *Agent) Holds(session string) (s schemas.Session, err error) {
	err = a.Conn.CallInto(a.Ctx, schemas.SessionSubject(a.Name), schemas.Query{Type: schemas.TypeQuery, SessionID: session}, &s)
	return s, err
}
