package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// memory holds the variables of a script whose values are known.
type memory struct {
	once   map[string]bool // variables that the script sets exactly once
	values map[string]Term // the known values of variables at the current command
}

// remember finds the variables that a script sets exactly once. If a command of the script may set
// any variable, as eval may, the result has no variables.
func remember(file *syntax.File, home string) *memory {
	m := &memory{once: map[string]bool{}, values: map[string]Term{}}
	set := map[string]int{}
	opaque := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				set[n.Name.Value]++
			}
		case *syntax.WordIter:
			set[n.Name.Value]++
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil {
				set[n.Param.Value] += 2 // ${x:=text} sets x
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			opaque = true // arithmetic can set any variable
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				opaque = opaque || setsVariables[n.Args[0].Lit()] || n.Args[0].Lit() == ""
			}
		}
		return true
	})
	if opaque {
		return m
	}
	for name, n := range set {
		m.once[name] = n == 1
	}
	if home != "" && set["HOME"] == 0 {
		m.values["HOME"] = Term{Text: home, Known: true}
	}
	return m
}

// learn stores the values of variables that a statement at the top level of a script sets. Later
// statements know these values.
func (m *memory) learn(st *syntax.Stmt, w *scriptWalker) {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) > 0 || st.Background || len(st.Redirs) > 0 {
		return
	}
	for _, a := range c.Assigns {
		if a.Value == nil || a.Append || a.Index != nil || !m.once[a.Name.Value] {
			continue
		}
		if t := w.value(a.Value); t.Known && !t.Tilde {
			m.values[a.Name.Value] = Term{Text: t.Text, Known: true}
		}
	}
}

// setsVariables are commands that may set variables although the syntax tree does not name the variables.
var setsVariables = map[string]bool{
	"read": true, "eval": true, "source": true, ".": true, "mapfile": true, "readarray": true, "getopts": true, "printf": true, "unset": true,
	"builtin": true, "command": true, "let": true, "wait": true, "coproc": true, "typeset": true,
}

// term reads a word, and adds the commands of its substitutions.
func (w *scriptWalker) term(word *syntax.Word) Term {
	if word == nil {
		return Term{}
	}
	w.substitutions(word)
	return w.value(word)
}

func (w *scriptWalker) value(word *syntax.Word) Term {
	r := termReader{names: w.script.names, out: Term{Known: true}}
	for i, part := range word.Parts {
		r.part(part, i == 0)
	}
	r.out.Text = r.text.String()
	return r.out
}

func (w *scriptWalker) substitutions(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		var inner []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner = n.Stmts
		case *syntax.ProcSubst:
			inner = n.Stmts
		default:
			return true
		}
		piped := w.piped
		w.piped = false
		w.list(inner)
		w.piped = piped
		return false
	})
}

type termReader struct {
	names *memory
	text  strings.Builder
	out   Term
}

// unknown marks the word as not completely known.
func (r *termReader) unknown() {
	if r.out.Known {
		r.out.Known, r.out.open = false, r.text.String()
	}
}

func (r *termReader) part(part syntax.WordPart, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		r.literal(p.Value, first)
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			r.unknown()
		}
		r.text.WriteString(p.Value)
	case *syntax.DblQuoted:
		if p.Dollar {
			r.unknown()
		}
		for _, in := range p.Parts {
			r.quoted(in)
		}
	case *syntax.ParamExp:
		r.param(p, false)
	case *syntax.CmdSubst:
		r.unknown()
		r.out.Splits = true
	default:
		r.unknown()
	}
}

func (r *termReader) literal(s string, first bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			switch i++; {
			case i == len(s):
				r.text.WriteByte('\\') // a backslash at the end of the line is an ordinary character
			case s[i] != '\n':
				r.text.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			r.out.Glob = true
		case '{':
			r.unknown() // braces may expand to several words
		case '~':
			if first && i == 0 {
				if r.out.Tilde = true; len(s) > 1 && s[1] != '/' {
					r.unknown()
				}
			} else if i > 0 && (s[i-1] == '=' || s[i-1] == ':') {
				r.unknown()
			}
		}
		r.text.WriteByte(s[i])
	}
}

// quoted reads a part of a string in double quotes.
func (r *termReader) quoted(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		s := p.Value
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
				if i++; s[i] == '\n' {
					continue
				}
			}
			r.text.WriteByte(s[i])
		}
	case *syntax.ParamExp:
		r.param(p, true)
	default:
		r.unknown()
	}
}

// param reads a variable. Outside quotes, Bash splits the variable's value at spaces and expands
// patterns in the value.
func (r *termReader) param(p *syntax.ParamExp, quoted bool) {
	if isPlainParam(p) && r.names != nil {
		if v, ok := r.names.values[p.Param.Value]; ok && (quoted || !strings.ContainsAny(v.Text, " \t\n*?[") && v.Text != "") {
			r.text.WriteString(v.Text)
			return
		}
	}
	r.unknown()
	r.out.Splits = r.out.Splits || !quoted
}

// isPlainParam reports whether a parameter expansion is only a variable, such as $x or ${x}.
func isPlainParam(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// redirects reads redirections. It leaves out those between descriptors and those to /dev/null.
func (w *scriptWalker) redirects(list []*syntax.Redirect) []Redirect {
	var out []Redirect
	for _, r := range list {
		kind := ReadsFile
		file := w.term(r.Word)
		switch r.Op {
		case syntax.RdrIn:
		case syntax.RdrOut, syntax.RdrAll, syntax.RdrClob, syntax.RdrInOut:
			kind = Truncates
		case syntax.AppOut, syntax.AppAll:
			kind = Appends
		case syntax.Hdoc, syntax.DashHdoc:
			kind, file = ReadsText, w.hereText(r)
		case syntax.WordHdoc:
			kind = ReadsText
		case syntax.DplOut, syntax.DplIn:
			if file.Known && (file.Text == "-" || strings.Trim(file.Text, "0123456789-") == "") {
				continue
			}
			kind = Truncates // the redirection >&FILE writes both outputs to a file
		default:
			w.script.refuse("redirects by " + r.Op.String())
		}
		if file.Known && file.Text == "/dev/null" {
			continue
		}
		out = append(out, Redirect{kind, file})
	}
	return out
}

// hereText reads the text of a here-document. The shell expands the text unless the end word is
// quoted.
func (w *scriptWalker) hereText(r *syntax.Redirect) Term {
	if r.Hdoc == nil {
		return Term{Known: true}
	}
	text, whole := literalText(r.Hdoc)
	quoted := r.Word != nil && len(r.Word.Parts) > 0
	if quoted {
		quoted = false
		for _, part := range r.Word.Parts {
			l, lit := part.(*syntax.Lit)
			quoted = quoted || !lit || strings.Contains(l.Value, `\`)
		}
	}
	if quoted {
		return Term{Text: text, Known: true}
	}
	w.substitutions(r.Hdoc)
	return Term{Text: text, Known: whole && !strings.Contains(text, `\`)}
}

// literalText returns the literal text of a here-document. If the shell replaces nothing in the here-document,
// the result whole is true.
func literalText(w *syntax.Word) (text string, whole bool) {
	var b strings.Builder
	whole = true
	for _, part := range w.Parts {
		l, isText := part.(*syntax.Lit)
		if whole = whole && isText; isText {
			b.WriteString(l.Value)
		}
	}
	return b.String(), whole
}
