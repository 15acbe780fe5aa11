package tools

import (
	"slices"
	"strings"
	"unicode"
)

// graveVerbs are verbs for acts that nobody can undo.
var graveVerbs = strings.Fields("delete remove drop destroy purge truncate terminate refund pay charge transfer withdraw send publish")

// openVerbs are words in the names of tools that run a given command or code, read secrets, or act on another
// system. nod offers no lasting answer for such a tool, because nod cannot limit the tool's effect.
var openVerbs = strings.Fields("execute exec run eval evaluate shell bash command commands cmd terminal console process spawn script code sql query python node repl sudo " +
	"install uninstall deploy secret secrets credential credentials password token env fetch navigate click type press")

// changeVerbs are verbs for acts that change something or tell it to others.
var changeVerbs = strings.Fields("put set add upload push post reply comment email invite share submit merge move rename copy reset clear clean kill stop start restart shutdown apply revoke grant approve " +
	"create insert write edit update upsert modify change replace append patch save store import sync trigger dispatch invoke call perform cancel close archive restore rollback " +
	"erase wipe unlink destruct enable disable assign order book transact commit rebase lock unlock rotate alter mutate")

// readVerbs are the verbs with which the name of a tool that only reads begins.
var readVerbs = strings.Fields("get list read search find view show describe count lookup")

// GraveVerb returns a verb of graveVerbs that is a word in a tool's name, or "". For example, refund is a
// word in mcp__stripe__create_refund and in createRefund. The name proves nothing about the tool. nod
// asks about every unknown tool, and a grave verb only raises the risk.
func GraveVerb(name string) string {
	for _, w := range wordsOf(name) {
		if slices.Contains(graveVerbs, w) {
			return w
		}
	}
	return ""
}

// Rememberable reports whether an answer for a tool that nod does not know may cover later calls of the
// tool with other inputs. The tool must belong to an MCP server. The tool's name must begin with a verb for
// reading, and have no word for running, changing or telling something.
func Rememberable(name string) bool {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
	}
	if !strings.HasPrefix(name, "mcp__") || !ok || server == "" || strings.TrimFunc(name, plain) != "" {
		return false
	}
	words := wordsOf(tool)
	if len(words) > 1 && words[0] == "batch" {
		words = words[1:]
	}
	if len(words) == 0 || !slices.Contains(readVerbs, words[0]) || Acts(name) {
		return false
	}
	acting := slices.Concat(graveVerbs, changeVerbs)
	return !slices.ContainsFunc(wordsOf(name), func(w string) bool {
		return slices.Contains(openVerbs, w) || slices.ContainsFunc(acting, func(verb string) bool { return len(verb) > 3 && strings.HasPrefix(w, verb) })
	})
}

// Acts reports whether a name, such as deleteAll, has a word for an act that changes something or tells it to
// others, or for code that is run.
func Acts(name string) bool {
	return slices.ContainsFunc(wordsOf(name), func(w string) bool {
		return slices.Contains(graveVerbs, w) || slices.Contains(changeVerbs, w) || slices.Contains(codeWords, w)
	})
}

// codeWords are words in the input of a tool for code that is run.
var codeWords = strings.Fields("execute exec eval evaluate command cmd script sql shell expression statement")

// wordsOf returns the words in a name, in lower case.
func wordsOf(name string) []string {
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
	return strings.Fields(spaced.String())
}
