package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is looked into. What is longer asks: nobody reads it, and
// checking it could be made slow.
const (
	maxCommand = 8 << 10 // bytes
	maxNesting = 100     // brackets
	maxJoints  = 400     // separators of commands
	maxSpaces  = 1500
)

// tooMuch says which bound a command line breaks; "" if none.
func tooMuch(src string) string {
	if len(src) > maxCommand {
		return "is too long to check"
	}
	var nesting, joints, spaces int
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '(', '{', '`', '[':
			nesting++
		case ';', '|', '&', '\n':
			joints++
		case ' ', '\t':
			spaces++
		}
	}
	if nesting > maxNesting || joints > maxJoints || spaces > maxSpaces {
		return "has too many parts to check"
	}
	return ""
}

// part is one simple command of a command line.
type part struct {
	words []word
	why   string // why it is not known to be harmless; "" if it is
	bad   bool   // the words are not all known, so that no rule may allow it
	touch bool   // it names a secret
	fed   bool   // it reads what another part writes, or a file
}

// scope is one reading of one command line: a closed recursion over its tree
// that knows a few forms and refuses the rest.
type scope struct {
	place
	pol   *Policy
	src   string
	parts []part
	reads []word // the files that redirections read
	again *scope // the line as an interactive Zsh reads it, where that is not the same
	why   string // why the line as a whole is not known to be harmless
	touch bool   // a redirection names a secret
	notes bool   // holds comments
	flat  bool   // is one command of plain words, which needs no tree
	lost  bool   // goes where nod does not follow
	zsh   bool   // the reading of an interactive Zsh, where # starts no comment
}

// harmless reports whether the line runs nothing but what is known to do no
// harm.
func (s *scope) harmless() bool {
	for i := range s.parts {
		if s.parts[i].why != "" {
			return false
		}
	}
	return s.why == "" && len(s.parts) > 0
}

// touches reports whether the line is known to name a secret.
func (s *scope) touches() bool {
	for i := range s.parts {
		if s.parts[i].touch {
			return true
		}
	}
	return s.touch
}

// reason is the first thing that stands against the line.
func (s *scope) reason() string {
	if s.why != "" {
		return s.why
	}
	for _, p := range s.parts {
		if p.why != "" {
			if len(p.words) > 0 {
				return p.words[0].text + ": " + p.why
			}
			return p.why
		}
	}
	return ""
}

// plainWords are the words of a line of nothing but words that mean themselves
// in every shell, and of spaces: most commands are such, and splitting them is
// all that parsing would do. nil for every other line.
func plainWords(src string) []word {
	words := make([]word, 0, 8)
	for text := range strings.SplitSeq(src, " ") {
		switch {
		case text == "":
		case !plain(text), len(words) == 0 && strings.IndexByte(text, '=') >= 0:
			return nil
		default:
			words = append(words, word{text: text, bare: true})
		}
	}
	if len(words) == 0 || syntax.IsKeyword(words[0].text) {
		return nil
	}
	return words
}

// read parses and walks a command line. The tree is nil where it cannot be
// parsed, or need not be.
func (p *Policy) read(src string, pl place) (*scope, *syntax.File) {
	s := &scope{place: pl, pol: p, src: src}
	if s.why = tooMuch(src); s.why != "" {
		return s, nil
	}
	if s.why = visible(src); s.why != "" {
		return s, nil
	}
	if words := plainWords(src); words != nil {
		s.flat = true
		s.judge(part{words: words})
		return s, nil
	}
	file := p.parse(src)
	if file == nil {
		s.why = "cannot be parsed"
		return s, nil
	}
	s.list(file.Stmts)
	if strings.IndexByte(src, '#') >= 0 {
		s.uncomment(file)
	}
	return s, file
}

