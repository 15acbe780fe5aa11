package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

type acpCmd struct {
	Race          bool     `help:"Let the editor ask as well; the first answer counts."`
	OnUnavailable string   `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"Where nod is not running: let the editor ask, or deny."`
	AgentName     string   `name:"agent-name" placeholder:"NAME" help:"Who asks, as people are shown it (what the agent calls itself)."`
	Listen        string   `placeholder:"ADDR" help:"Serve what waits, and take answers, over HTTP, such as 127.0.0.1:4290."`
	Remote        bool     `help:"Let --listen name an address that other machines reach; it speaks plain HTTP."`
	TokenFile     string   `name:"token-file" placeholder:"FILE" type:"path" help:"The token of --listen; made where it is not there (acp-token in the data directory)."`
	Command       []string `arg:"" passthrough:"" placeholder:"CMD" help:"The agent and its arguments, after --."`
}

// Help is what nod acp --help says beside the flags.
func (acpCmd) Help() string {
	return "An editor that speaks the Agent Client Protocol starts this in the place of its agent. The exit code is the agent's."
}

// Run is the agent, to the editor.
func (c *acpCmd) Run(e *env) error {
	args, err := behind(c.Command)
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
	code, err := acp.RunCommand(ctx, args, acp.Streams{In: e.stdout, Out: e.stdin}, e.stderr, asker.connect, o)
	if err != nil {
		return err
	}
	if code != exitOK {
		return exit(code)
	}
	return nil
}

func (c *acpCmd) options(e *env) acp.Options {
	hostname, _ := os.Hostname() // shown only
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return acp.Options{
		Race: c.Race, Deny: c.OnUnavailable == "deny", AgentName: c.AgentName, Host: hostname, User: name,
		Stream: acp.NewStream(), Log: e.log,
	}
}

// serve starts the endpoints of --listen.
func (c *acpCmd) serve(e *env, stream *acp.Stream) (end func(), err error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	file := cmp.Or(c.TokenFile, filepath.Join(place.DataDir, "acp-token"))
	token, err := acp.Token(file)
	if err != nil {
		return nil, err
	}
	l, err := acp.Listen(c.Listen, c.Remote)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: stream.Handler(token, e.bring), ReadHeaderTimeout: patience}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			e.log.Error("acp: the endpoints of --listen are gone", "error", err)
		}
	}()
	fmt.Fprintf(e.stderr, "nod: http://%s serves what waits; its token is in %s\n", l.Addr(), file)
	return func() {
		stream.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // what is still open ends with the process
	}, nil
}

// bring brings an answer that came in over HTTP: it is this user's, as at the
// terminal, and about the identical calls that the question counts then.
func (e *env) bring(_ context.Context, r schemas.Request, optionID string) error {
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

// acpAsker is the client as the sidecar uses it, once it is connected.
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

// close is called when nobody asks any more.
func (a *acpAsker) close() {
	if a.client != nil {
		a.client.Close()
	}
}

func (a *acpAsker) Submit(ctx context.Context, r schemas.Request) (acp.Waiting, error) {
	asked, err := a.client.Submit(ctx, r)
	if err != nil {
		return nil, err
	}
	return waiting{asked}, nil
}

func (a *acpAsker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	return asker{a.client}.Withdraw(ctx, sessionID, pendingID, reason)
}

type waiting struct{ *bus.OpenRequest }

func (w waiting) Open() bool { return w.Receipt.Revision != 0 }

func (w waiting) Await(ctx context.Context) (schemas.Decision, error) {
	d, err := w.OpenRequest.Await(ctx)
	if err != nil {
		w.Drop()
	}
	return d, err
}
