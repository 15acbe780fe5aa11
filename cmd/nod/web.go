package main

import (
	"errors"
	"fmt"
	"os/user"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

type webFlags struct {
	HTTP        string `name:"http" placeholder:"ADDR" default:"127.0.0.1:4280" help:"Address of the web inbox, or off; if the port is taken, another free one is used."`
	HTTPCert    string `name:"http-cert" placeholder:"FILE" type:"path" help:"TLS certificate of the web inbox."`
	HTTPKey     string `name:"http-key" placeholder:"FILE" type:"path" help:"Key of that certificate."`
	BehindProxy bool   `help:"A proxy in front of the web inbox speaks TLS."`
	loginKeyFlag
}

type loginKeyFlag struct {
	LoginKey string `placeholder:"FILE" type:"path" help:"Key that signs web logins; web inboxes behind one address need the same key (web/key in the data directory)."`
}

// listen returns the web inbox's address, or nil if the web inbox is off.
func (f *webFlags) listen() *httpserve.Listen {
	if f.HTTP == "off" {
		return nil
	}
	return &httpserve.Listen{Addr: f.HTTP, TLSCert: f.HTTPCert, TLSKey: f.HTTPKey, BehindProxy: f.BehindProxy}
}

// welcomeToWeb prints a link to the web inbox. The link logs this process's user in.
func welcomeToWeb(w *embed.Web, out func(format string, args ...any)) error {
	if w == nil {
		return nil
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find this user's name: %w", err)
	}
	if taken := w.Taken(); taken != "" {
		out("  note      %s is taken, so the web inbox is at %s", taken, w.URL())
	}
	out("  web       %s", w.Link(u.Username))
	out("            logs one browser in, once, within %s; nod login makes another", schemas.FormatDuration(web.LinkLasts))
	return nil
}

type loginCmd struct {
	User string `placeholder:"NAME" help:"The user to log in: an approver's user_id on the connector web (this machine's user)."`
	loginKeyFlag
}

func (c *loginCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if c.User == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("find this user's name: %w", err)
		}
		c.User = u.Username
	}
	link, err := web.Link(place.DataDir, c.LoginKey, c.User)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, link)
	if _, err := bus.ReadRun(place.DataDir); errors.Is(err, bus.ErrNotRunning) {
		fmt.Fprintf(e.stderr, "nod: warning: %v; until then the link leads nowhere, and it ends in %s\n", err, schemas.FormatDuration(web.LinkLasts))
	}
	return nil
}
