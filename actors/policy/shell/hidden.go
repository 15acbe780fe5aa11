package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hiddenCommand returns the reason to refuse a script in which Bash may run a command that the
// syntax tree does not show, or "". Arithmetic runs even quoted commands in the index of an array.
// ${x@P} runs the commands in the variable x.
func hiddenCommand(file *syntax.File) string {
	why := ""
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.TestClause:
			if quotesCommand(n) {
				why = "hides a command in a test"
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			if quotesCommand(n) {
				why = "hides a command in arithmetic"
			}
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.OtherParamOps || n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				why = "sets or evaluates a variable inside a word"
			}
			if n.Index != nil && quotesCommand(n.Index) {
				why = "hides a command in an index"
			}
		}
		return why == ""
	})
	return why
}

// quotesCommand reports whether quoted text in n looks like a command substitution.
func quotesCommand(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted:
			found = found || strings.ContainsAny(n.Value, "$`")
		case *syntax.Lit:
			found = found || strings.Contains(n.Value, "\\$") || strings.Contains(n.Value, "\\`")
		}
		return !found
	})
	return found
}
