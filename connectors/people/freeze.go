package people

import "github.com/nodbus/nod/schemas"

// Frozen is a freeze in a line: "any agent is frozen by Ann: too many deletions,
// since 2026-01-18 00:00 UTC".
func Frozen(z *schemas.Freeze) string {
	what := "any agent"
	switch {
	case z.SessionID != "":
		what = "session " + z.SessionID
	case z.Agent != "":
		what = "agent " + z.Agent
	}
	return Line(what + " is " + z.String() + ", since " + z.At.UTC().Format("2006-01-02 15:04 UTC"))
}
