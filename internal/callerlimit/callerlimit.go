// Package callerlimit limits the rate of calls of each caller, in bounded memory.
package callerlimit

import (
	"maps"
	"sync"

	"golang.org/x/time/rate"
)

// Limits gives each caller a separate rate limit, so that a caller with too many calls does not block
// others. It is safe for concurrent use.
type Limits struct {
	perSecond rate.Limit
	burst     int
	most      int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	rest    *rate.Limiter
}

// New returns limits that allow each caller burst calls at once, and then perSecond calls a second.
// The parameter most is the greatest number of callers that have separate limits. All further callers
// share one limit.
func New(perSecond rate.Limit, burst, most int) *Limits {
	l := &Limits{most: most, callers: map[string]*rate.Limiter{}}
	l.Reset(perSecond, burst)
	return l
}

// Allow reports whether a caller may make a call now, and counts this call.
func (l *Limits) Allow(caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.callers[caller]
	if !known && len(l.callers) >= l.most { // drops idle callers, which lose nothing, because a new caller has the same allowance
		maps.DeleteFunc(l.callers, func(_ string, r *rate.Limiter) bool { return r.Tokens() >= float64(l.burst) })
	}
	switch {
	case known:
	case len(l.callers) >= l.most:
		r = l.rest
	default:
		r = rate.NewLimiter(l.perSecond, l.burst)
		l.callers[caller] = r
	}
	return r.Allow()
}

// Reset forgets all callers, and sets the limits of later callers.
func (l *Limits) Reset(perSecond rate.Limit, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perSecond, l.burst = perSecond, burst
	clear(l.callers)
	l.rest = rate.NewLimiter(perSecond, burst)
}

// Len returns the number of callers with separate limits.
func (l *Limits) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers)
}
