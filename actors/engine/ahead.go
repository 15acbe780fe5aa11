package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// scanAhead is how many records the scan of a later page reads, to know what is on
	// the pages behind it. To begin a scan takes the server as long as it has records, so that
	// a scan for each page would make a listing's cost the square of its length.
	scanAhead = 16384
	// aheadFor is how long they are kept for the next page.
	aheadFor = 10 * time.Second
	// maxAhead is how many listings they are kept of; any may be forgotten.
	maxAhead = 8
)

// listing names what a query lists.
type listing struct {
	session string // empty is all of them
	decided bool
}

// scanCache remembers what scans have found beyond the page they were for. A page
// made of it lacks nothing: a record that is stored or written later stands behind
// all that was found, where a scan that begins at the last of them finds it. As with
// any scan, a record may have changed since it was found: it is read before it is
// listed.
type scanCache struct {
	mu sync.Mutex
	by map[listing]aheadScan
}

// aheadScan is all that a listing has between two revisions, in their order.
type aheadScan struct {
	after uint64
	found []bus.Found
	until time.Time
}

// page is what a listing has behind a revision, as far as it is known, and whether it
// has more behind that. Without more, a scan must look for it.
func (a *scanCache) page(l listing, after uint64, limit int) (page []bus.Found, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	scan, ok := a.by[l]
	if !ok || after < scan.after || !time.Now().Before(scan.until) {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(scan.found, after+1, func(r bus.Found, revision uint64) int {
		return cmp.Compare(r.Revision, revision)
	})
	rest := scan.found[first:]
	n := min(limit, len(rest))
	return slices.Clone(rest[:n]), len(rest) > n
}

// keep remembers what a scan has found behind a revision.
func (a *scanCache) keep(l listing, after uint64, found []bus.Found) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for of, scan := range a.by {
		if !now.Before(scan.until) {
			delete(a.by, of)
		}
	}
	if a.by == nil || len(a.by) >= maxAhead {
		a.by = map[listing]aheadScan{}
	}
	a.by[l] = aheadScan{after, found, now.Add(aheadFor)}
}
