package tools

import (
	"slices"
	"strings"
	"unicode"
)

// graveVerbs are verbs for acts that nobody can undo.
var graveVerbs = strings.Fields("delete remove drop destroy purge truncate terminate refund pay charge transfer withdraw send publish")

// GraveVerb returns a verb of graveVerbs that is a word in a tool's name, or "". For example, refund is a
// word in mcp__stripe__create_refund and in createRefund. The name proves nothing about the tool. nod
// asks about every unknown tool, and a grave verb only raises the risk.
func GraveVerb(name string) string {
	var spaced strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r) && lower:
			spaced.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		spaced.WriteRune(unicode.ToLower(r))
	}
	for w := range strings.FieldsSeq(spaced.String()) {
		if slices.Contains(graveVerbs, w) {
			return w
		}
	}
	return ""
}
