package web

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/nodbus/nod/schemas"
)

// pendingRow is what the inbox keeps in memory about a pending request. It suffices for the request's
// position in the list. The inbox reads the request itself from nod when a client needs it, so memory
// does not grow with the content of requests that no client looks at.
type pendingRow struct {
	key     string // the request's key; it begins with the session
	created int64  // the request's creation, in nanoseconds since 1970
	ended   bool
}

func rowOf(p *schemas.Prompt) *pendingRow {
	return &pendingRow{key: p.Key(), created: p.Request.CreatedAt.UnixNano()}
}

func (r *pendingRow) session() string {
	session, _ := schemas.SplitKey(r.key)
	return session
}

// cursor returns the row's position in the list as a text. Later rows have greater texts.
func (r *pendingRow) cursor() string { return fmt.Sprintf("%020d.%s", r.created, r.key) }

func compareRows(a, b *pendingRow) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key))
}

// pendingList contains the pending requests. Their order is oldest first.
type pendingList struct {
	rows     map[string]*pendingRow // the rows by request key
	order    []*pendingRow          // the rows, sorted by age unless unsorted is set, including rows of ended requests
	unsorted bool
}

// add adds a request, unless the list contains it, and returns its row.
func (l *pendingList) add(p *schemas.Prompt) *pendingRow {
	r := rowOf(p)
	if listed := l.rows[r.key]; listed != nil {
		return listed
	}
	if l.rows == nil {
		l.rows = map[string]*pendingRow{}
	}
	if n := len(l.order); n > 0 && compareRows(l.order[n-1], r) > 0 {
		l.unsorted = true
	}
	l.rows[r.key], l.order = r, append(l.order, r)
	return r
}

// remove removes a request that has ended. The slice order keeps the
// rows of ended requests until there are many, so that each call is cheap on average.
func (l *pendingList) remove(key string) {
	r := l.rows[key]
	if r == nil {
		return
	}
	r.ended = true
	delete(l.rows, key)
	if len(l.order) > 2*len(l.rows)+64 {
		l.order = slices.Clip(slices.DeleteFunc(l.order, func(r *pendingRow) bool { return r.ended }))
	}
}

// after returns, oldest first, the rows whose cursor is greater than the parameter cursor and for which
// the function fits returns true. If session is not empty, it returns only rows of that session. It
// returns at most limit rows, or all rows if limit is 0. The result more reports whether there are
// further rows.
func (l *pendingList) after(cursor, session string, limit int, fits func(*pendingRow) bool) (rows []*pendingRow, more bool) {
	if l.unsorted {
		slices.SortFunc(l.order, compareRows)
		l.unsorted = false
	}
	first := 0
	if cursor != "" {
		first = sort.Search(len(l.order), func(i int) bool { return l.order[i].cursor() > cursor })
	}
	for _, r := range l.order[first:] {
		if r.ended || session != "" && r.session() != session || !fits(r) {
			continue
		}
		if limit > 0 && len(rows) == limit {
			return rows, true
		}
		rows = append(rows, r)
	}
	return rows, false
}

func anyRow(*pendingRow) bool { return true }
