package main

import (
	"errors"
	"fmt"
	"strings"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type grantCmd struct {
	Session    string   `required:"" placeholder:"S" help:"The session that shares."`
	To         string   `required:"" placeholder:"S" help:"The session that gets it."`
	Permission []string `sep:"none" placeholder:"TAG" help:"A permission of the session to share: @read:PATH, @write:PATH, @network or @network:HOST:PORT; repeatable."`
	Reason     string   `required:"" placeholder:"WHY" help:"The reason."`
	Agent      string   `hidden:"" help:"The agent's name on the bus."`
	JSON       bool     `name:"json" help:"Print the grant as JSON."`
}

func (c *grantCmd) Run(e *env) error {
	ctx, client, done, err := e.agent(c.Agent)
	if err != nil {
		return err
	}
	defer done()
	g, err := client.Share(ctx, schemas.Share{SessionID: c.Session, AgentID: c.To, Permissions: c.Permission, Reason: c.Reason})
	if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
		return fmt.Errorf("nothing was shared: your agent has no session %s, which --to names: nod sessions lists the sessions", people.Line(c.To))
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(g)
	}
	fmt.Fprintf(e.stdout, "Permission granted to agent %s.\n", people.Line(c.To))
	return nil
}

type gateCmd struct {
	Session    string   `required:"" placeholder:"S" help:"The session that the task runs in."`
	Name       string   `required:"" placeholder:"N" help:"The task's name."`
	ID         string   `required:"" placeholder:"I" help:"The task's id."`
	Permission []string `required:"" sep:"none" placeholder:"TAG" help:"A permission that the task needs: @read:PATH, @write:PATH, @network or @network:HOST:PORT; repeatable."`
	Strict     bool     `help:"Ask for the missing permissions; unless they are allowed, exit with 3 to 5, and the task must not run."`
	Agent      string   `hidden:"" help:"The agent's name on the bus."`
	JSON       bool     `name:"json" help:"Print the missing permissions as JSON."`
}

// Run checks whether the session has the permissions that a scheduled task needs. Without --strict it
// reports missing permissions and exits with 0.
func (c *gateCmd) Run(e *env) error {
	ctx, client, done, err := e.agent(c.Agent)
	if err != nil {
		return err
	}
	defer done()
	gate := schemas.Gate{SessionID: c.Session, GateID: c.ID, Name: c.Name, Permissions: c.Permission}
	if c.Strict {
		return c.strict(e, client, gate)
	}
	missing, err := client.Gate(ctx, gate)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(schemas.GateReply{Type: schemas.TypeGateReply, Missing: append([]string{}, missing...)})
	}
	if len(missing) > 0 {
		fmt.Fprintf(e.stderr, "nod: the session does not hold %s; the task runs all the same (--strict asks first)\n", people.Line(strings.Join(missing, ", ")))
	}
	return nil
}

// strict requests the permissions of the task. An approver decides about the permissions that the
// session lacks.
func (c *gateCmd) strict(e *env, client *nod.Client, gate schemas.Gate) error {
	r := nod.Permission(fmt.Sprintf("scheduled task %q (%s)", gate.Name, gate.GateID), gate.Permissions...)
	r.SessionID = gate.SessionID
	return (&askCmd{JSON: c.JSON}).send(e.ctx, e, client, &r)
}
