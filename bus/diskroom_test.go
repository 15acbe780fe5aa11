package bus

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeDisk is a disk with 160 units of room and a reserve of 10 units.
type fakeDisk struct {
	room *diskRoom
	used uint64 // the room that other programs use
	full bool   // allocations fail, as under a quota
}

const fakeTotal, fakeReserve = 160, 10

func newFakeDisk(t *testing.T, used uint64) *fakeDisk {
	d := &fakeDisk{used: used}
	d.room = &diskRoom{dir: t.TempDir(), size: fakeReserve, log: slog.New(slog.DiscardHandler), measure: d.measure, allocate: d.allocate}
	d.room.update()
	return d
}

func (d *fakeDisk) measure(string) (free, total uint64, err error) {
	used := d.used
	if d.reserved() {
		used += fakeReserve
	}
	return fakeTotal - min(used, fakeTotal), fakeTotal, nil
}

func (d *fakeDisk) reserved() bool {
	_, err := os.Stat(d.room.path())
	return err == nil
}

func (d *fakeDisk) allocate(path string, _ uint64) error {
	if d.full {
		return errors.New("quota exceeded")
	}
	return os.WriteFile(path, nil, 0o600)
}

// refuses reports whether new requests are refused while other programs use this much room.
func (d *fakeDisk) refuses(used uint64) bool {
	d.used = used
	d.room.checked = time.Time{}
	return d.room.look() != nil
}

// If less room is free than the reserve's size, requests are refused. Only a full disk makes nod remove
// the reserve. The reserve is allocated again once there is room for requests beside it.
func TestTheReserveIsGivenUpAndTakenBack(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(t, 0)
	require.True(t, d.reserved())
	assert.False(t, d.refuses(140), "10 are free")
	assert.True(t, d.refuses(141), "9 are free")
	assert.True(t, d.reserved())
	assert.True(t, d.refuses(139), "11 are free: it does not alternate")
	assert.False(t, d.refuses(138))
	require.True(t, d.refuses(150), "none is free")
	assert.False(t, d.reserved(), "decisions use the reserve")
	require.True(t, d.refuses(139), "21 are free, too little for the reserve and requests")
	assert.False(t, d.reserved())
	require.False(t, d.refuses(138))
	assert.True(t, d.reserved())
}

// A server that starts on a full disk removes an earlier server's reserve and uses its room.
func TestAStartOnAFullDiskUsesTheReserve(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(t, 0)
	d.used = 150
	later := &diskRoom{dir: d.room.dir, size: fakeReserve, log: d.room.log, measure: d.measure, allocate: d.allocate, held: true}
	later.update()
	require.ErrorIs(t, later.low, ErrFull)
	require.False(t, d.reserved())
}

// After a failed write for lack of room, the reserve is free for the next server. If a new reserve cannot
// be allocated, for example because of a quota, requests are refused.
func TestAFailedWriteFreesTheReserve(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(t, 0)
	d.full = true
	d.room.giveUp()
	require.False(t, d.reserved())
	require.True(t, d.refuses(0))
	require.ErrorContains(t, d.room.low, "(quota exceeded)")
	d.full = false
	require.False(t, d.refuses(0))
}

// If the system cannot allocate a reserve, the free room alone decides whether requests are refused.
func TestWithoutAReserveTheFreeRoomCounts(t *testing.T) {
	t.Parallel()
	d := newFakeDisk(t, 0)
	require.NoError(t, os.Remove(d.room.path()))
	d.room.held, d.room.allocate = false, func(string, uint64) error { return errors.ErrUnsupported }
	require.False(t, d.refuses(0))
	require.False(t, d.refuses(150), "10 are free")
	require.True(t, d.refuses(151))
	require.True(t, d.refuses(149), "11 are free: it does not alternate")
	require.False(t, d.refuses(148))
}

// A closed server leaves the reserve as it is, because its directory may be used by another server.
func TestAClosedServerLeavesTheReserve(t *testing.T) {
	d := newFakeDisk(t, 0)
	d.room.start()
	d.room.close()
	d.refuses(150)
	require.True(t, d.reserved())
}
