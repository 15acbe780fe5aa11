package engine

import (
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryEndpointHasOneHandler(t *testing.T) {
	handled := map[[2]string]int{}
	for _, h := range newEngine(Options{}).handlers() {
		handled[[2]string{h.Verb, h.Op}]++
	}
	addresses := schemas.Addresses()
	require.Len(t, handled, len(addresses))
	for _, a := range addresses {
		assert.Equal(t, 1, handled[[2]string{a.Verb, a.Op}], "%s %s", a.Verb, a.Op)
	}
	for _, e := range newEngine(Options{}).endpoints() {
		assert.Contains(t, schemas.Verbs(), e.Verb)
	}
}

// Every function that afterReply has registered runs, the last one first, even if a function
// panics.
func TestAfterReplyRunsAllFunctions(t *testing.T) {
	var ran []int
	c := &caller{}
	c.afterReply(func() { ran = append(ran, 1) })
	c.afterReply(func() { ran = append(ran, 2); panic("2") })
	assert.Panics(t, c.replied)
	assert.Equal(t, []int{2, 1}, ran)
}
