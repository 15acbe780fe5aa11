package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Script is a command line as Bash runs it in a process of its own. It has all simple commands of the
// line, including those in loops, subshells and substitutions. Unlike a Line, a Script may have any
// form of syntax, and does not tell which commands are harmless.
type Script struct {
	pathname.Location         // the directories in which the script starts
	Steps             []Step  // the simple commands, in the order of the text
	Why               string  // the reason why the script cannot be read as a whole, or ""
	Background        bool    // a command runs in the background
	depth             int     // the number of enclosing scripts
	names             *memory // the known values of variables
}

// Step is one simple command of a Script.
type Step struct {
	Words     []Term
	Assigns   []Assign // variables for this command; if the step has no command, for all later steps
	Redirects []Redirect
	Dirs      []string // the directories in which the command may run; empty if unknown
	Piped     bool     // the command's input is the output of another command
}

// Term is a word of a Step. Its text may be known only in part.
type Term struct {
	Text  string // the word without quotes and without its unknown parts
	Known bool   // Text is the whole word, because no part depends on a variable or a command
	Glob  bool   // the shell may expand the word to file names
	Tilde bool   // the word starts with an unquoted ~
	// Splits means that the word may be several words, or none, because the shell splits an unknown
	// part of the word at spaces.
	Splits bool
	open   string // the text before the first unknown part
}

// Before returns the text of the word before its first unknown part.
func (t Term) Before() string {
	if t.Known {
		return t.Text
	}
	return t.open
}

// Assign is a variable that a Step sets.
type Assign struct {
	Name     string
	Value    Term
	Exported bool // a command such as export passes the variable on to later commands
}

// A RedirectKind is the effect of a redirection on its file.
type RedirectKind int

const (
	ReadsFile RedirectKind = iota
	Truncates
	Appends
	ReadsText // reads a here-document or here-string, whose text is in the field File
)

// Redirect is a redirection of a Step to or from a file. Redirections between descriptors are left out.
type Redirect struct {
	Kind RedirectKind
	File Term
}

// maxDepth limits the nesting of scripts, as in bash -c "bash -c ls".
const maxDepth = 4

// ReadScript reads a command line as a Script.
func ReadScript(src string, loc pathname.Location) *Script {
	s := &Script{Location: loc}
	s.read(src)
	return s
}

// Inner reads a command line that a command of s runs, such as the word after bash -c. The argument dirs
// has the directories in which the command line may start.
func (s *Script) Inner(src string, dirs []string) *Script {
	in := &Script{Location: s.Location, depth: s.depth + 1}
	if in.Dirs = dirs; in.depth > maxDepth {
		in.Why = "runs too many command lines inside each other"
		return in
	}
	in.read(src)
	return in
}

func (s *Script) read(src string) {
	if s.Why = tooMuch(src); s.Why != "" {
		return
	}
	if s.Why = word.Hidden(src); s.Why != "" {
		return
	}
	file := parse(src)
	if file == nil {
		s.Why = "cannot be parsed"
		return
	}
	s.names = remember(file, s.Home)
	if hidden := hiddenCommand(file); hidden != "" {
		s.Why = hidden
		return
	}
	w := scriptWalker{script: s, dirs: s.Dirs}
	for _, st := range file.Stmts {
		w.stmt(st)
		s.names.learn(st, &w)
	}
	if s.Why == "" && len(s.Steps) == 0 {
		s.Why = "has no command"
	}
}

func (s *Script) refuse(why string) {
	if s.Why == "" {
		s.Why = why
	}
}

const maxSteps = 200

func (s *Script) add(st Step) {
	if len(s.Steps) >= maxSteps {
		s.refuse("has too many parts to check")
		return
	}
	s.Steps = append(s.Steps, st)
}

type scriptWalker struct {
	script *Script
	dirs   []string // the directories in which the next command may run
	lost   bool     // a command has changed to an unknown directory
	piped  bool     // the next command's input is a pipe
}

func (w *scriptWalker) list(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		w.stmt(st)
	}
}

func (w *scriptWalker) stmt(st *syntax.Stmt) {
	if st == nil {
		return
	}
	if st.Coprocess || st.Disown {
		w.script.refuse("runs in the background in a way that nod does not follow")
	}
	w.script.Background = w.script.Background || st.Background
	w.command(st.Cmd, w.redirects(st.Redirs))
}

