package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces/otlp"
)

// waitForServers is how long an engine or a connector waits for NATS servers that are not up yet.
const waitForServers = time.Minute

type engineCmd struct {
	StoreCreds string `name:"store-creds" placeholder:"FILE" type:"path" help:"Key file for the stores' account."`
	Replicas   int    `default:"1" help:"Number of replicas of each store; missing stores are created."`
	Metrics    string `placeholder:"ADDR" help:"Serve /metrics for Prometheus, /healthz and /readyz on this address, such as 127.0.0.1:9464."`
}

// Run runs an engine until the process gets a signal to stop.
func (c *engineCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL == "" {
		return errors.New("an engine alone needs NATS servers: name them with --nats-url or NOD_URL; nod up brings its own")
	}
	voice, err := voiceTimeout()
	if err != nil {
		return err
	}
	spans, flush := e.openTraces()
	defer flush()
	ctx, cancel := context.WithTimeout(e.ctx, waitForServers)
	defer cancel()
	n, err := embed.Start(ctx, embed.Options{
		URL: place.URL, Creds: place.Creds, StoreCreds: c.StoreCreds, Replicas: c.Replicas,
		Wait: waitForServers, VoiceTimeout: voice, Version: version(), Log: e.log, KeepSettings: true, EngineAlone: true, Metrics: c.Metrics, Traces: spans,
	})
	if err != nil {
		return err
	}
	e.warnOpen(n.Open())
	fmt.Fprintf(e.stdout, "an engine is up on %s\n", n.URL())
	<-e.ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return n.Stop(stopping)
}

type connectorCmd struct {
	Name string `arg:"" help:"The connector: terminal, web, or one that settings.json names, such as telegram."`
	webFlags
}

// Run runs a connector until the process gets a signal to stop.
func (c *connectorCmd) Run(e *env) error {
	known := append([]string{schemas.ConnectorTerminal, schemas.ConnectorWeb}, embed.ChannelNames()...)
	if !slices.Contains(known, c.Name) {
		return fmt.Errorf("there is no connector %q: there is %s", c.Name, strings.Join(known, ", "))
	}
	conn, err := bus.JoinWait(e.ctx, e.place, roles.ConnectorID(c.Name), e.log, waitForServers)
	if err != nil {
		return err
	}
	defer conn.Close()
	e.warnOpen(conn.Open())
	system := actors.NewSystem(e.log)
	defer system.Stop()
	exporter, flush := e.openTraces()
	defer flush()
	running, err := c.start(e, system, conn, exporter)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "the connector %s is up on %s\n", c.Name, conn.URL())
	<-e.ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return running.Stop(stopping)
}

// stopper is implemented by a viewer and by a worker.
type stopper interface{ Stop(context.Context) error }

func (c *connectorCmd) start(e *env, system *actors.System, conn *bus.Conn, exporter *otlp.Exporter) (stopper, error) {
	ctx, cancel := context.WithTimeout(e.ctx, waitForServers)
	defer cancel()
	switch c.Name {
	case schemas.ConnectorTerminal:
	case schemas.ConnectorWeb:
		return c.startWeb(ctx, e, system, conn)
	default:
		if exporter == nil {
			return embed.Work(ctx, system, conn, c.Name, e.log)
		}
		return embed.Work(ctx, system, conn, c.Name, e.log, exporter)
	}
	screen := &screen{env: e}
	return connector.View(ctx, system, conn, c.Name, e.log, screen.show)
}

func (c *connectorCmd) startWeb(ctx context.Context, e *env, system *actors.System, conn *bus.Conn) (stopper, error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	listen := c.listen()
	if listen == nil {
		return nil, errors.New("the connector web needs an address: --http off cannot be used with it")
	}
	w, err := embed.OpenWeb(ctx, system, conn, web.Options{DataDir: place.DataDir, KeyFile: c.LoginKey, Listen: *listen, Log: e.log})
	if err != nil {
		return nil, err
	}
	return w, welcomeToWeb(w, func(format string, args ...any) { fmt.Fprintf(e.stdout, format+"\n", args...) })
}
