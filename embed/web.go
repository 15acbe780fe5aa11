package embed

import (
	"context"
	"errors"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
)

// Web is a running web inbox.
type Web struct {
	*web.Server
	viewer *connector.Viewer
}

// OpenWeb starts the web inbox over a connection, which must use the key of the web connector. The
// public URL of the inbox comes from the settings in force, and OpenWeb makes the desk. All other
// options come from o. The caller must Stop the inbox.
func OpenWeb(ctx context.Context, sys *actors.System, conn *bus.Conn, o web.Options) (*Web, error) {
	desk := connector.NewDesk(conn, web.Name)
	state, err := desk.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if w := state.Settings.Connectors.Web; w != nil {
		o.PublicURL = w.PublicURL
	}
	o.Desk, o.Registry, o.LoginCodes, o.Records, o.Logins = desk, desk, desk, desk, desk
	server, err := web.Open(o)
	if err != nil {
		return nil, err
	}
	viewer, err := connector.View(ctx, sys, conn, web.Name, o.Log, server.Show)
	if err != nil {
		return nil, errors.Join(err, server.Stop(ctx))
	}
	return &Web{server, viewer}, nil
}

// Stop stops the inbox and its viewer.
func (w *Web) Stop(ctx context.Context) error {
	return errors.Join(w.Server.Stop(ctx), w.viewer.Stop(ctx))
}

// openWeb starts the inbox in this process. If the inbox cannot connect, for example because its key is
// missing, nod logs an error and runs without an inbox.
func (n *Nod) openWeb(ctx context.Context) error {
	if n.opts.Web == nil {
		return nil
	}
	conn, err := n.Connect(ctx, roles.ConnectorID(web.Name))
	if err != nil {
		n.opts.Log.Error("the web inbox was not opened; nod runs without it", "error", err)
		return nil
	}
	n.webConn = conn
	n.web, err = OpenWeb(ctx, n.system, conn, web.Options{DataDir: n.opts.DataDir, KeyFile: n.opts.WebKey, Listen: *n.opts.Web, Log: n.opts.Log})
	return err
}

// Web returns the web inbox that runs in this process, or nil if none runs.
func (n *Nod) Web() *Web { return n.web }

func (n *Nod) stopWeb(ctx context.Context) error {
	var errs []error
	if n.web != nil {
		errs = append(errs, n.web.Stop(ctx))
	}
	if n.webConn != nil {
		n.webConn.Close()
	}
	n.web, n.webConn = nil, nil
	return errors.Join(errs...)
}