// command adds the steps of one command. The argument redirects has the redirections of the whole command.
func (w *scriptWalker) command(cmd syntax.Command, redirects []Redirect) {
	if call, ok := cmd.(*syntax.CallExpr); ok {
		w.call(call, redirects)
		return
	}
	if len(redirects) > 0 || cmd == nil {
		w.script.add(Step{Redirects: redirects, Dirs: w.here()})
	}
	switch c := cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.stmt(c.X)
		before := w.piped
		w.piped = before || c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		w.stmt(c.Y)
		w.piped = before
	case *syntax.Subshell:
		w.list(c.Stmts)
	case *syntax.Block:
		w.list(c.Stmts)
	case *syntax.IfClause:
		for part := c; part != nil; part = part.Else {
			w.list(part.Cond)
			w.list(part.Then)
		}
	case *syntax.WhileClause:
		w.twice(c.Cond, c.Do)
	case *syntax.ForClause:
		if loop, ok := c.Loop.(*syntax.WordIter); ok && !c.Select {
			for _, item := range loop.Items {
				w.term(item)
			}
		} else {
			w.script.refuse("has a loop that nod does not follow")
		}
		w.twice(c.Do)
	case *syntax.CaseClause:
		w.term(c.Word)
		for _, item := range c.Items {
			w.list(item.Stmts)
		}
	case *syntax.TestClause:
		w.substitutions(c)
	case *syntax.DeclClause:
		w.declaration(c)
	case *syntax.TimeClause:
		w.stmt(c.Stmt)
	case *syntax.FuncDecl:
		w.script.refuse("defines a function, which may have the name of a program")
	default:
		w.script.refuse("has a form that nod does not follow")
	}
}

// twice walks the body of a loop. A cd in the body changes the directory for the next round. If the
// directories have changed, twice walks the body a second time.
func (w *scriptWalker) twice(lists ...[]*syntax.Stmt) {
	before := len(w.dirs)
	for _, l := range lists {
		w.list(l)
	}
	if len(w.dirs) != before {
		for _, l := range lists {
			w.list(l)
		}
	}
}

// declaration adds the variables of export, local, readonly and declare.
func (w *scriptWalker) declaration(c *syntax.DeclClause) {
	if c.Variant.Value != "export" && c.Variant.Value != "local" && c.Variant.Value != "readonly" {
		w.script.refuse("declares a variable in a way that nod does not follow")
	}
	st := Step{Dirs: w.here()}
	for _, a := range c.Args {
		if a.Name == nil && a.Value != nil {
			w.term(a.Value)
			w.script.refuse("declares a variable in a way that nod does not follow")
		}
		set := w.assign(a)
		set.Exported = true
		st.Assigns = append(st.Assigns, set)
	}
	w.script.add(st)
}

func (w *scriptWalker) assign(a *syntax.Assign) Assign {
	out := Assign{Value: Term{Known: true}}
	if a.Name != nil {
		out.Name = a.Name.Value
	}
	if a.Index != nil {
		w.script.refuse("sets a variable by an index")
	}
	if a.Array != nil {
		out.Value.Known = false
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				w.term(e.Value)
			}
		}
	}
	if a.Value != nil {
		out.Value = w.term(a.Value)
	}
	return out
}

func (w *scriptWalker) call(c *syntax.CallExpr, redirects []Redirect) {
	st := Step{Redirects: redirects, Piped: w.piped, Dirs: w.here()}
	for _, a := range c.Assigns {
		st.Assigns = append(st.Assigns, w.assign(a))
	}
	for _, a := range c.Args {
		st.Words = append(st.Words, w.term(a))
	}
	w.script.add(st)
	if len(st.Words) > 0 && st.Words[0].Known {
		w.changeDir(st.Words)
	}
}

// here returns the directories in which the next command may run, or nil if they are unknown.
func (w *scriptWalker) here() []string {
	if w.lost {
		return nil
	}
	return w.dirs
}

// changeDir follows cd. The cd may fail, or may not run in the current shell, so later commands may
// run in the old or in the new directory.
func (w *scriptWalker) changeDir(words []Term) {
	switch words[0].Text {
	case "pushd", "popd":
		w.lost = true
		return
	case "cd":
		words = words[1:]
	case "builtin", "command":
		w.lost = w.lost || len(words) > 1 && (!words[1].Known || words[1].Text == "cd" || words[1].Text == "pushd" || words[1].Text == "popd")
		return
	default:
		return
	}
	if len(words) > 0 && words[0].Known && words[0].Text == "--" {
		words = words[1:]
	}
	if len(words) != 1 || !words[0].Known || words[0].Glob || words[0].Text == "" || words[0].Text[0] == '-' || len(w.dirs) == 0 || len(w.dirs) > 8 {
		w.lost = true
		return
	}
	at := w.script.Location
	at.Dirs = w.dirs
	to := words[0].Text
	if to[0] == '~' && !words[0].Tilde {
		to = "./" + to
	}
	found := at.Resolve(to)
	if len(found) == 0 {
		w.lost = true
		return
	}
	for _, d := range found {
		w.dirs = withText(w.dirs, d)
	}
}

func withText(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list[:len(list):len(list)], s)
}
