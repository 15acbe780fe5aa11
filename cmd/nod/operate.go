package main

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// owner connects for one command in the role of the owner, who may change settings and sessions. The
// caller must call done, which closes the connection and cancels ctx.
func (e *env) owner() (ctx context.Context, owner *connector.Owner, done func(), err error) {
	ctx, conn, done, err := e.join(roles.ID{Role: roles.Owner})
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, connector.NewOwner(conn, schemas.ConnectorTerminal), done, nil
}

// join connects in a role for one command. The caller must call done, which closes
// the connection and cancels ctx.
func (e *env) join(id roles.ID) (ctx context.Context, conn *bus.Conn, done func(), err error) {
	if err := e.checkKey(id); err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := e.soon()
	if conn, err = bus.Join(ctx, e.place, id, e.log); err != nil {
		cancel()
		return nil, nil, nil, err
	}
	e.warnOpen(conn.Open())
	return ctx, conn, func() { conn.Close(); cancel() }, nil
}

// checkKey returns an error if the command needs another role than agent, but the user's key file is named as
// an agent's key. Without this check the server would refuse each call, and the error would look as if nod
// did not run.
func (e *env) checkKey(id roles.ID) error {
	place, err := e.place.WithDefaults()
	if err != nil || id.Role == roles.Agent {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(place.Creds), filepath.Ext(place.Creds))
	if key, err := roles.ParseID(name); err == nil && key.Role == roles.Agent {
		return fmt.Errorf("%s is the key of an agent, which may only ask: name the key of %s with --creds or NOD_CREDS", place.Creds, id)
	}
	return nil
}

type settingsCmd struct {
	Apply  settingsApplyCmd  `cmd:"" help:"Check a settings.json and put it in force."`
	Show   settingsShowCmd   `cmd:"" help:"Print the settings in force."`
	Schema settingsSchemaCmd `cmd:"" help:"Print the JSON Schema of settings.json."`
}

type settingsApplyCmd struct {
	File string `arg:"" optional:"" type:"path" help:"The file (DATA/settings.json)."`
}

// Run applies the settings. It returns once every running engine uses them. If some engines do not,
// the error names them.
func (c *settingsApplyCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if c.File == "" {
		c.File = filepath.Join(place.DataDir, "settings.json")
	}
	data, err := readSettings(c.File, "")
	if err != nil {
		return err
	}
	if data, err = embed.WithApprovers(data); err != nil {
		return err
	}
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	before, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	state, err := owner.ApplySettings(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	laggards, err := owner.Follow(ctx, state.Revision)
	if err != nil {
		return err
	}
	if len(laggards) > 0 {
		return fmt.Errorf("settings %d are stored, but these engines do not follow them yet: %v; see their logs", state.Revision, laggards)
	}
	fmt.Fprintf(e.stdout, "The settings are in force (revision %d).\n", state.Revision)
	e.warnApprovers(&before.Settings, &state.Settings)
	if len(state.Settings.Identities()) == 0 && !state.Settings.ByLogin() {
		fmt.Fprintln(e.stderr, "nod: warning: approvers.people is empty, so every question is refused at once: add an approver")
	}
	return nil
}

// warnApprovers warns if the new settings take away this user's right to answer, or name an unknown
// connector.
func (e *env) warnApprovers(before, after *schemas.Settings) {
	u, err := user.Current()
	answers := func(s *schemas.Settings) bool {
		return slices.ContainsFunc(s.Identities(), func(id schemas.Identity) bool { return schemas.IsViewer(id.Connector) && id.UserID == u.Username })
	}
	if err == nil && answers(before) && !answers(after) {
		fmt.Fprintf(e.stderr, "nod: warning: you (%s) may no longer answer in the terminal or on the web: no identity in approvers.people is {\"connector\": \"terminal\", \"user_id\": %q}\n", u.Username, u.Username)
	}
	known := append(embed.ChannelNames(), schemas.ConnectorTerminal, schemas.ConnectorWeb)
	for _, id := range after.Identities() {
		if meant := schemas.Nearest(id.Connector, known); meant != "" && meant != id.Connector {
			fmt.Fprintf(e.stderr, "nod: warning: approvers.people names the connector %s, which nod does not have: did you mean %s?\n", id.Connector, meant)
		}
	}
}

type settingsShowCmd struct {
	JSON bool `name:"json" help:"Print JSON with the revision."`
}

func (c *settingsShowCmd) Run(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	state, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(state)
	}
	return e.printJSON(state.Settings)
}

type settingsSchemaCmd struct{}

func (settingsSchemaCmd) Run(e *env) error {
	schema, err := embed.SettingsSchema()
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(schema)
	return err
}