// uncomment reads the line once more as an interactive Zsh does, which takes
// comments for words.
func (s *scope) uncomment(file *syntax.File) {
	var b strings.Builder
	last := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok && int(c.Hash.Offset()) >= last {
			b.WriteString(s.src[last:c.Hash.Offset()])
			b.WriteByte('\\')
			last = int(c.Hash.Offset())
		}
		return true
	})
	if s.notes = b.Len() > 0; !s.notes || !s.harmless() {
		return
	}
	b.WriteString(s.src[last:])
	again := &scope{place: s.place, pol: s.pol, src: b.String(), zsh: true}
	other := s.pol.parse(again.src)
	if other == nil {
		s.why = "an interactive Zsh takes the comment for words"
		return
	}
	s.again = again
	again.list(other.Stmts)
	if !again.harmless() {
		s.why = "an interactive Zsh takes the comment for words: " + again.reason()
	}
}

// parse is nil for what is no Bash. Errors are never recovered from: a guess
// at what was meant is not what runs.
func (p *Policy) parse(src string) *syntax.File {
	parser := p.parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(src), "")
	p.parsers.Put(parser)
	if err != nil {
		return nil
	}
	return file
}

func (s *scope) refuse(why string) {
	if s.why == "" {
		s.why = why
	}
}

func (s *scope) list(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		s.stmt(st)
	}
}

func (s *scope) stmt(st *syntax.Stmt) {
	switch {
	case st.Background, st.Coprocess, st.Disown:
		s.refuse("runs in the background")
	case st.Negated:
		s.refuse("negates a command")
	}
	from := len(s.parts)
	for _, r := range st.Redirs {
		s.redirect(r)
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		if chain := goingOn(c); chain != nil {
			s.goOn(chain)
			break
		}
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			s.refuse("joins commands by " + c.Op.String())
		}
		s.stmt(c.X)
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
			defer s.feed(len(s.parts))
		}
		s.stmt(c.Y)
	case nil:
		s.refuse("has no command")
	default:
		s.refuse("is more than simple commands joined by |, &&, || and ;")
	}
	if slices.ContainsFunc(st.Redirs, func(r *syntax.Redirect) bool { return r.Op == syntax.RdrIn }) {
		s.feed(from)
	}
}

// goingOn are the statements of cd DIR && a && b, where DIR is written from the
// root; nil for every other line.
func goingOn(c *syntax.BinaryCmd) (chain []*syntax.Stmt) {
	for c.Op == syntax.AndStmt {
		chain = append(chain, c.Y)
		if inner, ok := c.X.Cmd.(*syntax.BinaryCmd); ok && !c.X.Negated && len(c.X.Redirs) == 0 {
			c = inner
			continue
		}
		first, ok := c.X.Cmd.(*syntax.CallExpr)
		if !ok || len(first.Assigns) > 0 || len(first.Args) != 2 || first.Args[0].Lit() != "cd" || !strings.HasPrefix(first.Args[1].Lit(), "/") {
			return nil
		}
		chain = append(chain, c.X)
		slices.Reverse(chain)
		return chain
	}
	return nil
}

// goOn judges such statements: what follows runs in that directory alone, as
// otherwise it does not run.
func (s *scope) goOn(chain []*syntax.Stmt) {
	was := s.dirs
	s.stmt(chain[0])
	if to := s.dirs[min(len(was), len(s.dirs)):]; len(was) > 0 && len(to) > 0 {
		s.dirs, s.lead = slices.Clone(to), s.pol.secrets.leads(to)
	} else {
		was = nil
	}
	s.list(chain[1:])
	if was != nil {
		for _, d := range s.dirs {
			if !slices.Contains(was, d) {
				was = append(was[:len(was):len(was)], d)
			}
		}
		s.dirs, s.lead = was, s.pol.secrets.leads(was)
	}
}

func (s *scope) call(c *syntax.CallExpr) {
	p := part{words: make([]word, 0, len(c.Args))}
	if len(c.Assigns) > 0 {
		p.why, p.bad = "sets a variable, which can change what a command does", true
	}
	for _, a := range c.Args {
		w, why := readWord(a, s.src)
		if why != "" {
			p.bad = true
			if p.why == "" {
				p.why = why
			}
		}
		p.words = append(p.words, w)
	}
	s.judge(p)
}

// judge notes a simple command, and judges it where its words are known.
func (s *scope) judge(p part) {
	if p.why == "" {
		p.why, p.touch = s.simple(p.words)
	}
	s.parts = append(s.parts, p)
}
