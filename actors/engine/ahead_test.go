package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
)

func foundAt(revisions ...uint64) (found []bus.ScannedRecord) {
	for _, r := range revisions {
		found = append(found, bus.ScannedRecord{Revision: r})
	}
	return found
}

// For the time aheadFor, the cached records of a scan fill the next pages of the same listing. Beyond
// the last cached record, the cache reports no more records, although the store may have some.
func TestPagesAreFilledFromACachedScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a scanCache
		all := listing{}
		a.keep(all, 10, foundAt(11, 13, 17, 19))
		page := func(after uint64, limit int, wantMore bool, want ...uint64) {
			t.Helper()
			got, more := a.page(all, after, limit)
			require.Equal(t, wantMore, more)
			require.ElementsMatch(t, foundAt(want...), got)
		}
		page(10, 2, true, 11, 13)
		page(13, 1, true, 17)
		page(12, 2, true, 13, 17) // the previous page had no room left for record 13
		page(13, 2, false, 17, 19)
		page(19, 2, false)
		page(20, 2, false) // the page begins after the last cached record
		page(9, 2, false)  // the page begins before the start of the scan
		for _, other := range []listing{{session: "S"}, {decided: true}} {
			got, more := a.page(other, 10, 2)
			require.Empty(t, got)
			require.False(t, more)
		}
		time.Sleep(aheadFor)
		page(10, 2, false)
		a.keep(listing{session: "S"}, 1, foundAt(2))
		require.Len(t, a.by, 1)
		for i := range 2 * maxAhead {
			a.keep(listing{session: string(rune('a' + i))}, 1, foundAt(2))
			require.LessOrEqual(t, len(a.by), maxAhead)
		}
	})
}
