package main

import (
	"fmt"
	"os/user"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// webFlags say where the web inbox listens.
type webFlags struct {
	HTTP        string `name:"http" placeholder:"ADDR" default:"127.0.0.1:4280" help:"Where the web inbox listens, or off; another free port is used where it is taken."`
	HTTPCert    string `name:"http-cert" placeholder:"FILE" type:"path" help:"TLS certificate of the web inbox."`
	HTTPKey     string `name:"http-key" placeholder:"FILE" type:"path" help:"Its key."`
	BehindProxy bool   `help:"A proxy in front of the web inbox speaks TLS."`
	loginKeyFlag
}

// loginKeyFlag names the key that logins are signed with.
type loginKeyFlag struct {
	LoginKey string `placeholder:"FILE" type:"path" help:"Key of logins to the web inbox, the same for all that share one address (web/key in the data directory)."`
}

// listen is where that is, or nil for nowhere.
func (f *webFlags) listen() *httpserve.Listen {
	if f.HTTP == "off" {
		return nil
	}
	return &httpserve.Listen{Addr: f.HTTP, TLSCert: f.HTTPCert, TLSKey: f.HTTPKey, BehindProxy: f.BehindProxy}
}

// welcomeToWeb says where the inbox is, with a login link for the user who runs
// this process.
func welcomeToWeb(w *embed.Web, out func(format string, args ...any)) error {
	if w == nil {
		return nil
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find out who logs in: %w", err)
	}
	if taken := w.Taken(); taken != "" {
		out("  note      %s is taken, so the web inbox is at %s", taken, w.URL())
	}
	out("  web       %s", w.Link(u.Username))
	out("            logs one browser in, once, within %s; nod login makes another", schemas.Words(web.LinkLasts))
	return nil
}

type loginCmd struct {
	User string `placeholder:"NAME" help:"Whom it logs in, as approvers name them on web (you)."`
	loginKeyFlag
}

// Run prints a link that logs a browser in to the web inbox, once.
func (c *loginCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if c.User == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("find out who logs in: %w", err)
		}
		c.User = u.Username
	}
	link, err := web.Link(place.DataDir, c.LoginKey, c.User)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, link)
	return nil
}
