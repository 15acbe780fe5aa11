package contained

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// edits checks sed. It allows edits in place only if they substitute text or delete selected lines,
// because a person can follow such edits.
func (c *command) edits() {
	var rest []shell.Term
	inPlace := false
	for i, t := range c.args {
		if strings.HasPrefix(t.Text, "-i") || strings.HasPrefix(t.Text, "--in-place") {
			inPlace = true
			continue
		}
		if t.Text == "" && i > 0 && c.args[i-1].Text == "-i" {
			continue // BSD and macOS write sed -i ''
		}
		if !t.Known && t.Before() == "" {
			c.refuse("has words that are not known")
			return
		}
		rest = append(rest, t)
	}
	words := make([]word.Word, len(rest))
	for i, t := range rest {
		words[i] = word.Word{Text: t.Text}
	}
	a, why := commands.Entry("sed").Check("sed", words, nil)
	if why != "" {
		c.refuse("has a script that is more than addresses, p, d, q and plain s///")
		return
	}
	if !inPlace {
		return
	}
	if script := strings.Join(texts(rest), "\n"); bareDelete.MatchString(script) || mostLines.MatchString(script) {
		c.refuse("empties files")
	}
	for _, p := range a.Paths() {
		for i := range rest {
			if rest[i].Text == p.Text {
				c.writes(withoutGlob(rest[i]), false)
				c.judge.edited = append(c.judge.edited, c.resolve(rest[i])...)
				break
			}
		}
	}
}

// bareDelete matches a sed script that deletes or quits without an address, and so affects every line.
var bareDelete = lazyregexp.New(`(?m)^\s*(?:[^;\n]*;)?\s*(?:1~1|1,\$|0~1)?\s*[dDqQ]\s*(?:;|$)`)

// mostLines matches a sed script, or flags, that drop most lines. Such a script prints only
// selected lines, quits, deletes to the end, deletes all but some lines, or empties every line.
var mostLines = lazyregexp.New(`(?m)^(?:-[a-zE]*n|--q|--s)|(?:^|[;}\d/$])\s*[qQ]\s*\d*\s*(?:;|\}|$)|!\s*[dD]|,\s*\$\s*[dD]|/[.^$*]{1,3}/\s*[dD]|^\s*s(?:/|\||#)[.^$*]+(?:/|\||#){2}`)

func texts(terms []shell.Term) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = t.Text
	}
	return out
}

// withoutGlob replaces a word that contains a pattern by the directory above the pattern.
func withoutGlob(t shell.Term) shell.Term {
	if t.Glob {
		t.Glob = false
		if t.Text = t.Text[:strings.LastIndexByte(t.Text[:strings.IndexAny(t.Text, "*?[")], '/')+1]; t.Text == "" {
			t.Text = "."
		}
	}
	return t
}

// awkActs matches an awk program that itself writes files, runs commands or reads further input.
var awkActs = lazyregexp.New(`system|getline|close\s*\(|\||@\s*[A-Za-z_]|print[^;}]*>|printf[^;}]*>|ENVIRON`)

// scans checks awk. It refuses unknown flags, because such a flag may dump variables, print the
// program to a file, debug, or load programs and libraries.
func (c *command) scans() {
	for i, t := range c.args {
		flag := len(t.Text) > 1 && t.Text[0] == '-' && (i == 0 || c.args[i-1].Text != "-v" && c.args[i-1].Text != "-F")
		switch {
		case !t.Known && t.Before() == "", awkActs.MatchString(t.Text):
			c.refuse("has a program that may write or run")
			return
		case !flag || t.Text[1] == 'F' || t.Text[1] == 'v' || t.Text == "--" || t.Text == "--version":
		case strings.Trim(t.Text[1:], "bcnNOPrsSMt") != "":
			c.refuse(t.Text + " is not a flag that nod knows")
			return
		}
	}
}
