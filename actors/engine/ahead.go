package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// scanAhead is the number of records that one scan reads, which fills several pages of a listing.
	// One scan per page would make a long listing slow, because a server with many records starts a
	// scan slowly.
	scanAhead = 16384
	// aheadFor is how long the records of a scan are kept for the next pages.
	aheadFor = 10 * time.Second
	// maxAhead bounds the number of cached listings. At the bound the cache is emptied, and the
	// next pages are scanned again.
	maxAhead = 8
)

type listing struct {
	session string // the empty string means all sessions
	decided bool
}

// scanCache keeps the records that a scan found beyond its page. Pages from the cache miss no record,
// because a record that changes later gets a higher revision, and the next scan finds it. A cached
// record is read again before it is listed, because it may have changed.
type scanCache struct {
	mu sync.Mutex
	by map[listing]aheadScan
}

// aheadScan holds the records that a scan of a listing found, in the order of their revisions. The scan
// began at the revision in the field after.
type aheadScan struct {
	after uint64
	found []bus.ScannedRecord
	until time.Time
}

// page returns cached records of a listing, at most as many as the parameter limit says. All of them
// have revisions greater than the parameter after. If the result more is false, the cache has no
// further records, and the caller must scan the store.
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

// keep caches the records that a scan of a listing found. The parameter after is the revision at
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
