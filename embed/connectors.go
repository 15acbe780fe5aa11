package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/schemas"
)

// A channel is a people connector that runs if the settings name it.
type channel struct {
	name string
	// open makes the carrier. It returns nil and no error if the settings do not
	// name the channel.
	open func(schemas.Connectors, *slog.Logger) (people.Carrier, error)
}

// channels lists all channels. A new one is one package and one line here.
func channels() []channel {
	return []channel{
		{telegram.Name, openTelegram},
	}
}

func openTelegram(c schemas.Connectors, log *slog.Logger) (people.Carrier, error) {
	if c.Telegram == nil {
		return nil, nil
	}
	return telegram.Open(*c.Telegram, log)
}

// Channels returns the names of the connectors that Work can run.
func Channels() []string {
	var names []string
	for _, c := range channels() {
		names = append(names, c.name)
	}
	return names
}

// Named returns the Channels that the settings name, also with faulty settings.
func Named(c schemas.Connectors) []string {
	var names []string
	for _, ch := range channels() {
		if carrier, err := ch.open(c, slog.New(slog.DiscardHandler)); carrier != nil || err != nil {
			names = append(names, ch.name)
		}
	}
	return names
}

// Work starts a worker of one of the Channels by the settings in force. conn must
// have the connector's key. If the settings do not name the channel or lack a
// value, the error is one line that says how to fix it. The caller must Stop the
// worker.
func Work(ctx context.Context, sys *actors.System, conn *bus.Conn, name string, log *slog.Logger) (*connector.Worker, error) {
	state, err := connector.NewDesk(conn, name).Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the connector %s: %w", name, err)
	}
	for _, c := range channels() {
		if c.name != name {
			continue
		}
		carrier, err := c.open(state.Settings.Connectors, log)
		switch {
		case err != nil:
			return nil, err
		case carrier == nil:
			return nil, fmt.Errorf("connectors.%s is not in the settings: add it and run `nod settings apply`", name)
		}
		return connector.Work(ctx, sys, conn, name, carrier, log)
	}
	return nil, fmt.Errorf("there is no connector %q", name)
}

// checker is a carrier that can test whether its channel can be reached.
type checker interface{ Check(context.Context) error }

// Reach tries to reach each of the Channels that the settings name, from this
// process. The result has an error for each that cannot be reached, and nil for
// the others.
func Reach(ctx context.Context, c schemas.Connectors, log *slog.Logger) map[string]error {
	reached := map[string]error{}
	for _, ch := range channels() {
		carrier, err := ch.open(c, log)
		if carrier == nil && err == nil {
			continue
		}
		if check, ok := carrier.(checker); ok && err == nil {
			err = check.Check(ctx)
		}
		reached[ch.name] = err
	}
	return reached
}

// worker is a connector's worker in this process, with its connection.
type worker struct {
	*connector.Worker
	conn *bus.Conn
}

// startWorkers starts a worker for each connector that the settings name. If one
// cannot start, the error is logged and the others start: people can answer there.
func (n *Nod) startWorkers(ctx context.Context) error {
	s, err := n.engine.Settings(ctx)
	if err != nil {
		return err
	}
	for _, c := range channels() {
		carrier, err := c.open(s.Connectors, n.opts.Log)
		if carrier == nil && err == nil {
			continue
		}
		if err == nil {
			err = n.startWorker(ctx, c.name, carrier)
		}
		if err != nil {
			n.opts.Log.Error("the connector was not started; nod runs without it", "connector", c.name, "error", err)
			continue
		}
		n.running = append(n.running, c.name)
	}
	return nil
}

func (n *Nod) startWorker(ctx context.Context, name string, carrier people.Carrier) error {
	conn, err := n.Connect(ctx, roles.ConnectorID(name))
	if err != nil {
		return err
	}
	w, err := connector.Work(ctx, n.system, conn, name, carrier, n.opts.Log)
	if err != nil {
		conn.Close()
		return err
	}
	n.workers = append(n.workers, worker{w, conn})
	return nil
}

// Running returns the names of the connectors whose workers run in this process.
func (n *Nod) Running() []string { return n.running }

func (n *Nod) stopWorkers(ctx context.Context) error {
	var errs []error
	for _, w := range n.workers {
		errs = append(errs, w.Stop(ctx))
		w.conn.Close()
	}
	n.workers = nil
	return errors.Join(errs...)
}
