package schemas

import (
	"fmt"
	"time"
)

var units = []struct {
	name string
	size time.Duration
}{
	{"day", 24 * time.Hour},
	{"hour", time.Hour},
	{"minute", time.Minute},
	{"second", time.Second},
}

// FormatDuration writes d, rounded to seconds, as a whole number of units. It uses the largest unit
// that divides d without a rest and of which d has at least 2: "7 days", "60 minutes", "60 seconds".
// One second is "1 second", and a negative d is "0 seconds".
func FormatDuration(d time.Duration) string {
	d = max(0, d.Round(time.Second))
	for _, u := range units {
		if d >= 2*u.size && d%u.size == 0 {
			return Count(int(d/u.size), u.name)
		}
	}
	return Count(int(d/time.Second), "second")
}

// FormatMinutes writes whole minutes as minutes ("120 minutes"), because permission requests state their
// timeout in minutes. It writes other durations as FormatDuration does.
func FormatMinutes(d time.Duration) string {
	if d = d.Round(time.Second); d >= time.Minute && d%time.Minute == 0 {
		return Count(int(d/time.Minute), "minute")
	}
	return FormatDuration(d)
}

// FormatRoughly writes a remaining time in the largest unit of which d has at least 2, rounded down: "6
// days", "25 hours", "90 seconds". It rounds up if less than a 24th of a unit is missing, so that a new
// question still has "7 days".
func FormatRoughly(d time.Duration) string {
	for _, u := range units {
		if whole := d + u.size/24; whole >= 2*u.size {
			return Count(int(whole/u.size), u.name)
		}
	}
	return Count(int(max(0, d)/time.Second), "second")
}

// Count returns a number with its noun, such as "1 file" or "2 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
