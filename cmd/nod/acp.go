package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/schemas"
)

type acpCmd struct {
	Race          bool     `help:"Let the editor ask as well; the first answer counts."`
	Turns         bool     `help:"When the agent has finished or failed, tell you wherever you are, and send your reply to it as its next prompt."`
	OnUnavailable string   `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: let the editor ask, or deny."`
	AgentName     string   `name:"agent-name" placeholder:"NAME" help:"The agent's name as approvers see it (by default its own)."`
	Listen        string   `placeholder:"ADDR" help:"Serve the pending requests over HTTP, and take answers there; such as 127.0.0.1:4290."`
	Remote        bool     `help:"Allow an address for --listen that other machines reach; it speaks plain HTTP."`
	TokenFile     string   `name:"token-file" placeholder:"FILE" type:"path" help:"File with the token for --listen; created if it is missing (acp-token in the data directory)."`
	Command       []string `arg:"" passthrough:"" placeholder:"CMD" help:"The agent and its arguments, after --."`
}

// Help returns the text that nod acp --help shows besides the flags.
func (acpCmd) Help() string {
	return "An editor that speaks the Agent Client Protocol (ACP) starts this in place of its agent. The exit code is the agent's."
}

// Run starts the agent and relays its messages. The editor sees nod as the agent.
func (c *acpCmd) Run(e *env) error {
	args, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	ctx, stop := hook.Lifetime(e.ctx, os.Stdout)
	defer stop()
	o := c.options(e)
	if c.Listen != "" {
		end, err := c.serve(e, o.Stream)
		if err != nil {
			return err
		}
		defer end()
	}
	asker := &acpAsker{env: e}
	defer asker.close()
	code, err := acp.RunCommand(ctx, args, relay.Peer{In: e.stdout, Out: e.stdin}, e.stderr, asker.connect, o)
	if err != nil {
		return err
	}
	if code != exitOK {
		return exit(code)
	}
	return nil
}

func (c *acpCmd) options(e *env) acp.Options {
	hostname, name := hostAndUser()
	return acp.Options{
		Race: c.Race, Turns: c.Turns, Waits: e.waits(false), Deny: c.OnUnavailable == "deny", AgentName: c.AgentName, Host: hostname, User: name,
		Stream: acp.NewStream(), Log: e.log,
	}
}

func (c *acpCmd) serve(e *env, stream *acp.Stream) (end func(), err error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	file := cmp.Or(c.TokenFile, filepath.Join(place.DataDir, "acp-token"))
	token, err := httpserve.Token(file)
	if err != nil {
		return nil, err
	}
	l, err := acp.Listen(c.Listen, c.Remote)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: stream.Handler(token, e.sendAnswer), ReadHeaderTimeout: callTimeout}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			e.log.Error("acp: the HTTP server of --listen has stopped", "error", err)
		}
	}()
	fmt.Fprintf(e.stderr, "nod: http://%s serves the pending requests; its token is in %s\n", l.Addr(), file)
	return func() {
		stream.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // HTTP calls that are still open end with this process
	}, nil
}

// sendAnswer sends nod an answer that came over HTTP. The answer counts as this user's answer at the
// terminal, for all identical calls that are pending at that time.
func (e *env) sendAnswer(_ context.Context, r schemas.Request, optionID string) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return unavailable(err)
	}
	defer done()
	p, _, err := d.Show(ctx, r.SessionID, r.PendingID)
	if err != nil {
		return err
	}
	_, err = d.Answer(ctx, schemas.Answer{
		SessionID: r.SessionID, PendingID: r.PendingID, Digest: p.Digest, Waiters: p.Waiters,
		OptionID: optionID, Cancelled: optionID == "", From: schemas.From{UserID: d.user},
	})
	return err
}

// acpAsker adapts nod.Client to the interface acp.Nod. Call connect before any
// other method.
type acpAsker struct {
	env    *env
	client *nod.Client
}

func (a *acpAsker) connect(ctx context.Context) (acp.Nod, error) {
	client, err := nod.Connect(ctx, nod.Options{Place: a.env.place, Log: a.env.log})
	if err != nil {
		return nil, unavailable(err)
	}
	a.client = client
	a.env.warnOpen(client.Open())
	return a, nil
}

func (a *acpAsker) close() {
	if a.client != nil {
		a.client.Close()
	}
}

func (a *acpAsker) Submit(ctx context.Context, r schemas.Request) (acp.Waiting, error) {
	open, err := a.client.Submit(ctx, r)
	if err != nil {
		return nil, err
	}
	return openRequest{open}, nil
}

func (a *acpAsker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	return asker{a.client}.Withdraw(ctx, sessionID, pendingID, reason)
}

func (a *acpAsker) Abandon(ctx context.Context, sessionID, pendingID, reason string) error {
	return asker{a.client}.Abandon(ctx, sessionID, pendingID, reason)
}

func (a *acpAsker) Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error {
	return a.client.Notices(ctx, sessionID, heard)
}

type openRequest struct{ *bus.OpenRequest }

func (r openRequest) Open() bool { return r.Receipt.Revision != 0 }

func (r openRequest) Await(ctx context.Context) (schemas.Decision, error) {
	d, err := r.OpenRequest.Await(ctx)
	if err != nil {
		r.Drop()
	}
	return d, err
}
