package people_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
)

func TestAMemoryKeepsItsNewestEntries(t *testing.T) {
	t.Parallel()
	m := people.NewMemory()
	m.Put("again", "old")
	m.Remove("again")
	m.Remove("again")
	require.Empty(t, m.Get("again"))
	m.Put("oldest", "1")
	m.Put("again", "new")
	for i := range 19_999 {
		m.Put(strconv.Itoa(i), "x")
	}
	require.Empty(t, m.Get("oldest"))
	require.Equal(t, "new", m.Get("again"), "an entry that is put again after its removal is a new one")
	require.Equal(t, "x", m.Get("0"))
}
