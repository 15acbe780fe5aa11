package main

import (
	"os"

	"github.com/nodbus/nod/connectors/agents/codex"
	"github.com/nodbus/nod/connectors/agents/hook"
)

type codexAppServerCmd struct {
	OnUnavailable string   `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: let the client ask, or deny."`
	Command       []string `arg:"" passthrough:"" placeholder:"CMD" help:"Codex and its arguments, after --: codex app-server."`
}

// Help returns the text that nod codex-app-server --help shows besides the flags.
func (codexAppServerCmd) Help() string {
	return "A program that drives Codex through its app-server starts this command in its place. The exit code is Codex's."
}

// Run starts Codex's app-server and relays its messages. The program that drives Codex sees nod as the
// app-server.
func (c *codexAppServerCmd) Run(e *env) error {
	args, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	ctx, stop := hook.Lifetime(e.ctx, os.Stdout)
	defer stop()
	hostname, name := hostAndUser()
	asker := &lateAsker{env: e}
	defer asker.close()
	code, err := codex.Run(ctx, args, e.stdin, e.stdout, e.stderr, asker, codex.Options{
		Deny: c.OnUnavailable == string(hook.UnavailableDeny), Waits: e.waits(false), Host: hostname, User: name, Log: e.log,
	})
	if err == nil && code != exitOK {
		return exit(code)
	}
	return err
}
