package embed

import (
	"context"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/schemas"
)

// HTTPAgent returns an agent for the HTTP API. Clients that have the token send requests in the
// agent's name. The connection must use the agent's key. The returned function done releases the
// agent and leaves the connection open.
func HTTPAgent(conn *bus.Conn, name, token string) (a httpapi.Agent, done func()) {
	asker := bus.NewAsker(conn, name)
	over := httpNod{conn, asker}
	return httpapi.Agent{Name: name, Token: token, Nod: over, Hook: over.hook}, asker.Close
}

const (
	// While no engine replies, Await tries to read a request's state for at least httpFinds.
	httpFinds = 15 * time.Second
	// hookReaches is how long a hook over HTTP tries to reach nod. Like the command nod hook, it does
	// not wait for nod to be started.
	hookReaches = 3 * time.Second
)

// httpNod gives the HTTP API access to nod over an agent's connection.
type httpNod struct {
	conn  *bus.Conn
	asker *bus.Asker
}

func (n httpNod) Submit(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
	open, err := n.asker.SubmitAs(ctx, r)
	if err != nil {
		return nil, schemas.Receipt{}, err
	}
	defer open.Drop()
	if open.Receipt.Revision != 0 {
		return nil, open.Receipt, nil
	}
	d, err := open.Await(ctx)
	return &d, schemas.Receipt{}, err
}

func (n httpNod) Await(ctx context.Context, sessionID, pendingID string, wait time.Duration) (*schemas.Decision, error) {
	until := time.Now().Add(wait)
	finding, cancel := context.WithTimeout(ctx, max(wait, httpFinds))
	defer cancel()
	open, err := n.asker.Find(finding, sessionID, pendingID)
	if err != nil {
		return nil, err
	}
	defer open.Drop()
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	d, err := open.Await(waiting)
	if err != nil && waiting.Err() != nil {
		return nil, nil
	}
	return &d, err
}

func (n httpNod) Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error) {
	return n.asker.Withdraw(ctx, sessionID, pendingID, reason)
}

func (n httpNod) Notices(ctx context.Context, sessionID string, wait time.Duration) ([]schemas.Notice, error) {
	if wait == 0 {
		ctx, cancel := context.WithTimeout(ctx, httpFinds)
		defer cancel()
		return n.asker.TakeNotices(ctx, sessionID)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return n.asker.AwaitNotices(ctx, sessionID)
}

func (n httpNod) hook(ctx context.Context) (hook.Nod, error) {
	ctx, cancel := context.WithTimeout(ctx, hookReaches)
	defer cancel()
	if err := n.conn.Flush(ctx); err != nil {
		return nil, schemas.Errorf(schemas.CodeUnavailable, "nod is not running: start it with nod up")
	}
	return hookNod{n.asker}, nil
}

// hookNod gives a hook access to nod over an agent's connection.
type hookNod struct{ *bus.Asker }

// Ask waits until nod has stored the request (see agents.UntilStored), and then for the decision
// until ctx ends. When ctx ends, the request stays pending, and the hook decides whether to withdraw
// the request.
func (n hookNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	soon, cancel := agents.UntilStored(ctx)
	defer cancel()
	open, err := n.Submit(soon, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer open.Drop()
	return open.Await(ctx)
}

func (n hookNod) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := n.Asker.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}

func (n hookNod) HostResolved(ctx context.Context, p schemas.HostResolved) error {
	_, err := n.Asker.HostResolved(ctx, p)
	return err
}
