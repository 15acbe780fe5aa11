package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// scanAhead is how many records the scan for a later page reads, to fill the following
	// pages as well. To begin a scan takes the server time in proportion to its records, so
	// a scan for each page would make the cost of a listing grow with its square.
	scanAhead = 16384
	// aheadFor is how long the result of a scan is kept for the next page.
	aheadFor = 10 * time.Second
	// maxAhead bounds the listings whose scans are kept; any may be forgotten.
	maxAhead = 8
)

// listing identifies the requests that a query lists.
type listing struct {
	session string // empty lists all sessions
	decided bool
}

// scanCache keeps the records that a scan has found beyond its page. Pages made from it
// are complete: a record that is written later gets a revision behind all of them, which
// the scan from the last one finds. As with any scan, a record may have changed since, so
// it is read before it is listed.
type scanCache struct {
	mu sync.Mutex
	by map[listing]aheadScan
}

// aheadScan are all records of a listing between two revisions, in order.
type aheadScan struct {
	after uint64
	found []bus.Found
	until time.Time
}

// page returns the cached records of a listing behind a revision, and whether there are
// more behind those. If there are no more, the caller has to scan on.
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

// keep caches the records that a scan has found behind a revision.
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
