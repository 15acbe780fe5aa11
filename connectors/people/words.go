package people

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// shortDuration formats d as schemas.Roughly does, with the unit's first letter: "6 d",
// "25 h", "48 s".
func shortDuration(d time.Duration) string {
	n, unit, _ := strings.Cut(schemas.FormatRoughly(d), " ")
	return n + " " + unit[:1]
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
