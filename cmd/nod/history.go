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
	Session string      `placeholder:"S" help:"Only requests of this session."`
	Outcome outcomeFlag `placeholder:"OUTCOME" help:"Only decisions with this outcome: allowed, denied, cancelled (or dismissed), timed_out (or expired) or withdrawn."`
	Limit   int         `short:"n" default:"20" placeholder:"N" help:"The greatest number of requests (${default})."`
	JSON    bool        `name:"json" help:"Print a JSON array."`
	Words   []string    `arg:"" optional:"" help:"Words that all occur in the request or its decision."`
}

// Run lists the requests that have a decision, newest first. Stored requests come before those that
// only the log has.
func (c *historyCmd) Run(e *env) error {
	if c.Limit < 1 {
		return errors.New("--limit: give 1 or more")
	}
	_, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	d.PageTimeout = callTimeout // one call reads a page, so each page gets the time limit of a call
	search := people.NewSearch(strings.Join(c.Words, " "), schemas.Outcome(c.Outcome))
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
		return errors.Join(err, e.printJSON(historyRows(prompts, past.found)))
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

// sayEnd prints where the log begins, if the whole log was read. If no request was found, it says so too.
func (c *historyCmd) sayEnd(e *env, past *pastRequests, nothing bool) {
	if past.begins.IsZero() {
		if nothing {
			fmt.Fprintln(e.stderr, "no request was decided")
		}
		return
	}
	end := logBegins(past.begins)
	switch {
	case nothing && (len(c.Words) > 0 || c.Outcome != ""):
		end = "no decision matches; " + end
	case nothing:
		end = "no request was decided; " + end
	}
	fmt.Fprintln(e.stderr, end)
}

func logBegins(at time.Time) string {
	return "the log begins on " + at.Local().Format("2 Jan 2006 15:04")
}

// pastRequests are requests from the log, the newest first. The field begins is the time of the log's oldest
// entry, or zero if only a part of the log was read.
type pastRequests struct {
	found  []schemas.LoggedRequest
	begins time.Time
}

// readLog reads the log from its newest entries back, until it has found as many matching requests as limit
// says. After an error it also returns the requests that it has found.
func (c *historyCmd) readLog(e *env, d *desk, search people.Search, limit int) (past pastRequests, err error) {
	if limit == 0 {
		return past, nil
	}
	listed := listedRows{}
	past.begins, err = e.eachLogged(d, c.Session, "", func(l *schemas.LoggedRequest) bool {
		if listed.add(l) && search.FindsLogged(l) {
			past.found = append(past.found, *l)
		}
		return len(past.found) < limit
	})
	return past, err
}

// listedRows is the set of the rows that are listed already, because the log may contain a request twice. A
// row's key includes the content and the decision of the request, because an agent may send another request
// with the same id and time.
type listedRows map[string]bool

// add adds the row of a request, and reports whether the row is new. The row of a question without a decision
// is not new if another row with the same question was added before.
func (rows listedRows) add(l *schemas.LoggedRequest) bool {
	question := l.Question()
	row := question
	if d := l.Decided; d != nil {
		row = fmt.Sprint(question, " ", d.Outcome, " ", d.At.UnixNano())
	}
	isNew := !rows[row]
	rows[row], rows[question] = true, true
	return isNew
}

type sessionsCmd struct {
	All   bool  `help:"Also list the sessions that only the log has, as far back as it goes."`
	Since *span `placeholder:"D" help:"Also list the sessions of the log with a request of the last D, such as 30d."`
	JSON  bool  `name:"json" help:"Print a JSON array."`
}

// Run lists the sessions that have stored requests, pending or decided. With --all or --since it also lists
// sessions that only the log has.
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
	if c.All || c.Since != nil {
		return c.listPast(e, d, tally)
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

// listPast adds the sessions of the log to a tally of sessions, and prints all sessions of the tally. If the
// log cannot be read to its end, listPast prints the sessions that it has found, and returns the error.
func (c *sessionsCmd) listPast(e *env, d *desk, tally *people.SessionTally) error {
	begins, err := c.readLog(e, d, tally)
	if err != nil {
		err = fmt.Errorf("read the sessions before the last 24 hours: %w", err)
	}
	sessions := tally.Sessions()
	if c.JSON {
		return errors.Join(err, e.printJSON(append([]people.Session{}, sessions...)))
	}
	if len(sessions) > 0 {
		fmt.Fprint(e.stdout, people.PastSessionTable(sessions, time.Now(), e.width(), painter(e.stdout)))
	}
	switch {
	case !begins.IsZero():
		fmt.Fprintln(e.stderr, logBegins(begins))
	case err == nil && len(sessions) == 0:
		fmt.Fprintln(e.stderr, "no session has asked in this time")
	}
	return err
}

// readLog adds the sessions of the log to a tally of sessions. It returns the time of the log's oldest entry,
// if it has read the whole log.
func (c *sessionsCmd) readLog(e *env, d *desk, tally *people.SessionTally) (begins time.Time, err error) {
	var since time.Time
	if c.Since != nil {
		since = time.Now().Add(-time.Duration(*c.Since))
	}
	return e.eachLogged(d, "", "", func(l *schemas.LoggedRequest) bool {
		at := l.AskedAt
		if l.Decided != nil {
			at = l.Decided.At
		}
		if at.Before(since) {
			return false
		}
		tally.AddLogged(l)
		return true
	})
}
