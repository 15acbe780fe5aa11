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

// writeVerbs are verbs for acts that change something and that a later act can change back.
var writeVerbs = strings.Fields("put set add create insert write edit update upsert modify change replace append patch save store")

// tellVerbs are verbs for acts that tell something to others, or that change more than the thing they name.
var tellVerbs = strings.Fields("upload push post reply comment email invite share submit merge move rename copy reset clear clean kill stop start restart shutdown apply revoke grant approve " +
	"import sync trigger dispatch invoke call perform cancel close archive restore rollback " +
	"erase wipe unlink destruct enable disable assign order book transact commit rebase lock unlock rotate alter mutate")

// startVerbs are words that tell a tool to do more than write a file: to run or install something, or to show
// the file to others.
var startVerbs = strings.Fields("run launch spawn install uninstall deploy notify announce broadcast transmit deliver forward fax print buy purchase sell donate checkout sign wire public")

// graveThings are words for things whose change has effects beyond one file.
var graveThings = strings.Fields("payment payments invoice invoices bank billing money permission permissions acl mode attendee contact contacts profile dns domain config settings setting " +
	"dependency dependencies package packages key keys clipboard")

// changeVerbs are verbs for acts that change something or tell it to others.
var changeVerbs = slices.Concat(writeVerbs, tellVerbs)

// otherSystems are words for services, and for things in services that other people see. A file of this machine
// is no such thing.
var otherSystems = strings.Fields("remote cloud host hostname server url uri endpoint http https web browser ssh sftp ftp s3 aws gcp azure bucket container docker pod kubernetes k8s namespace cluster vm device " +
	"database db table postgres mysql sqlite mongo redis github gitlab bitbucket repo repos repository repositories owner org organization organisation branch release tag gist issue issues ticket tickets pull pr " +
	"jira confluence notion linear asana trello slack discord telegram whatsapp teams channel message thread gmail mail calendar event drive dropbox sharepoint figma wordpress stripe account workspace tenant " +
	"team user users member recipient recipients to cc bcc page pages site webhook tweet phone audience visibility printer")

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
	if !OfServer(name) {
		return false
	}
	_, tool, _ := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	words := wordsOf(tool)
	if len(words) > 1 && words[0] == "batch" {
		words = words[1:]
	}
	if len(words) == 0 || !slices.Contains(readVerbs, words[0]) || Acts(name) {
		return false
	}
	return !slices.ContainsFunc(wordsOf(name), func(w string) bool {
		return slices.Contains(openVerbs, w) || begins(w, graveVerbs) || begins(w, changeVerbs)
	})
}

// begins reports whether a word begins with one of the verbs, as in deletes and deleteall.
func begins(w string, verbs []string) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool { return len(verb) > 3 && strings.HasPrefix(w, verb) })
}

// UnboundWord returns a word in the name of an MCP server's tool that keeps every answer, even one for a
// session, from covering later calls with other inputs. Such a word says that the tool runs a given command
// or code, does something that cannot be undone, tells something to others, or acts on another system. If the
// name has no such word, UnboundWord returns "". The name proves nothing about the tool.
func UnboundWord(name string) string {
	words := wordsOf(strings.TrimPrefix(name, "mcp__"))
	i := slices.IndexFunc(words, func(w string) bool {
		return slices.Contains(openVerbs, w) || slices.Contains(codeWords, w) || slices.Contains(graveVerbs, w) || slices.Contains(tellVerbs, w) || slices.Contains(otherSystems, w) ||
			slices.Contains(startVerbs, w) || slices.Contains(graveThings, w) || begins(w, graveVerbs) || begins(w, tellVerbs) || begins(w, openVerbs)
	})
	if i < 0 {
		return ""
	}
	return words[i]
}

// Writes reports whether a tool's name has a word for writing a file. Such a name says what the tool does.
func Writes(name string) bool {
	return slices.ContainsFunc(wordsOf(name), func(w string) bool { return slices.Contains(writeVerbs, w) || w == "design" || w == "draw" })
}

// UnboundField reports whether the name of an input's field says that the field names something on another system,
// or an act that nod cannot limit.
func UnboundField(field string) bool {
	return slices.ContainsFunc(wordsOf(field), func(w string) bool {
		return slices.Contains(otherSystems, w) || begins(w, graveVerbs) || slices.Contains(startVerbs, w)
	})
}

// UnboundValue reports whether a value in an input is a flag of a command, or one word for an act that nod cannot
// limit.
func UnboundValue(value string) bool {
	return strings.HasPrefix(value, "--") || len(value) < 40 && !strings.ContainsAny(value, " /.") && slices.ContainsFunc(wordsOf(value), func(w string) bool { return slices.Contains(startVerbs, w) })
}

// NamesPath reports whether the name of an input's field says that the field names a file or a directory.
func NamesPath(field string) bool {
	return slices.ContainsFunc(wordsOf(field), func(w string) bool { return slices.Contains(pathWords, w) })
}

var pathWords = strings.Fields("path paths filepath file files filename filenames dir directory directories folder folders root dest destination target targets source sources src output out")

// OfServer reports whether a name is that of a tool of an MCP server, in plain letters.
func OfServer(name string) bool {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
	}
	return strings.HasPrefix(name, "mcp__") && ok && server != "" && len(wordsOf(tool)) > 0 && strings.TrimFunc(name, plain) == ""
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
