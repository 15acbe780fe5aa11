package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"

	"golang.org/x/term"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/inbox"
	"github.com/nodbus/nod/schemas"
)

type inboxCmd struct {
	ringFlag
}

// ringFlag is the flag of the commands that can ring their terminal for new requests.
type ringFlag struct {
	Notify bool `negatable:"" default:"true" env:"NOD_NOTIFY" help:"Ring the terminal (bell, OSC 9 and OSC 777) for new requests; nod up also uses a Linux desktop."`
}

// Run shows the pending requests on a full screen until the user closes it.
func (c *inboxCmd) Run(e *env) error {
	if !isTerminal(e.stdin) || !isTerminal(e.stdout) {
		return errors.New("nod inbox needs a terminal: in a pipe or a script, use nod pending, nod allow and nod deny")
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find this user's name: %w", err)
	}
	log := e.log
	if isTerminal(e.stderr) { // no log goes to the terminal, because it would overwrite the screen; the screen itself shows errors
		log = slog.New(slog.DiscardHandler)
	}
	joining, cancel := e.soon()
	defer cancel()
	conn, err := bus.Join(joining, e.place, roles.ConnectorID(schemas.ConnectorTerminal), log)
	if err != nil {
		return err
	}
	system := actors.NewSystem(log)
	leave := func() { system.Stop(); conn.Close() }
	defer func() { inTime(leave) }()
	desk := connector.NewDesk(conn, schemas.ConnectorTerminal)
	o := inbox.Options{Desk: desk, StandingAnswers: desk, UserID: u.Username, ClientID: bus.NewID(), Rings: c.Notify}
	if conn.Open() {
		o.Note = "Warning: this NATS server asks for no credentials, so anyone on it can answer."
	}
	ctx, stop := context.WithCancelCause(e.ctx)
	defer stop(nil)
	screen := inbox.New(ctx, e.stdin, e.stdout, o)
	viewing := make(chan *connector.Viewer, 1)
	go func() { // View runs in a goroutine, because it calls Show before it returns, and Show blocks until the screen's Run has started
		viewer, err := connector.View(joining, system, conn, schemas.ConnectorTerminal, log, screen.Show)
		if err != nil {
			stop(err)
		}
		viewing <- viewer
	}()
	leave = func() {
		if viewer := <-viewing; viewer != nil {
			_ = viewer.Stop(context.Background()) // Stop fails only if its context ends
		}
		system.Stop()
		conn.Close()
	}
	err = screen.Run()
	if cause := context.Cause(ctx); err == nil && cause != nil && e.ctx.Err() == nil {
		return cause // the cause is that the viewer could not start
	}
	return err
}

// inTime calls the function leave and waits at most 2 s for it, because a user who has closed the screen must
// not wait for a slow server.
func inTime(leave func()) {
	left := make(chan struct{})
	go func() { leave(); close(left) }()
	select {
	case <-left:
	case <-time.After(2 * time.Second):
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
