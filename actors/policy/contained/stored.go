package contained

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// A line could store code in a file and run it, at once or in a later call, before any person reads
// the code. Therefore a line may store its own text only in data files and in the container's own
// /tmp, and must not run these files.

// dataFile matches names of data files. No program looks for code in a data file by itself.
var dataFile = lazyregexp.New(`(?i)^(?:.*\.(?:log|md|rst|csv|tsv|diff|patch|svg|png|jpe?g|gif|webp|pdf|html?|prof|pprof|err|sum|snap)|` +
	`(?:c|cover|coverage|test|tests|bench|result|results|report|log|trace|mem|cpu|block|mutex)[\w-]*\.(?:out|txt|trace)|` +
	`[\w.-]*(?:out|result|report|response|data|coverage|log|dump|list|stats|before|after|diff|junit)[\w.-]*\.(?:json|jsonl|xml|txt)|` +
	`[\w-]+\.txt|logs?|out|output|err|errors|results?|\.(?:git|docker|npm|prettier|eslint)ignore)$`)

// codeNames matches names that look like names of data files, but that programs use for code or settings.
var codeNames = lazyregexp.New(`(?i)^(?:cmakelists|requirements[\w-]*|constraints[\w-]*)\.txt$|config`)

func isData(p string) bool {
	base := path.Base(p)
	return dataFile.MatchString(base) && !codeNames.MatchString(base)
}

// stores checks a file in which a line stores its own text.
func (c *command) stores(t shell.Term) {
	for _, p := range c.resolve(t) {
		if pathname.Within(p, c.script.Project) && !isData(p) {
			c.refuse("puts text into " + path.Base(p) + ", which could run as code that nod has not read")
		}
	}
}

// carries checks a copy, a move or a link of the sources to the target. If a line may have stored a
// source, the target must be a data file or in the container's own /tmp.
func (c *command) carries(sources []shell.Term, target shell.Term) {
	for _, t := range sources {
		if !slices.ContainsFunc(c.resolve(t), func(p string) bool { return inPrivate(c.script, p) || isData(p) }) && !isData(wildcards.Replace(t.Text)) {
			continue
		}
		to := target
		if strings.HasSuffix(to.Text, "/") {
			to.Text += path.Base(t.Text)
		}
		c.stores(to)
	}
}

var wildcards = strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x")

// readsCode checks a file that a command runs as code.
func (c *command) readsCode(p string) {
	switch {
	case inPrivate(c.script, p):
		c.refuse("runs code in /tmp, which nod has not read")
	case pathname.Within(p, c.script.Project) && isData(p):
		c.refuse("runs " + path.Base(p) + ", a data file, into which a line may have put code")
	case slices.Contains(c.judge.edited, p):
		c.refuse("runs " + path.Base(p) + ", which the line itself changes")
	case !c.readable(p):
		c.need(c.Words, "@read:"+p)
	}
}

// mayRunCode reports whether a command may run code from files that its words name or that its
// directory contains.
func (c *command) mayRunCode() bool {
	if pureReaders[c.name] || patternFirst[c.name] || strings.ContainsAny(c.Words[0].Text, `/\\`) || commands.Reader(c.name) != nil {
		return false
	}
	_, manages := registries[c.name]
	return manages || c.name == "git" || interpreters[c.name] != nil || c.checks[c.name] == nil
}

// elsewhere checks a command that may run code. The command must not run in /tmp, and must not name a
// file into which a line may have put code.
func (c *command) elsewhere() {
	if !c.mayRunCode() {
		return
	}
	if slices.ContainsFunc(c.Dirs, func(d string) bool { return inPrivate(c.script, d) }) {
		c.refuse("runs in /tmp, where it may find code that nod has not read")
	}
	if interpreters[c.name] != nil || c.name == "git" {
		return // the function interprets checks an interpreter's words; git runs no code from its words
	}
	for i, t := range c.args {
		name, value, eq := strings.Cut(t.Text, "=")
		writes := writesTo(name) || !eq && i > 0 && writesTo(c.args[i-1].Text)
		if writes || value == "" && eq || targetVariable.MatchString(name) && eq {
			continue
		}
		for _, text := range []string{t.Text, value, attachedValue(t.Text)} {
			part := t
			part.Text = text
			if slices.ContainsFunc(c.resolve(part), func(p string) bool { return inPrivate(c.script, p) && !isData(p) }) {
				c.refuse("may run code in /tmp, which nod has not read")
				return
			}
		}
		if code := codeFlag.MatchString(name); !takesTargets[c.name] && !runsFiles[c.name] {
			continue
		} else if code && isData(value) || i > 0 && codeFlag.MatchString(c.args[i-1].Text) && isData(t.Text) {
			c.refuse("may run code from a data file")
		}
	}
}

// attachedValue returns the value of a short flag if flag and value are one word.
func attachedValue(text string) string {
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		return text[2:]
	}
	return ""
}

// targetVariable matches variables of make that name a directory to which make writes.
var targetVariable = lazyregexp.New(`^(?:[A-Z]+_)?(?:PREFIX|DESTDIR|OUT|OUTPUT|OUTDIR|BUILDDIR|BUILD_DIR)$`)

// codeFlag matches flags whose value may be a file with code or settings.
var codeFlag = lazyregexp.New(`(?i)^(?:-[fcrRpPIiSsTuM]|--?[\w-]*(?:file|config|conf|rc|require|import|preload|loader|plugin|script|init|settings|runner|setup|preset|rules?dir|rulesdir|parser|resolver|project))$`)
