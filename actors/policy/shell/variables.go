package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// variables holds the values that a line may give to its variables. A value that the line gives in one
// place counts in all of the line, because the result only raises risks.
type variables struct {
	values map[string][]string // the texts that a variable may hold
	from   map[string][]string // the words of the commands whose output a variable may hold
	refs   map[string]bool     // the variables that may stand for others, by declare -n
	sure   map[string]uint     // by variable that certainly has only one text: the offset in the line after which it holds the text
}

// maxValues bounds the texts of a variable, and those of a word with variables.
const maxValues = 64

// learn adds the variables of a line. The line's flows must know the words that reach its commands.
func (v *variables) learn(file *syntax.File, in *flows) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			v.assign(n, in)
		case *syntax.DeclClause:
			v.declare(n)
		case *syntax.WordIter:
			for _, item := range n.Items {
				v.add(n.Name.Value, item, in)
			}
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 1 && call.Args[0].Lit() == "read" {
				for _, name := range call.Args[1:] {
					for _, r := range n.Redirs {
						v.from[name.Lit()] = bounded(v.from[name.Lit()], in.words(r.Word), maxFacts)
					}
				}
			}
		}
		return true
	})
	v.learnSure(file)
}

// declare notes the variables that declare -n makes names for other variables.
func (v *variables) declare(d *syntax.DeclClause) {
	names := false
	for _, a := range d.Args {
		flag := ""
		if a.Name == nil && a.Value != nil {
			flag = a.Value.Lit()
		}
		names = names || strings.HasPrefix(flag, "-") && strings.Contains(flag, "n")
		if names && a.Name != nil {
			v.refs[a.Name.Value] = true
		}
	}
}

func (v *variables) assign(a *syntax.Assign, in *flows) {
	if a.Name == nil {
		return
	}
	if a.Value != nil {
		before := v.values[a.Name.Value]
		v.add(a.Name.Value, a.Value, in)
		if added := v.values[a.Name.Value][len(before):]; a.Append {
			for _, old := range before {
				for _, more := range added {
					v.values[a.Name.Value] = bounded(v.values[a.Name.Value], []string{old + more}, maxValues)
				}
			}
		}
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				v.add(a.Name.Value, e.Value, in)
			}
		}
	}
}

func (v *variables) add(name string, w *syntax.Word, in *flows) {
	texts := v.fill(w)
	if texts == nil {
		text, _ := word.Known(w, in.src)
		texts = []string{text}
	}
	v.values[name] = bounded(v.values[name], texts, maxValues)
	v.from[name] = bounded(v.from[name], in.substituted(w), maxFacts)
}

func bounded(all, more []string, n int) []string {
	all = append(all, more...)
	return all[:min(len(all), n)]
}

// learnSure finds the variables that certainly hold one plain word: the line sets them once, in a command
// of their own at its beginning or after a semicolon, or before &&.
func (v *variables) learnSure(file *syntax.File) {
	once := remember(file, "").once
	if once["IFS"] {
		return // the shell may split the word elsewhere
	}
	for _, st := range file.Stmts {
		for _, a := range plainAssigns(st) {
			if !once[a.Name.Value] || a.Append || a.Index != nil || a.Value == nil {
				continue
			}
			if values := v.values[a.Name.Value]; len(values) == 1 && plainWord.MatchString(values[0]) && !strings.ContainsAny(values[0], "*?~") && isFixed(a.Value, func(*syntax.ParamExp) bool { return false }) {
				v.sure[a.Name.Value] = a.End().Offset()
			}
		}
	}
}

// plainAssigns returns the assignments with which a statement begins. They always run, because they depend on
// no other command.
func plainAssigns(st *syntax.Stmt) []*syntax.Assign {
	if st.Background || st.Negated || len(st.Redirs) > 0 {
		return nil
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return c.Assigns
		}
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt {
			return plainAssigns(c.X)
		}
	}
	return nil
}

// isFixed reports whether a word has no expansion except variables for which the function isSure returns
// true.
func isFixed(w *syntax.Word, isSure func(*syntax.ParamExp) bool) bool {
	fixed := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			fixed = fixed && isSure(n)
			return false
		case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			fixed = false
		}
		return fixed
	})
	return fixed
}

// isSure reports whether the shell certainly puts only one plain text into each variable of a word, and whether
// the word has no other expansion.
func (v *variables) isSure(w *syntax.Word) bool {
	return isFixed(w, func(p *syntax.ParamExp) bool {
		if !isPlainParam(p) {
			return false
		}
		since, known := v.sure[p.Param.Value]
		return known && since < p.Pos().Offset()
	})
}

// fill returns the texts that a word with variables may become, or nil if it has no variables.
func (v *variables) fill(w *syntax.Word) []string {
	if w == nil || !hasVariable(w) {
		return nil
	}
	return v.parts(w.Parts, false)
}

func hasVariable(n syntax.Node) (found bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		_, is := n.(*syntax.ParamExp)
		found = found || is
		return !found
	})
	return found
}

func (v *variables) parts(parts []syntax.WordPart, quoted bool) []string {
	texts := []string{""}
	for i, p := range parts {
		var next []string
		for _, more := range v.part(p, i == 0, quoted) {
			for _, text := range texts {
				next = bounded(next, []string{text + more}, maxValues)
			}
		}
		texts = next
	}
	return texts
}

func (v *variables) part(p syntax.WordPart, first, quoted bool) []string {
	switch p := p.(type) {
	case *syntax.ParamExp:
		var texts []string
		if p.Param != nil {
			texts = v.values[p.Param.Value]
			if p.Excl || v.refs[p.Param.Value] {
				for _, other := range texts {
					texts = append(texts[:len(texts):len(texts)], v.values[other]...)
				}
			}
		}
		if p.Exp != nil && p.Exp.Word != nil { // the text of ${x:-text}
			texts = append(texts[:len(texts):len(texts)], v.parts(p.Exp.Word.Parts, quoted)...)
		}
		if len(texts) > 0 {
			return texts
		}
	case *syntax.DblQuoted:
		return v.parts(p.Parts, true)
	default:
		var r termReader
		if quoted {
			r.quoted(p)
		} else {
			r.part(p, first)
		}
		return []string{r.text.String()}
	}
	return []string{""}
}

// outputs returns the words of the commands whose output a node may get from its variables.
func (v *variables) outputs(n syntax.Node) (all []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
			all = bounded(all, v.from[p.Param.Value], maxFacts)
		}
		return true
	})
	return all
}

// alternatives returns a call's words once more for each text that a variable may hold.
func (v *variables) alternatives(c *syntax.CallExpr, argv []string) (all [][]string) {
	for i, arg := range c.Args {
		for k, text := range v.fill(arg) {
			if k == len(all) {
				all = append(all, append([]string(nil), argv...))
			}
			all[k][i] = text
		}
	}
	return all
}
