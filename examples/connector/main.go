// Command connector is a small people connector: it writes prompts to standard
// output and reads answers from standard input. To run it beside nod up:
//
//	nod keys add connector-lines
//	go run ./examples/connector ann
//
// The settings must name ann's identity on the connector lines under
// approvers.people. A connector for real use edits its messages and passes the
// tests of package peopletest: see connectors/people/example.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

const name = "lines"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, bus.Place{}, os.Args[len(os.Args)-1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "connector:", err)
		os.Exit(1)
	}
}

// run shows prompts to a user and sends the user's answers to nod until ctx ends.
func run(ctx context.Context, place bus.Place, user string, in io.Reader, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	conn, err := bus.Join(ctx, place, roles.ConnectorID(name), log)
	if err != nil {
		return err
	}
	defer conn.Close()
	system := actors.NewSystem(log)
	defer system.Stop()
	lines := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	c := &carrier{user: user, lines: lines, out: out}
	worker, err := connector.Work(ctx, system, conn, name, c, log)
	if err != nil {
		return err
	}
	if err := c.write("ready: prompts appear here"); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return worker.Stop(stopping)
}
