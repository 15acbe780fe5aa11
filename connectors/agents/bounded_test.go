package agents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents"
)

func TestAFullMapIsEmptied(t *testing.T) {
	m := map[int]bool{}
	for i := range agents.MaxKept {
		agents.PutBounded(m, i, false)
	}
	agents.PutBounded(m, 7, true)
	assert.Len(t, m, agents.MaxKept, "a known key needs no room")
	assert.True(t, m[7])
	agents.PutBounded(m, -1, true)
	assert.Equal(t, map[int]bool{-1: true}, m)
}
