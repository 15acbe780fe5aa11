package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// MaxListed is the largest number of requests that a list in a chat names.
const MaxListed = 20

// CountWaiting returns a text with the number of requests that wait. The parameter more means that there
// are more than n.
func CountWaiting(n int, more bool) string {
	if more {
		return fmt.Sprintf("More than %d waiting.", n)
	}
	return fmt.Sprintf("%d waiting.", n)
}

// errFound makes EachPending stop, because the caller needs no further page.
var errFound = errors.New("found")

// Oldest returns the pending requests that match q and for which the function keep returns true; a nil
// keep keeps all. If there are more than limit, it returns those that have not changed for the longest
// time, and more is true. The result is sorted by creation. Oldest reads no more pages than it needs.
func Oldest(ctx context.Context, desk Desk, q schemas.Query, limit int, keep func(*schemas.Prompt) bool) (oldest []schemas.Prompt, more bool, err error) {
	err = desk.EachPending(ctx, q, func(page []schemas.Prompt) error {
		oldest = addPage(oldest, page, keep)
		if len(oldest) > limit {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, false, err
	}
	slices.SortStableFunc(oldest, func(a, b schemas.Prompt) int { return a.Request.CreatedAt.Compare(b.Request.CreatedAt) })
	return oldest[:min(len(oldest), limit)], len(oldest) > limit, nil
}

// addPage adds the requests of a page for which the function keep returns true. If a request is on two
// pages, the later version replaces the earlier version. If the function returns false for the later
// version, addPage removes the request.
func addPage(all, page []schemas.Prompt, keep func(*schemas.Prompt) bool) []schemas.Prompt {
	all = slices.DeleteFunc(all, func(p schemas.Prompt) bool {
		return slices.ContainsFunc(page, func(q schemas.Prompt) bool { return q.Key() == p.Key() })
	})
	for i := range page {
		if keep == nil || keep(&page[i]) {
			all = append(all, page[i])
		}
	}
	return all
}

// FindPending returns the first request that matches q and for which the function named is returns true.
// If there is no such request, found is false. Only one page is in memory at a time.
func FindPending(ctx context.Context, desk Desk, q schemas.Query, is func(*schemas.Prompt) bool) (p schemas.Prompt, found bool, err error) {
	err = desk.EachPending(ctx, q, func(page []schemas.Prompt) error {
		for i := range page {
			if is(&page[i]) {
				p, found = page[i], true
				return errFound
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return schemas.Prompt{}, false, err
	}
	return p, found, nil
}

// Newest collects the most recently decided requests, from pages of decided requests.
type Newest struct {
	Most int                        // the largest number of requests that Newest keeps
	Keep func(*schemas.Prompt) bool // reports whether to keep a request; nil keeps every request
	More bool                       // Newest has dropped requests, because there were more than Most

	found []schemas.Prompt
}

// Add adds the requests of a page. The error is always nil.
func (n *Newest) Add(page []schemas.Prompt) error {
	n.found = addPage(n.found, page, func(p *schemas.Prompt) bool { return p.Decision != nil && (n.Keep == nil || n.Keep(p)) })
	slices.SortStableFunc(n.found, func(a, b schemas.Prompt) int { return newer(&a, b.Decision.DecidedAt, b.Key()) })
	if len(n.found) > n.Most {
		n.found, n.More = slices.Clip(n.found[:n.Most]), true
	}
	return nil
}

// DecidedBefore reports whether p was decided before the time at. If p was decided at that time, it
// reports whether p's key is greater than the parameter key.
func DecidedBefore(p *schemas.Prompt, at time.Time, key string) bool { return newer(p, at, key) > 0 }

// newer compares p with a request that has the given key and was decided at the time at. It returns a
// negative number if p comes first in the order of Newest.
func newer(p *schemas.Prompt, at time.Time, key string) int {
	return cmp.Or(at.Compare(p.Decision.DecidedAt), strings.Compare(p.Key(), key))
}

// Prompts returns the kept requests, the newest decision first.
func (n *Newest) Prompts() []schemas.Prompt { return n.found }

// ListPending returns the reply to the command /pending on a channel with buttons: a list of the requests
// that wait for the person. now is the broker's time.
func ListPending(ctx context.Context, desk Desk, person string, now time.Time) (string, error) {
	open, more, err := Oldest(ctx, desk, schemas.Query{Recipient: person}, MaxListed, nil)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return NotUnderstood(nil), nil
	}
	lines := []string{CountWaiting(len(open), more) + " Answer with the buttons under each question."}
	for i := range open {
		p := &open[i]
		lines = append(lines, fmt.Sprintf("%s · %s risk · until %s · %s", p.PendingID[:min(len(p.PendingID), 16)], p.Risk, DeadlineText(p, now.UTC()), Summary(p, 100)))
	}
	if more {
		lines = append(lines, "and more: nod pending")
	}
	return strings.Join(lines, "\n"), nil
}
