package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// A span is a duration in a flag. It has Go's units, and d for days.
type span time.Duration

var days = lazyregexp.New(`^(\d{1,6})d(.*)$`)

// UnmarshalText reads "30m", "8h", "1d" or "1d12h".
func (s *span) UnmarshalText(text []byte) error {
	var total time.Duration
	rest := string(text)
	if m := days.FindStringSubmatch(rest); m != nil {
		n, _ := strconv.Atoi(m[1]) // the pattern matches at most six digits, so Atoi cannot fail
		total, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			rest = "0s"
		}
	}
	d, err := time.ParseDuration(rest)
	if total += d; err != nil || total <= 0 || d < 0 {
		return fmt.Errorf("%q is no length of time: write 30m, 8h or 1d", text)
	}
	*s = span(total)
	return nil
}
