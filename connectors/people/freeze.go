package people

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Whose is whom a brake is about: "any agent", "agent ada", "session S".
func Whose(b *schemas.FreezeRequest) string { return cmp.Or(Named(b), "any agent") }

// Named is what a brake names, as commands take it: "agent ada", "session S", or
// nothing for everything.
func Named(b *schemas.FreezeRequest) string {
	switch {
	case b.SessionID != "":
		return "session " + b.SessionID
	case b.Agent != "":
		return "agent " + b.Agent
	}
	return ""
}

// Laggards says which engines may not obey a freeze yet, or nothing where all do.
func Laggards(f *schemas.FreezeState) string {
	if len(f.Laggards) == 0 {
		return ""
	}
	return Line("These engines have not said that they obey, and may still allow by a rule: " + strings.Join(f.Laggards, ", ") + ". See their logs.")
}

// Denials says how many open requests a freeze has denied: "Open requests denied:
// 12", and that there are more if it goes on.
func Denials(f *schemas.FreezeState) string {
	text := fmt.Sprintf("Open requests denied: %d", f.Denied)
	if f.Unfinished {
		text += " so far, and nod goes on with the rest, none of which can be allowed"
	}
	return text
}

// DescribeFreeze is a freeze in a line: "every agent is frozen by Ann: too many deletions,
// since 2026-01-18 00:00 UTC".
func DescribeFreeze(z *schemas.Freeze) string {
	return Line(cmp.Or(Named(&schemas.FreezeRequest{Agent: z.Agent, SessionID: z.SessionID}), "every agent") + " is " + z.String() + ", since " + z.At.UTC().Format("2006-01-02 15:04 UTC"))
}
