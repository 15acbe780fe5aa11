// Package shell analyses command lines. It finds the harmless commands in a line, the files that
// these commands may read, and facts about all other commands for rules and people. If no rule
// decides, nod asks about every line or command that is not known to be harmless.
package shell

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Limits of a command line. nod asks about a line beyond a limit, because people do not read such a
// line and its check could be slow.
const (
	maxCommand = 8 << 10 // the longest line, in bytes
	maxNesting = 100     // the largest number of opening brackets
	maxJoints  = 400     // the largest number of separators of commands, such as ; and |, in one line
	maxSpaces  = 1500
)

// tooMuch returns the reason why a command line exceeds a limit, or "".
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

// Part is one simple command of a command line.
type Part struct {
	Words        []word.Word
	Why          string // the reason to ask about the command; "" if it is harmless
	UnknownWords bool   // a word's value is unknown, so no rule may allow the command
	Secret       bool   // a word may mean a secret
	HasInput     bool   // the command's input is a file or the output of another part
}

// Argv returns the part's words, or false if a word is unknown or contains a pattern.
func (p *Part) Argv() ([]string, bool) {
	if p.UnknownWords || len(p.Words) == 0 {
		return nil, false
	}
	out := make([]string, len(p.Words))
	for i, w := range p.Words {
		if w.Glob {
			return nil, false
		}
		out[i] = w.Text
	}
	return out, true
}

// HasUnknownNumber reports whether the shell puts an unknown number into one of the part's words.
func (p *Part) HasUnknownNumber() bool {
	return slices.ContainsFunc(p.Words, func(w word.Word) bool { return w.Expands })
}

// parsers keeps parsers of Bash, because making a parser is slow.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)) }}

// Reader reads command lines under a preset. The caller must not change a Reader that is in use.
type Reader struct {
	Level   commands.Level
	Secrets *secrets.Names
}

// Line is a command line as nod reads it. nod accepts only a few forms of syntax, and asks about
// all other forms.
type Line struct {
	pathname.Location
	reader     *Reader
	src        string
	Parts      []Part
	inputFiles []word.Word         // files that redirections read
	zshReading *Line               // the line as an interactive Zsh reads it; nil if Zsh reads it as Bash does
	Why        string              // the reason to ask about the line as a whole, or ""
	secret     bool                // a redirection's file may be a secret
	Comments   bool                // the line contains a comment
	simple     bool                // the line is a single command of plain words, and was split without a parser
	Untracked  bool                // a command changes to an unknown directory
	leftOut    map[string][]string // files that Harden excludes from a git command, by the words after git
	zsh        bool                // the line is read as an interactive Zsh reads it, in which # does not begin a comment
}

// Harmless reports whether all commands of the line are known to be harmless.
func (line *Line) Harmless() bool {
	for i := range line.Parts {
		if line.Parts[i].Why != "" {
			return false
		}
	}
	return line.Why == "" && len(line.Parts) > 0
}

// NamesSecret reports whether a word of the line may mean a secret.
func (line *Line) NamesSecret() bool {
	for i := range line.Parts {
		if line.Parts[i].Secret {
			return true
		}
	}
	return line.secret
}

// Reason returns the first reason to ask about the line, or "".
func (line *Line) Reason() string {
	if line.Why != "" {
		return line.Why
	}
	for _, p := range line.Parts {
		if p.Why != "" {
			if len(p.Words) > 0 {
				return p.Words[0].Text + ": " + p.Why
			}
			return p.Why
		}
	}
	return ""
}

// plainWords splits a line of plain words and spaces faster than the parser. Most lines are of this
// kind. For any other line it returns nil.
func plainWords(src string) []word.Word {
	words := make([]word.Word, 0, 8)
	for text := range strings.SplitSeq(src, " ") {
		switch {
		case text == "":
		case !word.Plain(text), len(words) == 0 && strings.IndexByte(text, '=') >= 0:
			return nil
		default:
			words = append(words, word.Word{Text: text, Bare: true})
		}
	}
	if len(words) == 0 || syntax.IsKeyword(words[0].Text) {
		return nil
	}
	return words
}

// Read parses a command line and checks its commands. The syntax tree is nil if parsing fails, or
// if a simple line needs no parser.
func (r *Reader) Read(src string, loc pathname.Location) (*Line, *syntax.File) {
	line := &Line{Location: loc, reader: r, src: src}
	if line.Why = tooMuch(src); line.Why != "" {
		return line, nil
	}
	if line.Why = word.Hidden(src); line.Why != "" {
		return line, nil
	}
	if words := plainWords(src); words != nil {
		line.simple = true
		line.addPart(Part{Words: words})
		return line, nil
	}
	file := parse(src)
	if file == nil {
		line.Why = "cannot be parsed"
		return line, nil
	}
	line.list(file.Stmts)
	if strings.IndexByte(src, '#') >= 0 {
		line.readCommentsAsZsh(file)
	}
	return line, file
}

