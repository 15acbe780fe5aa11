package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// find returns the request with this id. A unique prefix of the id of a pending request is enough. If the id
// is empty, find considers the pending requests that the filter selects; a nil filter selects all. It returns
// the only such request, or lets the user pick one.
func (e *env) find(ctx context.Context, d *desk, session, id string, filter func(*schemas.Prompt) bool) (p schemas.Prompt, page schemas.Page, err error) {
	if len(id) < schemas.MinPrefix {
		waiting, err := d.Pending(ctx, schemas.Query{SessionID: session})
		if err != nil {
			return p, page, err
		}
		found := withPrefix(waiting, id, filter)
		switch {
		case len(found) == 1:
			session, id = found[0].SessionID, found[0].PendingID
		case id == "":
			picked, err := e.pick(found)
			if err != nil {
				return p, page, err
			}
			session, id = picked.SessionID, picked.PendingID
		case len(found) > 1:
			return p, page, fmt.Errorf("%q begins the ids of %d requests that wait (%s): give more of it", id, len(found), strings.Join(people.ShortIDs(found), ", "))
		}
	}
	ctx, cancel := e.soon() // the user may have taken long to pick, so the next call gets a new time limit
	defer cancel()
	return d.Find(ctx, session, id)
}

// withPrefix returns the prompts whose ids begin with the prefix. If the prefix is empty, it returns the
// prompts that the filter selects; a nil filter selects all.
func withPrefix(all []schemas.Prompt, prefix string, filter func(*schemas.Prompt) bool) (found []schemas.Prompt) {
	for i := range all {
		if strings.HasPrefix(all[i].PendingID, prefix) && (prefix != "" || filter == nil || filter(&all[i])) {
			found = append(found, all[i])
		}
	}
	return found
}

func (e *env) pick(all []schemas.Prompt) (schemas.Prompt, error) {
	if len(all) == 0 {
		return schemas.Prompt{}, errors.New("no such request is waiting: see nod pending")
	}
	if !e.interactive() {
		return schemas.Prompt{}, fmt.Errorf("%d requests are waiting: name one (%s); see nod pending", len(all), strings.Join(people.ShortIDs(all), ", "))
	}
	width := 80
	if w := e.width(); w > 0 {
		width = w
	}
	rows := strings.Split(people.PaintedTable(all, time.Now(), width-4, painter(e.stderr)), "\n")
	fmt.Fprintf(e.stderr, "    %s\n", rows[0])
	for i := range all {
		fmt.Fprintf(e.stderr, "%2d  %s\n", i+1, rows[i+1])
	}
	n, err := strconv.Atoi(e.typed(fmt.Sprintf("Which one? [1-%d] ", len(all))))
	if err != nil || n < 1 || n > len(all) {
		return schemas.Prompt{}, errors.New("none was chosen, and nothing was answered")
	}
	return all[n-1], nil
}

// showFirst shows a request that the user did not name, and asks whether to go on. Without a terminal
// it returns an error, because a user must name or see a request before it is allowed.
func (e *env) showFirst(p *schemas.Prompt, now time.Time, question string) error {
	if !e.interactive() {
		return fmt.Errorf("nothing was answered: name the request, which is %s; see nod show %s", p.PendingID, p.PendingID)
	}
	e.printParts(e.stderr, people.PrintedParts(p, now.Local()))
	if !e.agree(question) {
		return errors.New("nothing was answered")
	}
	return nil
}
