package payload

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The largest size of a command line that gets colours. Parsing a larger command line could be slow.
const (
	maxCommand = 32 << 10 // the largest length of a command line, in bytes
	maxNesting = 200      // the largest number of opening brackets in a command line
)

// Shell returns the styles of a Bash command line. If the line does not parse, the result is empty.
func Shell(src string) []Span {
	if len(src) > maxCommand || strings.Count(src, "(")+strings.Count(src, "{")+strings.Count(src, "`")+strings.Count(src, "[") > maxNesting {
		return nil
	}
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		return nil
	}
	c := colours{make([]Style, len(src))}
	syntax.Walk(file, func(n syntax.Node) bool {
		c.node(n)
		return true
	})
	return spans(c.styles)
}

// colours contains a style for each byte of a command line. The parser visits an outer node before the
// nodes inside it, so the style of an inner node wins.
type colours struct{ styles []Style }

func (c *colours) paint(from, to syntax.Pos, style Style) {
	if from.IsValid() && to.IsValid() {
		paint(c.styles, int(from.Offset()), int(to.Offset()), style)
	}
}

func (c *colours) operator(at syntax.Pos, n int) {
	if at.IsValid() {
		paint(c.styles, int(at.Offset()), int(at.Offset())+n, Operator)
	}
}

func (c *colours) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		c.call(n)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		c.paint(n.Pos(), n.End(), Quoted)
	case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
		c.expansion(n)
	case *syntax.Comment:
		c.paint(n.Pos(), n.End(), Comment)
	case *syntax.Assign:
		if n.Name != nil {
			c.paint(n.Name.Pos(), n.Name.End(), Variable)
		}
	case *syntax.Redirect:
		c.operator(n.OpPos, len(n.Op.String()))
		if n.Hdoc != nil {
			c.paint(n.Hdoc.Pos(), n.Hdoc.End(), Quoted)
		}
	case *syntax.BinaryCmd:
		c.operator(n.OpPos, len(n.Op.String()))
	case *syntax.Stmt:
		c.operator(n.Semicolon, 1)
	}
}

// expansion gives styles to an expansion of the shell, such as $HOME or $( … ). Commands inside
// $( … ) and <( … ) keep their own styles.
func (c *colours) expansion(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CmdSubst:
		c.paint(n.Pos(), n.End(), Plain)
		c.operator(n.Left, 2)
		c.operator(n.Right, 1)
	case *syntax.ProcSubst:
		c.operator(n.OpPos, 2)
		c.operator(n.Rparen, 1)
	default:
		c.paint(n.Pos(), n.End(), Variable)
	}
}

func (c *colours) call(n *syntax.CallExpr) {
	for i, w := range n.Args {
		switch {
		case i == 0:
			c.paint(w.Pos(), w.End(), Command)
		case strings.HasPrefix(w.Lit(), "-"):
			c.paint(w.Pos(), w.End(), Flag)
		}
	}
}
