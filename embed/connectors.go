package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/connectors/people/voice"
	"github.com/nodbus/nod/connectors/people/wake"
	"github.com/nodbus/nod/connectors/people/whatsapp"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

// channels are the people connectors. A new connector needs its own package and one line here.
var channels = []people.Channel{
	telegram.Channel,
	whatsapp.Channel,
	discord.Channel,
	slack.Channel,
	voice.Channel,
	wake.Channel,
}

// ChannelSettings describes the settings of all people connectors in Channels.
func ChannelSettings() []schemas.ChannelSettings {
	var all []schemas.ChannelSettings
	for _, c := range channels {
		all = append(all, c.Settings)
	}
	return all
}

// DecodeSettings calls schemas.DecodeSettings with the settings of all Channels.
func DecodeSettings(data []byte) (schemas.Settings, error) {
	return schemas.DecodeSettings(data, ChannelSettings()...)
}

// SettingsSchema calls schemas.SettingsSchema with the settings of all Channels.
func SettingsSchema() ([]byte, error) { return schemas.SettingsSchema(ChannelSettings()...) }

// open makes the carrier of a channel. If the settings do not name the channel, it returns nil
// without an error.
func open(ch people.Channel, c schemas.Connectors, log *slog.Logger) (people.Carrier, error) {
	settings, named := c.Channels[ch.Name()]
	if !named {
		return nil, nil
	}
	return ch.Open(settings, log)
}

// Channels returns the people connectors that Work can run.
func Channels() []people.Channel { return slices.Clone(channels) }

// ChannelNames returns the names of the Channels.
func ChannelNames() []string {
	var names []string
	for _, c := range channels {
		names = append(names, c.Name())
	}
	return names
}

// Work starts a worker of one of the Channels with the settings in force. The connection must use the
// connector's key. If the settings do not name the channel or lack a value, the error is one line
// with the fix. The caller must Stop the worker. The first element of the parameter spans gets the
// spans of traced requests. Without such an element, nothing is traced.
func Work(ctx context.Context, sys *actors.System, conn *bus.Conn, name string, log *slog.Logger, spans ...traces.Writer) (*connector.Worker, error) {
	state, err := connector.NewDesk(conn, name).Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the connector %s: %w", name, err)
	}
	for _, c := range channels {
		if c.Name() != name {
			continue
		}
		carrier, err := open(c, state.Settings.Connectors, log)
		switch {
		case err != nil:
			return nil, err
		case carrier == nil:
			return nil, fmt.Errorf("connectors.%s is not in the settings: add it and run `nod settings apply`", name)
		}
		return connector.Work(ctx, sys, conn, name, carrier, log, spans...)
	}
	return nil, fmt.Errorf("there is no connector %q", name)
}

type checker interface{ Check(context.Context) error }

// Reach tries, from this process, to reach each of the Channels that the settings name. The result
// has an entry for each of these channels. The entry is an error, or nil if the channel can be
// reached or cannot be tested.
func Reach(ctx context.Context, c schemas.Connectors, log *slog.Logger) map[string]error {
	reached := map[string]error{}
	for _, ch := range channels {
		carrier, err := open(ch, c, log)
		if carrier == nil && err == nil {
			continue
		}
		if check, ok := carrier.(checker); ok && err == nil {
			err = check.Check(ctx)
		}
		reached[ch.Name()] = err
	}
	return reached
}

type worker struct {
	*connector.Worker
	conn *bus.Conn
}

// startWorkers starts a worker for each connector that the settings name. If a worker cannot start,
// startWorkers only logs the error, because people can answer on the other channels.
func (n *Nod) startWorkers(ctx context.Context) error {
	s, err := n.engine.Settings(ctx)
	if err != nil {
		return err
	}
	for _, c := range channels {
		carrier, err := open(c, s.Connectors, n.opts.Log)
		if carrier == nil && err == nil {
			continue
		}
		if err == nil {
			err = n.startWorker(ctx, c.Name(), carrier)
		}
		if err != nil {
			n.opts.Log.Error("the connector was not started; nod runs without it", "connector", c.Name(), "error", err)
			continue
		}
		n.running = append(n.running, c.Name())
	}
	return nil
}

func (n *Nod) startWorker(ctx context.Context, name string, carrier people.Carrier) error {
	conn, err := n.Connect(ctx, roles.ConnectorID(name))
	if err != nil {
		return err
	}
	w, err := connector.Work(ctx, n.system, conn, name, carrier, n.opts.Log, n.tracer())
	if err != nil {
		conn.Close()
		return err
	}
	n.workers = append(n.workers, worker{w, conn})
	return nil
}

// Running returns the names of those connectors that have a worker in this process.
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
