package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type historyCmd struct {
	Session string `placeholder:"S" help:"Only requests of this session."`
	Limit   int    `short:"n" default:"20" placeholder:"N" help:"The greatest number of decisions (${default})."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run lists the stored requests that have a decision, newest first.
func (c *historyCmd) Run(e *env) error {
	if c.Limit < 1 {
		return errors.New("--limit: give 1 or more")
	}
	_, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	d.PageTimeout = callTimeout // a page is read by one call, so it gets the time limit of a call
	newest := people.Newest{Most: c.Limit}
	if err := d.EachDecided(e.ctx, c.Session, newest.Add); err != nil {
		return err
	}
	prompts := newest.Prompts()
	if c.JSON {
		return e.printJSON(rowsOf(prompts))
	}
	if len(prompts) == 0 {
		fmt.Fprintln(e.stderr, "no request was decided in the last 24 hours")
		return nil
	}
	fmt.Fprint(e.stdout, people.HistoryTable(prompts, time.Now(), e.width(), painter(e.stdout)))
	return nil
}

type sessionsCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

// Run lists the sessions that have stored requests, pending or decided.
func (c *sessionsCmd) Run(e *env) error {
	_, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	d.PageTimeout = callTimeout
	tally := people.NewSessionTally(time.Now())
	err = d.EachDecided(e.ctx, "", tally.Add)
	if err == nil {
		err = d.EachPending(e.ctx, schemas.Query{}, tally.Add)
	}
	if err != nil {
		return err
	}
	sessions := tally.Sessions()
	switch {
	case c.JSON:
		return e.printJSON(append([]people.Session{}, sessions...))
	case len(sessions) == 0:
		fmt.Fprintln(e.stderr, "no session has asked in the last 24 hours")
		return nil
	}
	fmt.Fprint(e.stdout, people.SessionTable(sessions, time.Now(), e.width(), painter(e.stdout)))
	return nil
}
