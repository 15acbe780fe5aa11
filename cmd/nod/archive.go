package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
)

type backupCmd struct {
	To string `arg:"" type:"path" help:"The directory to make. It has keys, so keep it as safe as the data directory."`
}

// Run makes a backup of the running nod, or of the stores on other NATS servers.
func (c *backupCmd) Run(e *env) error {
	place, conn, done, err := e.stores()
	if err != nil {
		return err
	}
	defer done()
	o := embed.BackupOptions{Conn: conn, To: c.To, Version: version(), Report: e.step}
	if place.URL == "" {
		o.DataDir = place.DataDir
	}
	m, err := embed.Backup(e.ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "The backup %s has everything that was decided before %s. nod restore %s restores it.\n", c.To, m.MadeAt.Local().Format(time.DateTime), c.To)
	return nil
}

// stores connects in the role of the owner of the stores. It sets no time limit, unlike join.
func (e *env) stores() (place bus.Place, conn *bus.Conn, done func(), err error) {
	if place, err = e.place.WithDefaults(); err != nil {
		return place, nil, nil, err
	}
	id := roles.ID{Role: roles.OwnerStore}
	if err := e.checkKey(id); err != nil {
		return place, nil, nil, err
	}
	ctx, cancel := e.soon()
	defer cancel()
	conn, err = bus.Join(ctx, e.place, id, e.log)
	if err != nil {
		return place, nil, nil, err
	}
	e.warnOpen(conn.Open())
	return place, conn, conn.Close, nil
}

func (e *env) step(line string) { fmt.Fprintln(e.stderr, line) }

type restoreCmd struct {
	From     string `arg:"" type:"path" help:"The directory of the backup."`
	Replicas int    `default:"1" help:"With --nats-url: the number of replicas of each store (${default})."`
}

// Run restores a backup into the data directory, which must be empty or missing, or to NATS
// servers without stores of nod.
func (c *restoreCmd) Run(e *env) error {
	o := embed.RestoreOptions{From: c.From, Replicas: c.Replicas, Version: version(), Log: e.log, Report: e.step}
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	m, start := embed.Manifest{}, "Start nod up"
	if place.URL == "" {
		m, err = embed.RestoreInto(e.ctx, place.DataDir, o)
	} else {
		start = "Start the engines and connectors"
		m, err = c.toServers(e, o)
	}
	if errors.Is(err, context.Canceled) && e.ctx.Err() != nil {
		return errors.New("the restore was stopped before its end: run it again")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, `Restored the backup of %s. nod is frozen, because it cannot know what was decided after that:
- Requests that were pending are denied, and new ones too, until nod thaw.
- Grants have ended: nod asks again, and you may answer "always" again.
- Settings, approvers, keys, freezes and permissions of sessions are those of the backup.
%s, look at nod settings show, nod approvers, nod keys list and nod sessions, and then run nod thaw.
`, m.MadeAt.Local().Format(time.DateTime), start)
	return nil
}

func (c *restoreCmd) toServers(e *env, o embed.RestoreOptions) (embed.Manifest, error) {
	_, conn, done, err := e.stores()
	if err != nil {
		return embed.Manifest{}, err
	}
	defer done()
	return embed.RestoreStores(e.ctx, conn, o)
}
