package main

import (
	"fmt"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// runDemo starts a sample agent that asks before it acts.
func runDemo(e *env, n *embed.Nod, _ *actors.System) error {
	conn, err := n.Connect(e.ctx, roles.AgentID("local"))
	if err != nil {
		return err
	}
	asker := bus.NewAsker(conn, "local")
	go func() {
		defer conn.Close()
		defer asker.Close()
		fmt.Fprintln(e.stdout, "\ndemo: a sample agent wants to clean up. Answer it from a second terminal.")
		d, err := asker.Ask(e.ctx, schemas.Request{
			SessionID: "demo", Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
			ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"rm -rf build","cwd":"/workspace"}`),
			Reason: "clean rebuild", AgentName: "Demo agent", SessionLabel: "demo",
		})
		switch {
		case e.ctx.Err() != nil:
		case err != nil:
			fmt.Fprintf(e.stdout, "demo: the agent does nothing: %v\n", err)
		case d.Outcome == schemas.Allowed:
			fmt.Fprintln(e.stdout, "demo: the agent goes on. (Nothing was removed: it is a demo.)")
		default:
			fmt.Fprintf(e.stdout, "demo: the agent does not run it: %s %s\n", d.Outcome, d.Message)
		}
	}()
	return nil
}
