package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/embed"
)

type httpCmd struct {
	Listen      string   `placeholder:"ADDR" default:"127.0.0.1:4282" help:"The address to listen on."`
	Agent       []string `placeholder:"NAME" help:"The agents that may ask (local), each with a token of its own; each needs its key (nod keys add agent-NAME)."`
	PublicURL   string   `name:"public-url" placeholder:"URL" help:"The URL that callers use, if it is not ADDR."`
	HTTPCert    string   `name:"http-cert" placeholder:"FILE" type:"path" help:"TLS certificate."`
	HTTPKey     string   `name:"http-key" placeholder:"FILE" type:"path" help:"Key of the TLS certificate."`
	BehindProxy bool     `help:"A proxy in front of it speaks TLS."`
}

// Run serves the HTTP API until the process gets a signal to stop.
func (c *httpCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if len(c.Agent) == 0 {
		name, err := place.Agent()
		if err != nil {
			return err
		}
		c.Agent = []string{name}
	}
	if len(c.Agent) > 1 && place.TokenFile != "" {
		return errors.New("--oidc-token-file is one agent's token: start nod http once for each --agent")
	}
	if len(c.Agent) > 1 && place.Creds != "" {
		return errors.New("--creds is one agent's key: start nod http once for each --agent, or without --creds if the data directory has their keys")
	}
	options := httpapi.Options{
		Listen: httpserve.Listen{Addr: c.Listen, PublicURL: c.PublicURL, TLSCert: c.HTTPCert, TLSKey: c.HTTPKey, BehindProxy: c.BehindProxy},
		Log:    e.log,
	}
	options.Host, options.User = hostAndUser()
	for _, name := range c.Agent {
		a, done, err := e.httpAgent(place, name)
		if err != nil {
			return err
		}
		defer done()
		options.Agents = append(options.Agents, a)
	}
	server, err := httpapi.Open(options)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "nod's HTTP API is up on %s\n", server.URL())
	for _, name := range c.Agent {
		fmt.Fprintf(e.stdout, "  agent     %s, by the token in %s\n", name, tokenPath(place, name))
	}
	fmt.Fprintf(e.stdout, "  describes itself at %s/openapi.json\n", server.URL())
	select {
	case err := <-server.Done():
		return fmt.Errorf("the HTTP API stopped listening: %w", err)
	case <-e.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return server.Stop(ctx)
}

func tokenPath(p bus.Place, agent string) string {
	return filepath.Join(p.DataDir, "http", agent+".token")
}

// httpAgent connects as the named agent and returns the agent's token. If the agent has no token, httpAgent
// creates one. The function done closes the connection.
func (e *env) httpAgent(place bus.Place, name string) (a httpapi.Agent, done func(), err error) {
	id := roles.AgentID(name)
	if err := id.Check(); err != nil {
		return a, nil, err
	}
	token, err := httpserve.Token(tokenPath(place, name))
	if err != nil {
		return a, nil, err
	}
	conn, err := bus.JoinWait(e.ctx, place, id, e.log, waitForServers)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil, fmt.Errorf("%w: make it with nod keys add %s", err, id)
	}
	if err != nil {
		return a, nil, err
	}
	e.warnOpen(conn.Open())
	a, stop := embed.HTTPAgent(conn, name, token)
	return a, func() { stop(); conn.Close() }, nil
}
