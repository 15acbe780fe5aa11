package people

import (
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// shortDuration formats d as schemas.Roughly does, but with the first letter of the unit, such as "6
// d", "25 h" or "48 s".
func shortDuration(d time.Duration) string {
	n, unit, _ := strings.Cut(schemas.FormatRoughly(d), " ")
	return n + " " + unit[:1]
}
