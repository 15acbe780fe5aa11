package tools

import (
	"slices"
	"strings"
	"unicode"
)

// graveVerbs are verbs for acts that nobody can undo.
var graveVerbs = strings.Fields("delete remove drop destroy purge truncate terminate refund pay charge transfer withdraw send publish")

// openVerbs are words of tools that run what they are told, or act on another system. An answer that
// lasts cannot bound such a tool.
var openVerbs = strings.Fields("execute exec run eval evaluate shell bash command commands cmd terminal console process spawn script code sql query python node repl sudo " +
	"install uninstall deploy upload push merge move rename reset clear clean kill stop restart shutdown apply revoke grant approve invite secret secrets credential credentials password token env")

// GraveVerb returns a verb of graveVerbs that is a word in a tool's name, or "". For example, refund is a
// word in mcp__stripe__create_refund and in createRefund. The name proves nothing about the tool. nod
// asks about every unknown tool, and a grave verb only raises the risk.
func GraveVerb(name string) string { return verbIn(name, graveVerbs) }

// Rememberable reports whether an answer for a tool that nod does not know may cover later calls of the
// tool with other inputs. The tool must belong to an MCP server, and its name must not say that it runs
// what it is told, or does what nobody can undo.
func Rememberable(name string) bool {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
	}
	return strings.HasPrefix(name, "mcp__") && ok && server != "" && tool != "" && strings.TrimFunc(name, plain) == "" &&
		GraveVerb(name) == "" && verbIn(name, openVerbs) == ""
}

// verbIn returns the first word in a tool's name that the list has, or "".
func verbIn(name string, list []string) string {
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
		if slices.Contains(list, w) {
			return w
		}
	}
	return ""
}
