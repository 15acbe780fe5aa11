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

// A channel is a connector that carries prompts, once the settings name it.
type channel struct {
	name string
	// open makes its carrier; nil without an error where the settings do not
	// name it.
	open func(schemas.Connectors, *slog.Logger) (people.Carrier, error)
}

// channels are all there are. A new one is one package and one line here.
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

// Channels are the names of the connectors that Work runs.
func Channels() []string {
	var names []string
	for _, c := range channels() {
		names = append(names, c.name)
	}
	return names
}

// Named are those of the Channels that the settings name.
func Named(c schemas.Connectors) []string {
	var names []string
	for _, ch := range channels() {
		if carrier, err := ch.open(c, slog.New(slog.DiscardHandler)); carrier != nil || err != nil {
			names = append(names, ch.name)
		}
	}
	return names
}

// Work runs a worker of one of the Channels on a connection with its key, as
// the settings in force say. What they lack for it is an error of one line.
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

// checker is a carrier that can say whether its channel is there.
type checker interface{ Check(context.Context) error }

// Reach calls each of the Channels that the settings name, as a worker in this
// process would, and says why it cannot be reached; nil where it can.
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

// worker is a connector that runs in this process.
type worker struct {
	*connector.Worker
	conn *bus.Conn
}

// carry starts a worker for each connector that the settings name. One that
// cannot start keeps no other from it: people can answer elsewhere.
func (n *Nod) carry(ctx context.Context) error {
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
			err = n.work(ctx, c.name, carrier)
		}
		if err != nil {
			n.opts.Log.Error("the connector was not started; nod runs without it", "connector", c.name, "error", err)
			continue
		}
		n.running = append(n.running, c.name)
	}
	return nil
}

func (n *Nod) work(ctx context.Context, name string, carrier people.Carrier) error {
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

// Running are the names of the connectors that carry prompts in this process.
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
