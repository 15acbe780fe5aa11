package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// scanAhead is how many records a scan for any page but the first reads, to fill the
	// following pages as well. The time that the server needs to begin a scan grows with
	// the number of stored records. With one scan per page, the cost of a listing would
	// therefore grow with the square of its length.
	scanAhead = 16384
	// aheadFor is how long the result of a scan is kept for the following pages.
	aheadFor = 10 * time.Second
	// maxAhead bounds the number of listings in the cache. At the bound the cache is
	// emptied; the next pages are then scanned again.
	maxAhead = 8
)

// listing identifies the requests that a query lists.
type listing struct {
	session string // the session; empty means all sessions
	decided bool
}

// scanCache keeps the records that a scan has found beyond its page. Pages made from the
// cache miss no record: a record that is written later gets a higher revision than all
// cached ones, so the scan after the last cached record finds it. As after any scan, a
// record may have changed since, so it is read before it is listed.
type scanCache struct {
	mu sync.Mutex
	by map[listing]aheadScan
}

// aheadScan holds all records of a listing that a scan has found, in the order of their
// revisions. after is the revision at which the scan began.
type aheadScan struct {
	after uint64
	found []bus.ScannedRecord
	until time.Time
}

// page returns up to limit cached records of a listing with a revision above after. If more
// is false, the cache has no further records, and the caller must scan the store for them.
func (a *scanCache) page(l listing, after uint64, limit int) (page []bus.ScannedRecord, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	scan, ok := a.by[l]
	if !ok || after < scan.after || !time.Now().Before(scan.until) {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(scan.found, after+1, func(r bus.ScannedRecord, revision uint64) int {
		return cmp.Compare(r.Revision, revision)
	})
	rest := scan.found[first:]
	n := min(limit, len(rest))
	return slices.Clone(rest[:n]), len(rest) > n
}

// keep caches found, the records of a listing that a scan has found. after is the revision at
// which the scan began.
func (a *scanCache) keep(l listing, after uint64, found []bus.ScannedRecord) {
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
