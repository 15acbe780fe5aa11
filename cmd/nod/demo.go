package main

import (
	"context"
	"fmt"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/agent"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// runDemo runs a sample agent that sends one request. The caller must call stop.
func runDemo(e *env, n *embed.Nod, sys *actors.System) (stop func(), err error) {
	conn, err := n.Connect(e.ctx, roles.AgentID("local"))
	if err != nil {
		return nil, err
	}
	host := agent.NewHost(sys, conn, "local", e.log)
	id := "demo-" + bus.NewID()[:8] // each start has a new session, so that an earlier denial does not decide this request
	session, err := host.Join(id, nil)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(e.stdout, "\ndemo: a sample agent wants to clean up. Answer it from a second terminal.")
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := schemas.Request{
			SessionID: id, PendingID: bus.NewID(), // this id identifies the request to which the decision belongs
			Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
			ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"rm -rf build","cwd":"/workspace"}`),
			Reason: "clean rebuild", AgentName: "Demo agent", SessionLabel: "demo",
		}
		d, err := session.Ask(ctx, r)
		reply := agents.DescribeRefusingEdits(&r, &d)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			fmt.Fprintf(e.stdout, "demo: the agent does nothing: %v\n", err)
		case reply.Allowed:
			fmt.Fprintln(e.stdout, "demo: the agent goes on. (Nothing was removed: it is a demo.)")
		default:
			fmt.Fprintf(e.stdout, "demo: the agent does not run it, and hears: %s\n", people.Line(reply.Text))
		}
	}()
	return func() {
		cancel()
		<-done
		session.Leave("the demo was stopped")
		host.Close()
		conn.Close()
	}, nil
}
