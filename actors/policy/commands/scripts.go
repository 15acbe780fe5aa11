package commands

import (
	"path"
	"regexp"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Commands such as sed and awk run scripts. Each script language has a regular expression that
// matches harmless scripts. nod asks about every other script.

// sedAddress matches a line number, the last line, a step, or a plain regular expression. In a
// plain regular expression, brackets do not contain the delimiter, because some versions of sed
// would end the expression there.
const sedAddress = `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\[\]\n]|\\[^\n]|\[\^?[A-Za-z0-9_., :-]+\])*/I?)`

var sedCommand = lazyregexp.New(`^\s*(?:` + sedAddress + `(?:,\s*(?:` + sedAddress + `|[+~][0-9]+))?)?\s*!?\s*(?:[pdqQ=Pl]?)\s*$`)

var sedSubstitute = lazyregexp.New(`^\s*(?:` + sedAddress + `(?:,\s*(?:` + sedAddress + `|[+~][0-9]+))?)?\s*!?\s*` +
	`s(?:/` + sedPart("/") + `/` + sedPart("/") + `/|\|` + sedPart(`|`) + `\|` + sedPart(`|`) + `\||#` + sedPart("#") + `#` + sedPart("#") + `#)[gpIi0-9]*\s*$`)

func sedPart(delim string) string {
	return `(?:[^\\\[\]\n` + regexp.QuoteMeta(delim) + `]|\\[^\n]|\[\^?[A-Za-z0-9_., :-]+\])*`
}

func checkSed(_ Secrets, a *Args) string {
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

// awkProgram matches an awk program that only prints fields of some lines. The program selects the lines
// by number or by a plain regular expression. It contains no >, no |, no getline and no function call.
var awkProgram = lazyregexp.New(`^\s*(?:` + awkCondition + `(?:\s*(?:&&|\|\|)\s*` + awkCondition + `)*)?\s*(?:\{\s*print(?:\s+` + awkItem + `(?:\s*,\s*` + awkItem + `|\s+` + awkItem + `)*)?\s*;?\s*\})?\s*$`)

const (
	awkCondition = `(?:N[RF]\s*(?:==|!=|<=|>=|<|>|%)\s*[0-9]+|!?/[A-Za-z0-9_ .,:;=^$*+-]*/|\$[0-9]+\s*(?:==|!=)\s*"[A-Za-z0-9_ .,:;=/-]*")`
	awkItem      = `(?:\$(?:[0-9]+|NF)|N[RF]|"[^"\\|\n]*")`
)

func checkAwk(_ Secrets, a *Args) string {
	if len(a.operands) == 0 || !awkProgram.MatchString(a.operands[0].Text) {
		return "its program is more than printing fields"
	}
	return ""
}

// jqReads matches jq filters that read the environment or a module.
var jqReads = lazyregexp.New(`\benv\b|ENV|\bimport\b|\binclude\b|\bmodulemeta\b|\bget_search_list\b|\binput_filename\b`)

func checkJq(_ Secrets, a *Args) string {
	if len(a.operands) == 0 || jqReads.MatchString(a.operands[0].Text) {
		return "its filter may read the environment or other files"
	}
	return ""
}

// printfFormat matches a format whose only conversion is %s, because other conversions evaluate
// arithmetic in Zsh. A format must not begin with a dash, because printf would read it as a flag.
var printfFormat = lazyregexp.New(`^(?:[^%-]|%%|%-?[0-9]*s)(?:[^%]|%%|%-?[0-9]*s)*$`)

func checkPrintf(_ Secrets, a *Args) string {
	if len(a.operands) == 0 || len(a.flags) > 0 || a.operands[0].Glob || !printfFormat.MatchString(a.operands[0].Text) {
		return "its format is more than text and %s"
	}
	return ""
}

// checkGrep refuses some searches of whole directories, because grep also reads hidden files. It
// allows a search that prints only names or counts, or that reads only files without secrets.
func checkGrep(s Secrets, a *Args) string {
	paths := a.Paths()
	if trees := a.has("r", "R", "recursive", "dereference-recursive"); (trees || len(paths) > 0) && s.SearchesPrivate(paths) {
		return "searches a directory in which secrets lie"
	}
	if !a.has("r", "R", "recursive", "dereference-recursive") || a.has("l", "L", "c", "q", "files-with-matches", "files-without-match", "count", "quiet", "silent") {
		return ""
	}
	if a.has("R", "dereference-recursive") {
		return "follows links, which may lead to secrets: -r does not"
	}
	included := false
	for _, f := range a.flags {
		switch {
		case f.name == "exclude" && !included:
			return "searches every file except the excluded ones: put --include first"
		case f.name == "include":
			if included = true; s.SecretFilter(f.value) {
				return "searches files that may hold secrets"
			}
		}
	}
	if included {
		if file, unsearched := s.SearchesExposed(paths, a.excludes); file != "" && !unsearched {
			return "would show " + file + ", which holds secrets"
		}
		return ""
	}
	// Even a path with an extension, such as next.js, may be a directory.
	return "searches whole directories, in which secrets such as .env may lie: --include, -l or rg bounds it"
}

// namesFile reports whether p is probably a file and not a directory. The name of a probable file
// has an extension of source code or similar text.
func namesFile(p word.Word) bool {
	base := p.Text[strings.LastIndexByte(p.Text, '/')+1:]
	dot := strings.LastIndexByte(base, '.')
	if dot < 1 || dot == len(base)-1 {
		return false
	}
	return secrets.SourceExtension(base[dot+1:])
}

// checkRg limits ripgrep to the files that ripgrep reads by default, which are not hidden. Because
// a glob overrides this default, checkRg refuses a glob that may match a secret.
func checkRg(s Secrets, a *Args) string {
	if s.SearchesPrivate(a.Paths()) {
		return "searches a directory in which secrets lie"
	}
	names := !a.has("json") && a.has("files", "l", "files-with-matches", "files-without-match", "c", "count", "count-matches", "q", "quiet", "type-list")
	only := false // whether a glob limits the search
	for _, f := range a.flags {
		switch f.name {
		case ".", "hidden", "u", "unrestricted", "no-ignore", "no-ignore-vcs", "no-ignore-parent", "L", "follow":
			if !names {
				return "searches hidden or ignored files, in which secrets lie"
			}
		case "t", "type":
			if !names && !secrets.SourceType(f.value) {
				return "searches hidden files of a type that may hold secrets"
			}
		case "g", "glob", "iglob":
			if !names && !strings.HasPrefix(f.value, "!") && s.SecretFilter(f.value) {
				return "searches files that may hold secrets"
			}
			only = only || !strings.HasPrefix(f.value, "!")
		}
	}
	if names {
		return ""
	}
	switch file, unsearched := s.SearchesExposed(a.Paths(), a.excludes); {
	case unsearched && only: // nod already asks about most filters that may include secrets
	case unsearched:
		return "searches " + file + ", which has too many files to know whether some hold secrets: name the kind of files, as with -g '*.go'"
	case file != "":
		return "would show " + file + ", which holds secrets: leave it out, as with -g '!" + path.Base(file) + "'"
	}
	return ""
}

// excludes reports whether the globs or types of a ripgrep or grep search exclude a file.
func (a *Args) excludes(file string) bool {
	base := path.Base(file)
	typed, included := false, false
	filtered, passes := false, false
	for _, f := range a.flags {
		switch f.name {
		case "g", "glob", "iglob", "include": // most of these flags distinguish upper and lower case
			out, excludes := strings.CutPrefix(f.value, "!")
			if excludes && f.name != "include" && !strings.Contains(out, "/") && pathname.Match(out, base) {
				return true
			}
			if !excludes || f.name == "include" {
				filtered, passes = true, passes || secrets.FilterMayInclude(f.value, base)
			}
		case "t", "type":
			typed, included = true, included || secrets.TypeMayInclude(f.value, base)
		}
	}
	return typed && !included || filtered && !passes
}

// Scripts returns the words of a command that are search patterns or scripts, such as the pattern of grep. It
// returns nil if nod does not know all flags.
func Scripts(argv []string) []string {
	c := Entry(ProgramName(argv[0]))
	if !c.Loose {
		return nil
	}
	a, why := c.parse("", word.Literals(argv[1:]))
	if why != "" {
		return nil
	}
	return a.scripts()
}
