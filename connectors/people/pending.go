package people

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nodbus/nod/schemas"
)

// MaxListed is the largest number of requests that a list in a chat names.
const MaxListed = 20

// CountWaiting says how many requests wait.
func CountWaiting(n int, more bool) string {
	if more {
		return fmt.Sprintf("More than %d waiting.", n)
	}
	return fmt.Sprintf("%d waiting.", n)
}

// errFound ends a list whose rest is not needed.
var errFound = errors.New("found")

// Oldest returns up to most of the pending requests that match q, oldest first, and reports whether
// there are more. The oldest are those that have not changed for the longest time. Oldest reads no more
// pages than it needs.
func Oldest(ctx context.Context, desk Desk, q schemas.Query, most int) (oldest []schemas.Prompt, more bool, err error) {
	err = desk.EachPending(ctx, q, func(page []schemas.Prompt) error {
		oldest = append(slices.DeleteFunc(oldest, isIn(page)), page...)
		if len(oldest) > most {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, false, err
	}
	slices.SortStableFunc(oldest, func(a, b schemas.Prompt) int { return a.Request.CreatedAt.Compare(b.Request.CreatedAt) })
	return oldest[:min(len(oldest), most)], len(oldest) > most, nil
}

// isIn returns a function that reports whether a page has a newer version of a request.
func isIn(page []schemas.Prompt) func(schemas.Prompt) bool {
	return func(p schemas.Prompt) bool {
		return slices.ContainsFunc(page, func(q schemas.Prompt) bool { return q.Key() == p.Key() })
	}
}

// FindPending returns the first request that matches q and for which is returns true. found is false if
// there is none. FindPending keeps one page in memory.
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

// Newest keeps the requests with the newest decisions, from pages of decided requests.
type Newest struct {
	Most int                        // the largest number of requests to keep
	Keep func(*schemas.Prompt) bool // nil keeps every request
	More bool                       // whether there were more than Most

	found []schemas.Prompt
}

// Add takes a page. The error is always nil.
func (n *Newest) Add(page []schemas.Prompt) error {
	for i := range page {
		if page[i].Decision != nil && (n.Keep == nil || n.Keep(&page[i])) {
			n.found = append(n.found, page[i])
		}
	}
	slices.SortStableFunc(n.found, func(a, b schemas.Prompt) int { return b.Decision.DecidedAt.Compare(a.Decision.DecidedAt) })
	if len(n.found) > n.Most {
		n.found, n.More = slices.Clip(n.found[:n.Most]), true
	}
	return nil
}

// Prompts returns the kept requests, the newest decision first.
func (n *Newest) Prompts() []schemas.Prompt { return n.found }
