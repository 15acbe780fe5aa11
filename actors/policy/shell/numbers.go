package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// numberFilter matches a filter of gh that prints one number. gh itself writes these fields as numbers, so
// that no text of another person can be in the output.
var numberFilter = lazyregexp.New(`^\.(?:\[\d+\]\.)?(?:databaseId|number)$`)

// numberPrinter returns the command in a word that is only a command substitution, or nil if the command may
// print more than a number. A list or view command of gh prints only a number if numberFilter matches its
// filter.
func numberPrinter(w *syntax.Word, src string) *syntax.Stmt {
	if len(w.Parts) != 1 {
		return nil
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	sub, ok := part.(*syntax.CmdSubst)
	if !ok || sub.Backquotes || sub.TempFile || sub.ReplyVar || len(sub.Stmts) != 1 {
		return nil
	}
	st := sub.Stmts[0]
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Background || st.Coprocess || st.Negated || len(st.Redirs) > 0 || len(c.Assigns) > 0 || len(c.Args) < 5 {
		return nil
	}
	var words []string
	for _, a := range c.Args {
		known, why := word.Read(a, src)
		if why != "" || known.Glob || known.Expands || known.Tilde {
			return nil
		}
		words = append(words, known.Text)
	}
	if !printsNumber(words) {
		return nil
	}
	return st
}

// printsNumber reports whether the words are a list or view command of gh with exactly one filter. The
// command may have only flags that take the next word as their value.
func printsNumber(words []string) bool {
	if words[0] != "gh" || !slices.Contains([]string{"run", "pr", "issue"}, words[1]) || words[2] != "list" && words[2] != "view" {
		return false
	}
	filters := 0
	for rest := words[3:]; len(rest) > 0; rest = rest[2:] {
		switch flag := rest[0]; {
		case len(rest) == 1 || strings.HasPrefix(rest[1], "-"):
			return false
		case flag == "--jq" || flag == "-q":
			if filters++; !numberFilter.MatchString(rest[1]) {
				return false
			}
		case !slices.Contains([]string{"--json", "--limit", "-L", "--branch", "--workflow", "--repo", "-R", "--state", "--head"}, flag):
			return false
		}
	}
	return filters == 1
}