// readCommentsAsZsh reads a harmless line with comments a second time. Like an interactive Zsh, it
// reads the comments as words. nod asks about a line that is not harmless when it is read in this way.
func (line *Line) readCommentsAsZsh(file *syntax.File) {
	src := withoutComments(line.src, file)
	if line.Comments = src != line.src; !line.Comments || !line.Harmless() {
		return
	}
	again := &Line{Location: line.Location, reader: line.reader, zsh: true}
	other := parse(src)
	for range maxComments { // a comment may contain further comments
		if other == nil {
			break
		}
		next := withoutComments(src, other)
		if next == src {
			break
		}
		src, other = next, parse(next)
	}
	if other == nil || withoutComments(src, other) != src {
		line.Why = "an interactive Zsh takes the comment for words"
		return
	}
	again.src = src
	line.zshReading = again
	again.list(other.Stmts)
	if len(line.leftOut) > 0 || len(again.leftOut) > 0 {
		line.Why = "has a comment, and git commands that may print secrets which git tracks"
	}
	if !again.Harmless() {
		line.Why = "an interactive Zsh takes the comment for words: " + again.Reason()
	}
}

// maxComments is the number of comments within comments that nod reads.
const maxComments = 8

// withoutComments returns the line src with each comment's # escaped, so that the comment is read as
// words. The syntax tree in file tells where the comments are.
func withoutComments(src string, file *syntax.File) string {
	var b strings.Builder
	last := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok && int(c.Hash.Offset()) >= last {
			b.WriteString(src[last:c.Hash.Offset()])
			b.WriteByte('\\')
			last = int(c.Hash.Offset())
		}
		return true
	})
	b.WriteString(src[last:])
	return b.String()
}

// parse returns the syntax tree of src, or nil if src is not correct Bash. It does not repair src,
// because the shell may run another command than the repaired text shows.
func parse(src string) *syntax.File {
	parser := parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(src), "")
	parsers.Put(parser)
	if err != nil {
		return nil
	}
	return file
}

// Refuse sets the reason to ask about the whole line. If the line already has a reason, that reason stays.
func (line *Line) Refuse(why string) {
	if line.Why == "" {
		line.Why = why
	}
}

func (line *Line) list(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		line.stmt(st)
	}
}

func (line *Line) stmt(st *syntax.Stmt) {
	switch {
	case st.Background, st.Coprocess, st.Disown:
		line.Refuse("runs in the background")
	case st.Negated:
		line.Refuse("negates a command")
	}
	from := len(line.Parts)
	for _, r := range st.Redirs {
		line.redirect(r)
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		line.call(c)
	case *syntax.BinaryCmd:
		if chain := cdChain(c); chain != nil {
			line.walkChain(chain)
			break
		}
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			line.Refuse("joins commands by " + c.Op.String())
		}
		line.stmt(c.X)
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
			defer line.markInput(len(line.Parts))
		}
		line.stmt(c.Y)
	case nil:
		line.Refuse("has no command")
	default:
		line.Refuse("is more than simple commands joined by |, &&, || and ;")
	}
	if slices.ContainsFunc(st.Redirs, func(r *syntax.Redirect) bool { return r.Op == syntax.RdrIn }) {
		line.markInput(from)
	}
}

// cdChain returns the statements of a line cd DIR && a && b, if DIR is absolute. For any other line
// it returns nil.
func cdChain(c *syntax.BinaryCmd) (chain []*syntax.Stmt) {
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

// walkChain checks the statements of a line cd DIR && a && b. All statements after cd run in
// DIR, because no statement runs if cd fails.
func (line *Line) walkChain(chain []*syntax.Stmt) {
	was, lost := line.Dirs, line.Lost
	line.stmt(chain[0])
	if to := line.Dirs[min(len(was), len(line.Dirs)):]; len(was) > 0 && len(to) > 0 {
		line.moveTo(slices.Clone(to))
	} else {
		was = nil
	}
	line.Lost = lost && len(line.Dirs) == 0
	line.list(chain[1:])
	line.Lost = lost
	if was != nil {
		for _, d := range line.Dirs {
			if !slices.Contains(was, d) {
				was = append(was[:len(was):len(was)], d)
			}
		}
		line.moveTo(was)
	}
}

func (line *Line) moveTo(dirs []string) {
	line.Dirs = dirs
	line.LeadsToSecret = line.reader.Secrets.MayLeadFrom(&line.Location)
}

func (line *Line) call(c *syntax.CallExpr) {
	p := Part{Words: make([]word.Word, 0, len(c.Args))}
	if len(c.Assigns) > 0 {
		p.Why, p.UnknownWords = "sets a variable, which can change what a command does", true
	}
	for _, a := range c.Args {
		if inner := numberPrinter(a, line.src); inner != nil {
			line.stmt(inner)
			p.Words = append(p.Words, word.Word{Text: "0", Expands: true})
			continue
		}
		w, why := word.Read(a, line.src)
		if why != "" {
			p.UnknownWords = true
			if p.Why == "" {
				p.Why = why
			}
		}
		p.Words = append(p.Words, w)
	}
	line.addPart(p)
}

// addPart adds a simple command to the line, and checks it if all its words are known.
func (line *Line) addPart(p Part) {
	if p.HasUnknownNumber() && !takesNumbers(p.Words) {
		p.UnknownWords = true
		if p.Why == "" {
			p.Why = unknownNumber
		}
	}
	if p.Why == "" {
		p.Why, p.Secret = line.checkCommand(p.Words)
	}
	line.Parts = append(line.Parts, p)
}
