package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/opencode"
	"github.com/nodbus/nod/schemas"
)

type opencodeCmd struct {
	URL           string `name:"url" default:"http://127.0.0.1:4096" help:"The URL of the agent's server."`
	Dir           string `placeholder:"PATH" type:"path" help:"The project to follow, on a server that has several."`
	Turns         bool   `help:"When the agent has finished or failed, tell you wherever you are, and send your reply to it as its next prompt."`
	OnUnavailable string `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: leave the agent's own prompt, or deny."`
}

// Help returns the text that nod opencode --help shows besides the flags.
func (opencodeCmd) Help() string {
	return openCodeHelp(hook.OpenCode)
}

func openCodeHelp(kind hook.OpenCodeKind) string {
	return fmt.Sprintf("Start %[1]s with a fixed port (%[2]s --port 4096, or %[2]s serve --port 4096), and this command beside it. "+
		"The server's password is read from %[3]s_SERVER_PASSWORD, and its user name from %[3]s_SERVER_USERNAME.", kind.Title, kind.Name, strings.ToUpper(kind.Name))
}

// Run passes OpenCode's permission prompts on to nod until the process gets a signal to stop.
func (c *opencodeCmd) Run(e *env) error { return c.follow(e, hook.OpenCode) }

// kiloCmd is nod kilo, which works like nod opencode because Kilo has the same server as OpenCode.
type kiloCmd struct{ opencodeCmd }

// Help returns the text that nod kilo --help shows besides the flags.
func (kiloCmd) Help() string { return openCodeHelp(hook.Kilo) }

// Run passes Kilo's permission prompts on to nod until the process gets a signal to stop.
func (c *kiloCmd) Run(e *env) error { return c.follow(e, hook.Kilo) }

func (c *opencodeCmd) follow(e *env, kind hook.OpenCodeKind) error {
	hostname, name := hostAndUser()
	variables := strings.ToUpper(kind.Name) + "_SERVER_"
	asker := &lateAsker{env: e}
	defer asker.close()
	return opencode.Run(e.ctx, asker, opencode.Options{
		URL: c.URL, Directory: c.Dir,
		Agent:    kind.Title,
		Username: cmp.Or(os.Getenv(variables+"USERNAME"), kind.Name), Password: os.Getenv(variables + "PASSWORD"),
		DenyUnavailable: c.OnUnavailable == string(hook.UnavailableDeny),
		Turns:           c.Turns, Waits: e.waits(true), Claim: e.claimReply,
		Host: hostname, User: name, Log: e.log,
		Connected: func() { fmt.Fprintf(e.stdout, "nod gets the permission prompts of %s at %s\n", kind.Title, c.URL) },
	})
}

// lateAsker connects to nod at the first request, so that the user can start nod after this command.
type lateAsker struct {
	env *env

	mu     sync.Mutex
	client *nod.Client
}

func (a *lateAsker) connect(ctx context.Context) (asker, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
		client, err := nod.Connect(ctx, nod.Options{Place: a.env.place, Log: a.env.log})
		if err != nil {
			return asker{}, unavailable(err)
		}
		a.client = client
	}
	return asker{a.client}, nil
}

func (a *lateAsker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	to, err := a.connect(ctx)
	if err != nil {
		return schemas.Decision{}, err
	}
	return to.Ask(ctx, r)
}

func (a *lateAsker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	to, err := a.connect(ctx)
	if err != nil {
		return err
	}
	return to.Withdraw(ctx, sessionID, pendingID, reason)
}

func (a *lateAsker) Abandon(ctx context.Context, sessionID, pendingID, reason string) error {
	to, err := a.connect(ctx)
	if err != nil {
		return err
	}
	return to.Abandon(ctx, sessionID, pendingID, reason)
}

func (a *lateAsker) close() {
	if a.client != nil {
		a.client.Close()
	}
}
