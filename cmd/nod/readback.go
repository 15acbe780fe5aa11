package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// eachLogged calls f with the logged requests of a session, or of all sessions, the newest first, until f
// returns false. If the parameter id is not empty, it skips requests whose ids do not begin with that text.
// If f never returns false, the result is the time of the log's oldest entry. Meanwhile a terminal shows the
// progress.
func (e *env) eachLogged(d *desk, session, id string, f func(*schemas.LoggedRequest) (more bool)) (begins time.Time, err error) {
	d.PageTimeout = callTimeout
	progress := readBack{}
	if isTerminal(e.stderr) {
		progress.out = e.stderr
	}
	return progress.each(e.ctx, func(ctx context.Context, after string) (schemas.Page, error) {
		return d.Logged(ctx, session, id, after)
	}, f)
}

// readBack reads pages of the log. It shows its progress on one line of the writer out; a nil writer shows
// none.
type readBack struct{ out io.Writer }

func (r readBack) each(ctx context.Context, read func(ctx context.Context, after string) (schemas.Page, error), f func(*schemas.LoggedRequest) bool) (time.Time, error) {
	defer r.show("")
	for after := ""; ; {
		page, err := read(ctx, after)
		if err != nil {
			return time.Time{}, err
		}
		for i := range page.Logged {
			if !f(&page.Logged[i]) {
				return time.Time{}, nil
			}
		}
		if after = page.Next; after == "" {
			return page.Log.Begins, nil
		}
		if !page.Log.Reached.IsZero() {
			r.show("reading the log back to " + page.Log.Reached.Local().Format("2 Jan 2006 15:04") + " …")
		}
	}
}

// show replaces the progress line by a text.
func (r readBack) show(text string) {
	if r.out != nil {
		fmt.Fprint(r.out, "\r\x1b[K"+text)
	}
}

// findLogged returns the newest request in the log with exactly this id. Otherwise it returns the only
// request whose id begins with the given id, or nil if there is none. If there are several, it returns an
// error.
func (e *env) findLogged(d *desk, session, id string) (*schemas.LoggedRequest, error) {
	var exact *schemas.LoggedRequest
	var longer []*schemas.LoggedRequest
	_, err := e.eachLogged(d, session, id, func(l *schemas.LoggedRequest) bool {
		if l.PendingID == id {
			exact = l
			return false
		}
		same := func(other *schemas.LoggedRequest) bool { return other.Key() == l.Key() }
		if len(id) >= schemas.MinPrefix && len(longer) <= maxAmbiguous && !slices.ContainsFunc(longer, same) {
			longer = append(longer, l)
		}
		return true
	})
	switch {
	case err != nil || exact != nil:
		return exact, err
	case len(longer) > 1:
		return nil, ambiguous(id, longer)
	case len(longer) == 1:
		return longer[0], nil
	}
	return nil, nil
}

// maxAmbiguous is the largest number of requests that the error about an ambiguous id names.
const maxAmbiguous = 5

func ambiguous(id string, found []*schemas.LoggedRequest) error {
	names, several := []string{}, fmt.Sprint(len(found))
	for _, l := range found[:min(len(found), maxAmbiguous)] {
		names = append(names, fmt.Sprintf("%s of session %s", l.PendingID, l.SessionID))
	}
	if len(found) > maxAmbiguous {
		names, several = append(names, "…"), "more than "+fmt.Sprint(maxAmbiguous)
	}
	return fmt.Errorf("%q begins the ids of %s requests in the log (%s): give more of it, or the session with --session", id, several, strings.Join(names, ", "))
}
