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

// Words writes d exactly to the second, in the largest unit of which it is a whole number
// above one: "7 days", "60 minutes", "60 seconds", "1 second". A negative d is "0
// seconds".
func Words(d time.Duration) string {
	d = max(0, d.Round(time.Second))
	for _, u := range units {
		if d >= 2*u.size && d%u.size == 0 {
			return count(int(d/u.size), u.name)
		}
	}
	return count(int(d/time.Second), "second")
}

// Minutes is Words, but in minutes if they are whole, the unit in which permissions are
// requested: "120 minutes".
func Minutes(d time.Duration) string {
	if d = d.Round(time.Second); d >= time.Minute && d%time.Minute == 0 {
		return count(int(d/time.Minute), "minute")
	}
	return Words(d)
}

// Roughly writes d in the largest unit of which it holds more than one, rounded down, so
// that it never promises more time than is left: "6 days", "25 hours", "90 seconds".
func Roughly(d time.Duration) string {
	for _, u := range units {
		if d >= 2*u.size {
			return count(int(d/u.size), u.name)
		}
	}
	return count(int(max(0, d)/time.Second), "second")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
