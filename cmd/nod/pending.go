package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// requestRow is a request as commands print it in JSON: without nested objects, and with the field
// names of nod's messages.
type requestRow struct {
	schemas.Request
	Agent   string       `json:"agent"`
	Digest  string       `json:"digest"`
	Risk    schemas.Risk `json:"risk"`
	Reasons []string     `json:"reasons,omitempty"`
	// Targets, Unseen, OnDisk, Conditions, Detached, VotesNeeded, Votes and Next: see schemas.Prompt.
	Targets     []schemas.Target  `json:"targets,omitempty"`
	Unseen      []string          `json:"unseen,omitempty"`
	OnDisk      *schemas.DiskFile `json:"on_disk,omitempty"`
	Conditions  []string          `json:"takes,omitempty"`
	Detached    bool              `json:"detached,omitempty"`
	VotesNeeded int               `json:"votes_needed,omitempty"`
	Votes       []schemas.Vote    `json:"votes,omitempty"`
	Next        *schemas.NextStep `json:"next,omitempty"`
	Tier        schemas.Tier      `json:"tier"`
	Deadline    time.Time         `json:"deadline"`
	Revision    uint64            `json:"revision"`
	// Waiters and Waiting count the pending calls that are identical to this one: see schemas.Prompt.
	Waiters   int                   `json:"waiters,omitempty"`
	Waiting   int                   `json:"waiting,omitempty"`
	Decision  *schemas.Decision     `json:"decision,omitempty"`
	Aftermath []schemas.Aftermath   `json:"aftermath,omitempty"`
	Run       *schemas.ContainedRun `json:"run,omitempty"`
}

func rowOf(p schemas.Prompt) requestRow {
	return requestRow{
		p.Request, p.Agent, p.Digest, p.Risk, p.Reasons, p.Targets, p.Unseen, p.OnDisk, p.Conditions, p.Detached, p.VotesNeeded, p.Votes, p.Next,
		p.Tier, p.Deadline, p.Revision, p.Waiters, p.Waiting, p.Decision, p.Aftermath, p.Run,
	}
}

// rowsOf returns the rows of prompts. Without prompts it returns an empty list instead of nil, so that
// commands print [].
func rowsOf(prompts []schemas.Prompt) []requestRow {
	rows := make([]requestRow, len(prompts))
	for i, p := range prompts {
		rows[i] = rowOf(p)
	}
	return rows
}

type pendingCmd struct {
	Session string `placeholder:"S" help:"Only requests of this session."`
	IDs     bool   `name:"ids" xor:"form" help:"Print the ids alone, one on a line."`
	JSON    bool   `name:"json" xor:"form" help:"Print a JSON array."`
}

// Run lists the pending requests. Except in JSON, it prints each page as soon as the page is read.
func (c *pendingCmd) Run(e *env) error {
	_, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	d.PageTimeout = callTimeout // one call reads a page, so each page gets the time limit of a call
	q := schemas.Query{SessionID: c.Session}
	if c.JSON {
		return c.printJSON(e, d, q)
	}
	listed := map[string]bool{} // keys of the listed requests, because a request that changes during the listing may be on two pages
	pages := 0
	err = d.EachPending(e.ctx, q, func(page []schemas.Prompt) error {
		if pages++; pages == 1 {
			e.warnIfFrozen(d)
		}
		page = slices.DeleteFunc(page, func(p schemas.Prompt) bool {
			again := listed[p.Key()]
			listed[p.Key()] = true
			return again
		})
		return c.printPage(e, page, pages == 1)
	})
	if err == nil && len(listed) == 0 && !c.IDs {
		fmt.Fprintln(e.stderr, "no request is pending")
	}
	return err
}

// printPage prints the ids or the table of one page. Only the first page has the header of the table.
func (c *pendingCmd) printPage(e *env, page []schemas.Prompt, first bool) error {
	if len(page) == 0 {
		return nil
	}
	if c.IDs {
		for i := range page {
			if _, err := fmt.Fprintln(e.stdout, page[i].PendingID); err != nil {
				return err
			}
		}
		return nil
	}
	table := people.PaintedTable(page, time.Now(), e.width(), painter(e.stdout))
	if !first {
		_, table, _ = strings.Cut(table, "\n")
	}
	_, err := fmt.Fprint(e.stdout, table)
	return err
}

func (c *pendingCmd) printJSON(e *env, d *desk, q schemas.Query) error {
	prompts, err := d.Pending(e.ctx, q)
	if err != nil {
		return err
	}
	e.warnIfFrozen(d)
	return e.printJSON(rowsOf(prompts))
}

// warnIfFrozen warns of the freezes in force. After an error it does nothing.
func (e *env) warnIfFrozen(d *desk) {
	ctx, cancel := e.soon()
	defer cancel()
	if state, err := d.Settings(ctx); err == nil {
		e.warnFrozen(state.Freezes)
	}
}
