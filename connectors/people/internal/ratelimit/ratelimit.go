// Package ratelimit limits the rate of calls, for the in-memory services of the channels' tests.
package ratelimit

import "time"

// Limits contains the states of rate limits by key, such as a chat. A nil Limits cannot be used.
type Limits[K comparable] map[K]*bucket

// bucket contains the number of calls that were left at some time, and that time.
type bucket struct {
	left  float64
	since time.Time
}

// Spend counts a call with this key. A key allows burst calls at once, and then perSecond calls in a
// second. Spend returns 0 if the call is allowed. Otherwise it returns the seconds to wait, and the call
// does not count.
func (l Limits[K]) Spend(key K, burst, perSecond float64) (wait float64) {
	now := time.Now()
	b := l[key]
	if b == nil {
		b = &bucket{left: burst, since: now}
		l[key] = b
	}
	b.left = min(burst, b.left+now.Sub(b.since).Seconds()*perSecond)
	b.since = now
	if b.left < 1 {
		return (1 - b.left) / perSecond
	}
	b.left--
	return 0
}
