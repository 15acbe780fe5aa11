package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

type op string

const (
	opAsk      op = "ask"      // an agent asks; the result is a receipt, a decision or an error
	opHear     op = "hear"     // an asker waits; the result is the decision
	opAnswer   op = "answer"   // an approver answers
	opWithdraw op = "withdraw" // an agent withdraws a request
	opDetach   op = "detach"   // an agent stops waiting, and its call stays open
	opRevoke   op = "revoke"   // an approver revokes a standing answer
	opFreeze   op = "freeze"
	opThaw     op = "thaw"
	opShow     op = "show"  // an approver reads a request
	opView     op = "view"  // a viewer shows a version of a request
	opPress    op = "press" // an approver presses a button on the phone; the event has no result
)

// event is one action of an agent or an approver, with the action's result. Call is the time at which the
// action began, and Return the time at which it ended. Both times count from the start of the history, on the
// monotonic clock of the test.
type event struct {
	Op      op
	Story   string // the kind and the number of the event's story
	Session string
	ID      string
	Who     string // for an agent, its connection; for an approver, the name
	Call    time.Duration
	Return  time.Duration // if the action did not return, this is the constant never

	Pending  bool // true if the result says that the request is pending
	Deadline time.Time
	Decision *schemas.Decision
	Err      error

	Group   string // the group of the call; identical calls, and all calls that one standing answer covers, are one group
	Option  string
	Scope   schemas.Scope
	Waiters int    // the number of calls that the answered prompt counted; at least 1
	Grant   string // the id of the standing answer to revoke
	Lags    bool   // true if some engines have not confirmed the freeze
}

// never is the Return of an event whose action did not return.
const never = time.Duration(1<<63 - 1)

func (e *event) key() string { return schemas.Key(e.Session, e.ID) }

// refused returns the error by which nod refused the action, or nil.
func (e *event) refused() *schemas.Error {
	var refused *schemas.Error
	errors.As(e.Err, &refused)
	return refused
}

// The method told returns the decision in the event's result or error. It returns nil if there is none.
func (e *event) told() *schemas.Decision {
	if e.Decision != nil {
		return e.Decision
	}
	if refused := e.refused(); refused != nil {
		return refused.Decision()
	}
	return nil
}

// The method about reports whether the event, or its decision, is about a request.
func (e *event) about(key string) bool {
	d := e.told()
	return e.ID != "" && e.key() == key || d != nil && schemas.Key(d.SessionID, d.PendingID) == key
}

// unknown reports whether the outcome of the event is unknown, because the action did not return, nod was
// unavailable, or nod did not reply in time. The outcome of a press of a button is always unknown.
func (e *event) unknown() bool {
	if e.Return == never || e.Op == opPress {
		return true
	}
	if e.Err == nil {
		return false
	}
	refused := e.refused()
	return refused == nil || refused.Code == schemas.CodeUnavailable || refused.Code == schemas.CodeInternal
}

func (e *event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.4f ", e.Call.Seconds())
	if e.Return == never {
		b.WriteString("      -    ")
	} else {
		fmt.Fprintf(&b, "%10.4f ", e.Return.Seconds())
	}
	fmt.Fprintf(&b, "%-8s %-12s %-6s %s", e.Op, e.Story, e.Who, e.key())
	if e.Option != "" {
		fmt.Fprintf(&b, " %s %s for %d", e.Option, e.Scope, e.Waiters)
	}
	if e.Grant != "" {
		fmt.Fprintf(&b, " grant %s", e.Grant)
	}
	if e.Lags {
		b.WriteString(" with laggards")
	}
	switch d := e.Decision; {
	case d != nil:
		fmt.Fprintf(&b, " → %s", words(d))
	case e.Pending:
		b.WriteString(" → open")
	case e.Err != nil:
		fmt.Fprintf(&b, " → error: %v", e.Err)
		if d := e.told(); d != nil {
			fmt.Fprintf(&b, ": %s", words(d))
		}
	}
	return b.String()
}

func words(d *schemas.Decision) string {
	return fmt.Sprintf("%s by %s %q (%s of %s)", d.Outcome, d.By.Kind, cmp.Or(d.By.Name, d.Message), d.DecisionID, d.PendingID)
}

// history collects events. It is safe for concurrent use.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []*event
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

// The method begin records the start of an event and returns a function that records its end. An event whose
// end is not recorded stays in the history without a Return.
func (h *history) begin(e event) (end func(change func(*event))) {
	e.Call, e.Return = h.now(), never
	kept := &e
	h.mu.Lock()
	h.events = append(h.events, kept)
	h.mu.Unlock()
	return func(change func(*event)) {
		at := h.now()
		h.mu.Lock()
		defer h.mu.Unlock()
		kept.Return = at
		change(kept)
	}
}

func (h *history) sorted() []*event {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*event, len(h.events))
	for i, e := range h.events {
		kept := *e
		all[i] = &kept
	}
	slices.SortStableFunc(all, func(a, b *event) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// span is the time of one fault, from its begin to its end.
type span struct {
	Name       string
	Begin, End time.Duration
}

func (s span) String() string {
	return fmt.Sprintf("%10.4f %10.4f fault    %s", s.Begin.Seconds(), s.End.Seconds(), s.Name)
}
