package commands

import (
	"slices"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// These expressions match scripts of sed and awk, and subscripts of variables, that run commands. Only
// awkWrites matches scripts that write files.
var (
	sedRuns       = lazyregexp.New(`(?m)[/|#,][gpIiMm0-9]*e[gpIiMm0-9]*\s*(?:;|\}|$)|^\s*(?:\d+|\$|/[^/]*/)?(?:,(?:\d+|\$|/[^/]*/))?\s*e(?:\s|$)`)
	awkRuns       = lazyregexp.New(`\bsystem\s*\(|\|\s*getline\b|\bprintf?\b[^;}\n]*\|\s*["A-Za-z]`)
	awkWrites     = lazyregexp.New(`\bprintf?\b[^;}\n]*>\s*["A-Za-z(]`)
	subscriptRuns = lazyregexp.New("[A-Za-z_]\\w*\\[[^\\]]*(?:\\$\\(|`)")
)

// harmsInScripts returns the harms of scripts in the words of sed and awk, and of subscripts that a shell's
// builtin evaluates.
func harmsInScripts(name string, args []string) []Harm {
	has := func(expr lazyregexp.Regexp) bool { return slices.ContainsFunc(args, expr.MatchString) }
	switch name {
	case "sed", "gsed":
		if has(sedRuns) {
			return []Harm{runsInlineCode}
		}
	case "awk", "gawk", "mawk", "nawk":
		switch {
		case has(awkRuns):
			return []Harm{runsInlineCode}
		case has(awkWrites):
			return []Harm{writesFiles}
		}
	case "test", "[", "printf", "read", "let", "unset", "export", "declare", "typeset", "local", "wait":
		if has(subscriptRuns) {
			return []Harm{runsInlineCode}
		}
	}
	return nil
}
