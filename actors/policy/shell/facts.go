package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Facts hold the properties of any command line, harmless or not. They serve to deny,
// to ask and to name the risk, never to allow.
type Facts struct {
	Commands  [][]string // every command in the line; for sudo rm x, also rm x
	Words     []string   // the words of every command, without quotes
	Writes    []string   // files that redirections write
	piped     []string   // names of commands that read a pipe
	subst     bool
	Forbidden string             // the reason to deny the line; "" if there is none
	Location  *pathname.Location // with the directories that the line changes to
	// Incomplete is set if the line has more commands or words than Facts hold, or commands
	// nested deeper than they are read: a deny rule may then cover it unseen.
	Incomplete bool
	secrets    *secrets.Names
}

// maxFacts limits the commands and the words that are kept of a line. A line with more is
// Incomplete.
const maxFacts = 400

// maxOperands limits the operands of a wrapper, such as sudo, that are read as the beginning
// of the command that it runs. A line with more is Incomplete.
const maxOperands = 64

// maxText is the number of bytes of an unparsable line that are searched.
const maxText = 4 << 10

// Facts collects the facts of a line from its whole tree, or from its text if the
// line cannot be parsed.
func (r *Reader) Facts(line *Line, file *syntax.File, src string, loc *pathname.Location) *Facts {
	if len(line.Dirs) > 0 {
		loc = &line.Location // with the directories that the line changes to
	}
	src = src[:min(len(src), maxCommand)]
	f := &Facts{Location: loc, secrets: r.Secrets}
	if line.simple {
		argv := make([]string, len(line.Parts[0].Words))
		for i, w := range line.Parts[0].Words {
			argv[i] = w.Text
		}
		f.addCommand(argv, 0)
		f.ownWrites(false)
		return f
	}
	if file == nil {
		src = src[:min(len(src), maxText)]
		if ownCommandText.MatchString(src) {
			f.Forbidden = OwnCommandDenied
		}
		for _, w := range strings.FieldsFunc(src, func(r rune) bool { return r <= ' ' || strings.ContainsRune("'\"`;|&()<>", r) }) {
			f.addWords([]string{w})
		}
		for line := range strings.FieldsFuncSeq(src, func(r rune) bool { return strings.ContainsRune("\n;|&()`{}", r) }) {
			if argv := strings.Fields(line); len(argv) > 0 {
				f.addArgv(argv)
			}
		}
		f.ownWrites(true)
		return f
	}
	f.walk(file, src, 0)
	f.ownWrites(false)
	return f
}

func allCalls(n syntax.Node) (calls []*syntax.CallExpr) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			calls = append(calls, c)
		}
		return true
	})
	return calls
}

func (f *Facts) walk(file *syntax.File, src string, depth int) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			f.callExpr(n, src, depth)
		case *syntax.Redirect:
			w, _ := word.Known(n.Word, src)
			switch n.Op {
			case syntax.DplOut, syntax.DplIn, syntax.RdrIn, syntax.WordHdoc, syntax.Hdoc, syntax.DashHdoc:
				f.Words = append(f.Words, w)
				if n.Op == syntax.DplOut && !commands.IsCount("-"+w) && w != "-" {
					f.Writes = append(f.Writes, w)
				}
			default:
				if w != "/dev/null" {
					f.Writes = append(f.Writes, w)
				}
			}
		case *syntax.CmdSubst, *syntax.ProcSubst:
			f.subst = true
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				if c, ok := n.Y.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
					w, _ := word.Known(c.Args[0], src)
					f.piped = append(f.piped, w)
				}
			}
		}
		return true
	})
}

func (f *Facts) callExpr(c *syntax.CallExpr, src string, depth int) {
	argv := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		w, _ := word.Known(a, src)
		argv = append(argv, w)
	}
	f.addCommand(argv, depth)
}

// addCommand adds a command and the command lines in its words, as in bash -c LINE.
func (f *Facts) addCommand(argv []string, depth int) {
	f.addWords(argv)
	if len(argv) == 0 {
		return
	}
	f.addArgv(argv)
	for i, a := range argv {
		if !commands.Entry(commands.ProgramName(a)).Interprets {
			continue
		}
		if depth > 2 {
			f.Incomplete = true
			return
		}
		for _, inner := range argv[i+1:] {
			if strings.ContainsAny(inner, " ;|&\n") {
				if file := parse(inner); file != nil {
					f.walk(file, inner, depth+1)
				} else if ownCommandText.MatchString(inner) {
					f.Forbidden = OwnCommandDenied
				}
			}
		}
		if commands.ProgramName(a) == "eval" && i+1 < len(argv) {
			if file := parse(strings.Join(argv[i+1:], " ")); file != nil {
				f.walk(file, strings.Join(argv[i+1:], " "), depth+1)
			}
		}
		break
	}
}

func (f *Facts) addWords(words []string) {
	if room := maxFacts - len(f.Words); len(words) > room {
		words, f.Incomplete = words[:room], true
	}
	f.Words = append(f.Words, words...)
}

// addArgv adds a command and, for a wrapper such as sudo, each command that it may run.
func (f *Facts) addArgv(argv []string) {
	f.addOne(argv)
	if !commands.Entry(commands.ProgramName(argv[0])).Wraps {
		return
	}
	operands := 0
	for i := 1; i < len(argv); i++ {
		if strings.HasPrefix(argv[i], "-") || strings.Contains(argv[i], "=") {
			continue
		}
		if operands++; operands > maxOperands {
			f.Incomplete = true
			return
		}
		f.addOne(argv[i:])
	}
}

func (f *Facts) addOne(argv []string) {
	f.ownCommand(argv)
	if len(f.Commands) >= maxFacts {
		f.Incomplete = true
		return
	}
	f.Commands = append(f.Commands, argv)
}
