package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// The small languages inside commands, each as a closed grammar: a script outside the
// grammar asks.

// sedAddress is a line number, the last line, a step, or a plain expression. Brackets
// in an expression hold no delimiter: one sed would end the expression there, and
// another would not.
const sedAddress = `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\[\]\n]|\\[^\n]|\[\^?[A-Za-z0-9_., :-]+\])*/I?)`

var sedCommand = regexp.MustCompile(`^\s*(?:` + sedAddress + `(?:,\s*(?:` + sedAddress + `|[+~][0-9]+))?)?\s*!?\s*(?:[pdqQ=Pl]?)\s*$`)

var sedSubstitute = regexp.MustCompile(`^\s*(?:` + sedAddress + `(?:,\s*(?:` + sedAddress + `|[+~][0-9]+))?)?\s*!?\s*` +
	`s(?:/` + sedPart("/") + `/` + sedPart("/") + `/|\|` + sedPart(`|`) + `\|` + sedPart(`|`) + `\||#` + sedPart("#") + `#` + sedPart("#") + `#)[gpIi0-9]*\s*$`)

func sedPart(delim string) string {
	return `(?:[^\\\[\]\n` + regexp.QuoteMeta(delim) + `]|\\[^\n]|\[\^?[A-Za-z0-9_., :-]+\])*`
}

func checkSed(_ *commandLine, a *args) string {
	scripts := a.scripts()
	if len(scripts) == 0 {
		return "lacks its script"
	}
	for _, script := range scripts {
		if sedSubstitute.MatchString(script) {
			continue
		}
		for one := range strings.SplitSeq(script, ";") {
			if !sedCommand.MatchString(one) && !sedSubstitute.MatchString(one) {
				return "its script is more than addresses, p, d, q and plain s///"
			}
		}
	}
	return ""
}

// awkProgram prints fields of lines chosen by number or by a plain expression; it has
// no >, |, getline or call.
var awkProgram = regexp.MustCompile(`^\s*(?:` + awkCondition + `(?:\s*(?:&&|\|\|)\s*` + awkCondition + `)*)?\s*(?:\{\s*print(?:\s+` + awkItem + `(?:\s*,\s*` + awkItem + `|\s+` + awkItem + `)*)?\s*;?\s*\})?\s*$`)

const (
	awkCondition = `(?:N[RF]\s*(?:==|!=|<=|>=|<|>|%)\s*[0-9]+|!?/[A-Za-z0-9_ .,:;=^$*+-]*/|\$[0-9]+\s*(?:==|!=)\s*"[A-Za-z0-9_ .,:;=/-]*")`
	awkItem      = `(?:\$(?:[0-9]+|NF)|N[RF]|"[^"\\|\n]*")`
)

func checkAwk(_ *commandLine, a *args) string {
	if len(a.operands) == 0 || !awkProgram.MatchString(a.operands[0].Text) {
		return "its program is more than printing fields"
	}
	return ""
}

// jqReads matches filters that read the environment or a module.
var jqReads = regexp.MustCompile(`\benv\b|ENV|\bimport\b|\binclude\b|\bmodulemeta\b|\bget_search_list\b|\binput_filename\b`)

func checkJq(_ *commandLine, a *args) string {
	if len(a.operands) == 0 || jqReads.MatchString(a.operands[0].Text) {
		return "its filter may read the environment or other files"
	}
	return ""
}

// printfFormat is text with %s: other conversions evaluate arithmetic in Zsh, and a
// leading dash is a flag.
var printfFormat = regexp.MustCompile(`^(?:[^%-]|%%|%-?[0-9]*s)(?:[^%]|%%|%-?[0-9]*s)*$`)

func checkPrintf(_ *commandLine, a *args) string {
	if len(a.operands) == 0 || len(a.flags) > 0 || a.operands[0].Glob || !printfFormat.MatchString(a.operands[0].Text) {
		return "its format is more than text and %s"
	}
	return ""
}

