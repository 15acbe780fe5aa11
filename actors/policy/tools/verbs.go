package tools

import (
	"slices"
	"strings"
	"unicode"
)

// graveVerbs name acts that cannot be undone.
var graveVerbs = strings.Fields("delete remove drop destroy purge truncate terminate refund pay charge transfer withdraw send publish")

// GraveVerb returns the verb of graveVerbs that a tool's name contains as a word of its own, as refund in
// mcp__stripe__create_refund or in createRefund; else "". The name proves nothing about the tool: nod
// asks about an unknown tool in any case, and the verb only raises the risk.
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
