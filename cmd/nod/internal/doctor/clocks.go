package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
)

// clocks has, by the server's name, how far the clock of each server is ahead of this machine's clock. It has
// nil for a server whose clock could not be read.
type clocks map[string]*time.Duration

// ask reads the clock of the server of a connection.
func (c clocks) ask(ctx context.Context, conn *bus.Conn) {
	name := conn.ServerInfo().Name
	c[name] = nil
	if ahead, err := conn.ServerAhead(ctx); err == nil {
		c[name] = &ahead
	}
}

// findings compares the clocks of this machine and of the servers. If the clock of a server could not be read,
// and the server leads a store, findings takes the time from the state of the store.
func (c clocks) findings(stores []bus.StoreState) (found []Finding) {
	const check, do = "clocks", "have the machines' clocks set by the network (NTP)"
	for _, s := range stores {
		if s.ClockKnown && c[s.Leader] == nil {
			c[s.Leader] = &s.Ahead
		}
	}
	var known, unknown, off []string
	var first, last time.Duration // the difference of this machine to itself is 0
	for name, ahead := range c {
		name = people.Line(name)
		if ahead == nil {
			unknown = append(unknown, name)
			continue
		}
		known, first, last = append(known, name), min(first, *ahead), max(last, *ahead)
		if *ahead > clockNote {
			off = append(off, fmt.Sprintf("%s is %s ahead of this machine", name, ahead.Round(time.Second)))
		} else if *ahead < -clockNote {
			off = append(off, fmt.Sprintf("%s is %s behind this machine", name, -ahead.Round(time.Second)))
		}
	}
	slices.Sort(known)
	slices.Sort(unknown)
	slices.Sort(off)
	if len(unknown) > 0 {
		found = append(found, note(check, "the clocks of these servers cannot be read: "+strings.Join(unknown, ", "), "give the servers the new text of nod keys config, and use the key of an observer"))
	}
	if len(known) == 0 {
		return found
	}
	apart := max((last - first).Round(time.Millisecond), time.Millisecond)
	what := fmt.Sprintf("the clocks of this machine and of %s are at most %s apart", strings.Join(known, ", "), apart)
	if len(off) > 0 {
		what += ": " + strings.Join(off, "; ")
	}
	switch {
	case apart > clockWrong:
		return append(found, wrong(check, what, do))
	case apart > clockNote:
		return append(found, note(check, what, do))
	}
	return append(found, ok(check, what))
}
