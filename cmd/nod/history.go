package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// decided returns the stored requests that have a decision, newest decision first.
func (e *env) decided(session string) ([]schemas.Prompt, error) {
	_, d, done, err := e.desk()
	if err != nil {
		return nil, err
	}
	defer done()
	d.PageTimeout = callTimeout // a page is read by one call, so it gets the time limit of a call
	prompts, err := d.History(e.ctx, session)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(prompts, func(a, b schemas.Prompt) int { return b.Decision.DecidedAt.Compare(a.Decision.DecidedAt) })
	return prompts, nil
}

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
	prompts, err := e.decided(c.Session)
	if err != nil {
		return err
	}
	prompts = prompts[:min(c.Limit, len(prompts))]
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
	decided, err := e.decided("")
	if err != nil {
		return err
	}
	_, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	d.PageTimeout = callTimeout
	pending, err := d.Pending(e.ctx, schemas.Query{})
	if err != nil {
		return err
	}
	sessions := people.Sessions(append(pending, decided...), time.Now())
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