// checkGrep keeps a search of whole trees, which reads hidden files too, to files that
// hold no secrets, or to names and counts.
func checkGrep(line *commandLine, a *args) string {
	paths := a.paths()
	if trees := a.has("r", "R", "recursive", "dereference-recursive"); (trees || len(paths) > 0) && line.searchesPrivate(paths) {
		return "searches a directory in which secrets lie"
	}
	if !a.has("r", "R", "recursive", "dereference-recursive") || a.has("l", "L", "c", "q", "files-with-matches", "files-without-match", "count", "quiet", "silent") {
		return ""
	}
	included := false
	for _, f := range a.flags {
		switch {
		case f.name == "exclude" && !included:
			return "searches every file except the excluded ones: put --include first"
		case f.name == "include":
			if included = true; line.pol.secrets.MayPass(f.value, true) {
				return "searches files that may hold secrets"
			}
		}
	}
	if included {
		return ""
	}
	for _, p := range paths {
		if !namesFile(p) {
			return "searches whole directories, in which secrets such as .env may lie: --include, -l or rg bounds it"
		}
	}
	if len(paths) == 0 {
		return "searches whole directories, in which secrets such as .env may lie: --include, -l or rg bounds it"
	}
	return ""
}

// searchesPrivate reports whether a search of these paths, or of the current directory
// if there are none, goes through a home directory or one that holds listed secrets.
func (line *commandLine) searchesPrivate(paths []word.Word) bool {
	if len(paths) == 0 {
		return line.pol.secrets.MayLieBelow(".", &line.Location)
	}
	return slices.ContainsFunc(paths, func(p word.Word) bool { return line.pol.secrets.MayLieBelow(p.Text, &line.Location) })
}

// namesFile reports whether p looks like a file: its name has an extension of letters
// and no pattern in front of it that could match a directory's name.
func namesFile(p word.Word) bool {
	base := p.Text[strings.LastIndexByte(p.Text, '/')+1:]
	dot := strings.LastIndexByte(base, '.')
	if dot < 1 || dot == len(base)-1 {
		return false
	}
	return secrets.SourceExtension(base[dot+1:])
}

// checkRg keeps ripgrep to the files that it reads by default, which are not hidden; a
// glob overrides that.
func checkRg(line *commandLine, a *args) string {
	if line.searchesPrivate(a.paths()) {
		return "searches a directory in which secrets lie"
	}
	names := !a.has("json") && a.has("files", "l", "files-with-matches", "files-without-match", "c", "count", "count-matches", "q", "quiet", "type-list")
	for _, f := range a.flags {
		switch f.name {
		case ".", "hidden", "u", "unrestricted", "no-ignore", "no-ignore-vcs", "no-ignore-parent", "L", "follow":
			if !names {
				return "searches hidden or ignored files, in which secrets lie"
			}
		case "g", "glob", "iglob":
			if !names && !strings.HasPrefix(f.value, "!") && line.pol.secrets.MayPass(f.value, true) {
				return "searches files that may hold secrets"
			}
		}
	}
	return ""
}

// findTests are find's tests and actions that only choose and print, with the number of
// words that each takes.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-xtype": 1, "-maxdepth": 1, "-mindepth": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1,
	"-cmin": 1, "-newer": 1, "-newermt": 1, "-perm": 1, "-user": 1, "-group": 1, "-links": 1, "-printf": 1, "-inum": 1, "-lname": 1,
	"-empty": 0, "-not": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, "-print": 0, "-print0": 0, "-prune": 0, "-xdev": 0, "-mount": 0,
	"-depth": 0, "-readable": 0, "-writable": 0, "-executable": 0, "-quit": 0, "-ls": 0, "-follow": 0, "-true": 0, "-false": 0, "-nouser": 0,
	"-nogroup": 0, "!": 0, "(": 0, ")": 0, ",": 0, "-L": 0, "-H": 0, "-P": 0,
}

// findFiles allows listing files: no action but printing.
func (line *commandLine) findFiles(words []word.Word) (string, bool) {
	tests := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.Glob {
			return "a pattern outside quotes may stand for an action", false
		}
		n, known := findTests[w.Text]
		switch {
		case known:
			if i+n >= len(words) {
				return w.Text + " lacks its value", false
			}
			tests = tests || w.Text != "-L" && w.Text != "-H" && w.Text != "-P"
			for _, v := range words[i+1 : i+1+n] {
				if v.Glob || strings.HasPrefix(v.Text, "-") && !isCount(v.Text) && w.Text != "-perm" && w.Text != "-size" {
					return "the value of " + w.Text + " could be an action", false
				}
			}
			i += n
		case tests || strings.HasPrefix(w.Text, "-"):
			return w.Text + " is not a test known to be harmless", false
		case line.secretPath(w):
			return "names a secret, " + w.Text, true
		}
	}
	return "", false
}
