package connector

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type named struct {
	name string
	done *[]string
}

func (n named) Run(context.Context) { *n.done = append(*n.done, n.name) }
func (named) Failed(any)            {}

// The sessions of a recipient take turns, and the jobs of each session stay in order.
func TestARecipientsSessionsTakeTurns(t *testing.T) {
	t.Parallel()
	var ts turnQueue
	var done []string
	put := func(recipient, session string, n int) {
		ts.put(recipient, session, named{fmt.Sprint(recipient, session, n), &done})
	}
	run := func(recipient string) { (&turnJob{turns: &ts, recipient: recipient}).Run(t.Context()) }
	for n := range 100 {
		put("ann", "S", n)
	}
	run("ann")
	put("ann", "T", 0)
	put("ann", "T", 1)
	put("bob", "S", 0)
	for range 5 {
		run("ann")
	}
	run("bob")
	require.Equal(t, []string{"annS0", "annS1", "annT0", "annS2", "annT1", "annS3", "bobS0"}, done)
	for range 96 {
		run("ann")
	}
	require.Equal(t, "annS99", done[len(done)-1])
	require.Empty(t, ts.of)
	put("ann", "S", 100)
	run("ann")
	require.Equal(t, "annS100", done[len(done)-1])
}
