package people

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// FreezeTarget describes the target of a freeze: "any agent", "agent ada" or "session S".
func FreezeTarget(b *schemas.FreezeRequest) string { return cmp.Or(TargetArgs(b), "any agent") }

// TargetArgs returns the target as arguments of the freeze and thaw commands, such as "agent ada" or
// "session S". For all agents it returns "".
func TargetArgs(b *schemas.FreezeRequest) string {
	switch {
	case b.SessionID != "":
		return "session " + b.SessionID
	case b.Agent != "":
		return "agent " + b.Agent
	}
	return ""
}

// Laggards returns a warning with the names of the engines that have not confirmed the freeze. If all
// engines have confirmed it, the warning is empty.
func Laggards(f *schemas.FreezeState) string {
	if len(f.Laggards) == 0 {
		return ""
	}
	return Line("These engines have not confirmed the freeze and may still allow by a rule: " + strings.Join(f.Laggards, ", ") + ". See their logs.")
}

// Denials returns a text with the number of pending requests that a freeze has denied, such as "Open
// requests denied: 12". If nod is still denying requests, the text says so.
func Denials(f *schemas.FreezeState) string {
	text := fmt.Sprintf("Open requests denied: %d", f.Denied)
	if f.Unfinished {
		text += " so far; nod is denying the rest, and none of it can be allowed"
	}
	return text
}

// DescribeFreeze describes a freeze in one line, such as "every agent is frozen by Ann: too
// many deletions, since 2026-01-18 00:00 UTC".
func DescribeFreeze(z *schemas.Freeze) string {
	return Line(cmp.Or(TargetArgs(&schemas.FreezeRequest{Agent: z.Agent, SessionID: z.SessionID}), "every agent") + " is " + z.String() + ", since " + z.At.UTC().Format("2006-01-02 15:04 UTC"))
}
