package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type historyCmd struct {
	Session string          `placeholder:"S" help:"Only requests of this session."`
	Outcome schemas.Outcome `placeholder:"OUTCOME" help:"Only decisions with this outcome: allowed, denied, cancelled, timed_out or withdrawn."`
	Limit   int             `short:"n" default:"20" placeholder:"N" help:"The greatest number of requests (${default})."`
	JSON    bool            `name:"json" help:"Print a JSON array."`
	Words   []string        `arg:"" optional:"" help:"Words that all occur in the request or its decision."`
}

// Run lists the requests that have a decision, newest first: the stored ones, then those of the log.
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
	search := people.NewSearch(strings.Join(c.Words, " "), c.Outcome)
	newest := people.Newest{Most: c.Limit, Keep: search.Finds}
	if err := d.EachDecided(e.ctx, c.Session, newest.Add); err != nil {
		return err
	}
	prompts := newest.Prompts()
	var past pastRequests
	if !newest.More {
		past, err = c.readLog(e, d, search, c.Limit-len(prompts))
	}
	if c.JSON {
		return errors.Join(err, e.printJSON(append(rowsOf(prompts), past.rows()...)))
	}
	if len(prompts)+len(past.found) > 0 {
		fmt.Fprint(e.stdout, people.HistoryTable(prompts, past.found, time.Now(), e.width(), painter(e.stdout)))
	}
	if err != nil {
		return fmt.Errorf("read the history before the last 24 hours: %w", err)
	}
	c.sayEnd(e, &past, len(prompts)+len(past.found) == 0)
	return nil
}

// sayEnd says that nothing was found, and where the log begins if it was read to there.
func (c *historyCmd) sayEnd(e *env, past *pastRequests, nothing bool) {
	if past.begins.IsZero() {
		if nothing {
			fmt.Fprintln(e.stderr, "no request was decided")
		}
		return
	}
	end := "the log begins on " + past.begins.Local().Format("2 Jan 2006 15:04")
	switch {
	case nothing && (len(c.Words) > 0 || c.Outcome != ""):
		end = "no decision matches; " + end
	case nothing:
		end = "no request was decided; " + end
	}
	fmt.Fprintln(e.stderr, end)
}

// pastRequests are requests of the log, the newest first. begins is the time of the log's oldest
// entry, if all of the log was read.
type pastRequests struct {
	found  []schemas.LoggedRequest
	begins time.Time
}

func (p *pastRequests) rows() []requestRow {
	rows := make([]requestRow, len(p.found))
	for i := range p.found {
		prompt, _ := people.FromLog(&p.found[i])
		rows[i] = rowOf(prompt)
		rows[i].Logged = true
	}
	return rows
}

// readLog reads the log, the newest pages first, until most requests match. After an error it also
// returns what it has found.
func (c *historyCmd) readLog(e *env, d *desk, search people.Search, most int) (past pastRequests, err error) {
	seen := map[string]bool{} // the log may have a request twice
	for after := ""; len(past.found) < most; {
		page, err := d.Logged(e.ctx, c.Session, "", after)
		if err != nil {
			return past, err
		}
		for i := range page.Logged {
			l := &page.Logged[i]
			if id := l.Key() + l.AskedAt.String(); len(past.found) < most && !seen[id] && search.FindsLogged(l) {
				seen[id] = true
				past.found = append(past.found, *l)
			}
		}
		if after = page.Next; after == "" {
			if len(past.found) < most {
				past.begins = page.Log.Begins
			}
			return past, nil
		}
	}
	return past, nil
}

// findLogged returns the newest request of the log with this id, or whose id begins with it. It
// returns nil if there is none.
func (e *env) findLogged(d *desk, session, id string) (*schemas.LoggedRequest, error) {
	d.PageTimeout = callTimeout
	for after := ""; ; {
		page, err := d.Logged(e.ctx, session, id, after)
		if err != nil {
			return nil, err
		}
		for i := range page.Logged {
			if l := &page.Logged[i]; l.PendingID == id || len(id) >= schemas.MinPrefix {
				return l, nil
			}
		}
		if after = page.Next; after == "" {
			return nil, nil
		}
	}
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
