package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Facts are properties of any command line. nod uses Facts to deny, to ask and to describe the
// risk, but never to allow.
type Facts struct {
	Commands  [][]string // every command in the line; sudo rm x also counts as rm x
	Words     []string   // the words of every command, without quotes
	Writes    []string   // files that redirections write
	inexact   []bool     // for each of Commands, whether only the shell knows a word's value, or another program may add words
	piped     []string   // names of commands whose input is a pipe
	subst     bool
	Forbidden string             // the reason why the line must be denied, or ""
	Location  *pathname.Location // the location of the call, including the directories to which the line changes
	// Incomplete means that Facts lacks a part of the line, and that a deny rule could cover this
	// part. The line has too many commands or words, or commands that are nested too deeply.
	Incomplete bool
	secrets    *secrets.Names
	fed        [][]string          // by index in Commands: the words that reach the command from a pipe, a redirection or another command
	partial    map[string][]string // the known parts of words whose whole value only the shell knows, each with the words as the line spells them
	exact      map[string]bool     // the words of the line that nod knows in full, and not only in part
	away       map[string]string   // the words that mean no file of this machine, each with the name of the first machine or container on which it means one
	host       string              // the machine on which the next command runs; "" means this machine
	at         []string            // by index in Commands: the machine on which the command runs
	feeding    []string            // the next command's element of fed
	vars       *variables
	alike      [][][]string       // by index in Commands: the command's words, once for each text that its variables may hold
	others     [][]string         // the next command's element of alike
	meant      []string           // the words of all commands in alike
	gitMoved   bool               // a variable may lead git to other settings
	renamed    bool               // a name may mean another program than usual
	searched   int                // the number of Commands that the method renames has searched
	moved      bool               // a variable may lead a program to another place than its words name
	loose      []bool             // by index in Commands: a word that only the shell knows may be a flag
	looseNext  bool               // the next command's element of loose
	code       []commands.Finding // the harms of code in other languages
	codeTexts  []string           // texts that run as code
	ranInput   bool               // a shell in the line runs its input, and the line contains this input
	shown      []bool             // by index in Commands: the command reads only a here-document in which the shell replaces nothing
	shownNext  bool               // the next command's element of shown
	tooMany    bool               // the line has more commands than Commands has
	cut        bool               // the line is so long that Facts has only its beginning
	harms      [][]commands.Harm  // by index in Commands: the command's harms; nil until they are needed
	long       bool               // the line is beyond a limit of tooMuch, so maxArgv limits its words
	argvWords  int                // the number of words in Commands
	faults     [][]weburl.Fault   // by index in Commands: the faults of its URLs; nil until they are needed
}

// movingVariable matches the names of variables that may lead a program to another place than its words
// name.
var movingVariable = lazyregexp.New(`(?i)proxy|^(PATH|HOME|ENV|BASH_ENV|WGETRC|PG|REDIS|KUBE|(LD|DYLD|XDG|HELM|AWS|GH|GITHUB|GITLAB|GL|MYSQL|DOCKER|NPM_CONFIG|TF|CLOUDSDK|AZURE|ARM|CARGO|TWINE|PULUMI|HEROKU|FLY|RSYNC|RCLONE|CURL|ANSIBLE|SSH)_)`)

// maxFacts is the largest number of commands, and of words, in Facts. A line with more is Incomplete.
const maxFacts = 400

// maxOperands limits the operands of a wrapper, such as sudo. Another command may begin at each
// operand. A line with more operands is Incomplete.
const maxOperands = 64

// maxArgv is the largest number of words, in all commands together, of a line that is too long to allow. A
// line with more is Incomplete.
const maxArgv = 2000

// maxText is the length, in bytes, up to which Facts searches a line that nod cannot parse.
const maxText = 4 << 10

// Facts collects the facts of a line from its syntax tree. If nod cannot parse the line, Facts uses
// the line's text.
func (r *Reader) Facts(line *Line, file *syntax.File, src string, loc *pathname.Location) *Facts {
	if len(line.Dirs) > 0 {
		loc = &line.Location // this location includes the directories to which the line changes
	}
	whole := src
	src = src[:min(len(src), maxCommand)]
	f := &Facts{Location: loc, secrets: r.Secrets}
	if line.simple {
		f.addCommand(texts(line.Parts[0].Words), false, 0)
		f.ownWrites(false)
		return f
	}
	if file == nil {
		src, f.cut = src[:min(len(src), maxText)], len(whole) > maxText
		if ownCommandText.MatchString(src) {
			f.Forbidden = OwnCommandDenied
		}
		for _, w := range strings.FieldsFunc(src, func(r rune) bool { return r <= ' ' || strings.ContainsRune("'\"`;|&()<>", r) }) {
			f.addWords([]string{w})
		}
		if long := parseLong(whole); long != nil {
			f.cut, f.long = false, true
			f.walk(long, whole, 0)
			f.ownWrites(true)
			return f
		}
		for line := range strings.FieldsFuncSeq(src, func(r rune) bool { return strings.ContainsRune("\n;|&()`{}", r) }) {
			if argv := strings.Fields(line); len(argv) > 0 {
				f.addArgv(argv, true)
			}
		}
		f.ownWrites(true)
		return f
	}
	f.walk(file, src, 0)
	f.ownWrites(false)
	return f
}

// maxLong is the length, in bytes, up to which Facts parses a line that is too long to allow. People may not
// read such a line to its end, for example a here-document, so nod looks for harms in it.
const maxLong = 64 << 10

// parseLong returns the syntax tree of a line that exceeds a limit of tooMuch, or nil for any other line. It
// also returns nil if the line is beyond the wider limits of Facts, or is not correct Bash.
func parseLong(src string) *syntax.File {
	if tooMuch(src) == "" || len(src) > maxLong || depthOf(src) > maxNesting {
		return nil
	}
	file := parse(src)
	if file == nil || len(allCalls(file)) > maxJoints {
		return nil
	}
	return file
}

// depthOf returns the greatest number of brackets that are open at once.
func depthOf(src string) (deepest int) {
	depth := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
		deepest = max(deepest, depth)
	}
	return deepest
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
	if f.vars == nil { // a command line within another one also has the outer line's variables
		f.vars = &variables{values: map[string][]string{}, from: map[string][]string{}, refs: map[string]bool{}}
	}
	outerSure := f.vars.sure
	f.vars.sure = map[string]uint{} // offsets in the outer line mean nothing in the inner line
	defer func() { f.vars.sure = outerSure }()
	in := flows{src: src, into: map[*syntax.CallExpr][]string{}, vars: f.vars}
	if strings.Contains(src, "$") {
		f.vars.learn(file, &in)
	}
	var inputs []codeInput
	shown := map[*syntax.CallExpr]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			in.callExpr(n)
			outer := f.feeding
			f.feeding = append(outer[:len(outer):len(outer)], in.into[n]...)
			outerShown := f.shownNext
			f.shownNext = shown[n]
			f.callExpr(n, src, depth)
			f.feeding, f.shownNext = outer, outerShown
		case *syntax.Stmt:
			in.redirects(n)
			f.sockets(n, &in)
			inputs = append(inputs, inputsOf(n, src)...)
			if c, ok := n.Cmd.(*syntax.CallExpr); ok && readsShownText(n) {
				shown[c] = true
			}
		case *syntax.Assign:
			f.gitMoved = f.gitMoved || n.Name == nil || strings.HasPrefix(n.Name.Value, "GIT_") || n.Name.Value == "HOME" || n.Name.Value == "XDG_CONFIG_HOME"
			f.moved = f.moved || n.Name == nil || movingVariable.MatchString(n.Name.Value)
		case *syntax.FuncDecl:
			f.renamed = true
		case *syntax.Redirect:
			w, known := word.Known(n.Word, src)
			f.spell(w, known, n.Word, src)
			switch n.Op {
			case syntax.DplOut, syntax.DplIn, syntax.RdrIn, syntax.WordHdoc, syntax.Hdoc, syntax.DashHdoc:
				f.note(w, false)
				f.Words = append(f.Words, w)
				if n.Op == syntax.DplOut && !commands.IsCount("-"+w) && w != "-" {
					f.Writes = append(f.Writes, w)
				}
			default:
				if w != "/dev/null" {
					f.note(w, false)
					f.Writes = append(f.Writes, w)
				}
			}
		case *syntax.CmdSubst, *syntax.ProcSubst:
			f.subst = true
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				in.feed(n.Y, in.words(n.X))
				inputs = append(inputs, codeFor(n.Y, printed(n.X, src), src)...)
				if c, ok := n.Y.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
					w, _ := word.Known(c.Args[0], src)
					f.piped = append(f.piped, w)
				}
			}
		}
		return true
	})
	for _, input := range inputs { // code in the input comes last, because the number of commands is limited
		f.addCode(input.lang, input.text, depth)
	}
}

func (f *Facts) callExpr(c *syntax.CallExpr, src string, depth int) {
	argv, inexact := make([]string, 0, len(c.Args)), false
	f.looseNext = false
	for i, a := range c.Args {
		w, known := word.Known(a, src)
		if !known && i > 0 && !f.vars.isSure(a) && (isSplit(a) || strings.HasPrefix(w, "-") || w == "" && !commands.TakesValue(argv[0], argv[i-1])) {
			f.looseNext = true
		}
		argv, inexact = append(argv, w), inexact || !known
		f.spell(w, known, a, src)
	}
	outer := f.others
	f.others = f.vars.alternatives(c, argv)
	for _, other := range f.others {
		f.meant = bounded(f.meant, other, maxFacts)
	}
	f.addCommand(argv, inexact, depth)
	f.others = outer
	f.runVariable(c, depth)
}

// runVariable adds the commands whose words a variable holds, as in C='rm x'; $C.
func (f *Facts) runVariable(c *syntax.CallExpr, depth int) {
	if len(c.Args) == 0 {
		return
	}
	for _, text := range f.vars.fill(c.Args[0]) {
		if file := parse(text); file != nil && strings.Contains(text, " ") && depth <= 2 {
			f.walk(file, text, depth+1)
		}
	}
}

// isSplit reports whether the shell may make several words of a word.
func isSplit(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			return true
		case *syntax.DblQuoted: // "$@" is many words
			return slices.ContainsFunc(p.Parts, func(p syntax.WordPart) bool {
				e, ok := p.(*syntax.ParamExp)
				return ok && (e.Index != nil || e.Param != nil && e.Param.Value == "@")
			})
		}
		return false
	})
}

// addCommand adds a command, and the commands of a command line among its words, as in bash -c
// LINE.
func (f *Facts) addCommand(argv []string, inexact bool, depth int) {
	f.addWords(argv)
	if len(argv) == 0 {
		return
	}
	f.addArgv(argv, inexact)
	wraps := commands.Entry(commands.ProgramName(argv[0])).Wraps
	for i := range argv[:min(len(argv), maxOperands)] {
		if i == 0 || wraps {
			f.addInlineCode(argv[i:], depth)
		}
	}
	for i, a := range argv {
		name := commands.ProgramName(a)
		if !commands.Entry(name).Interprets && name != "trap" && name != "alias" {
			continue
		}
		if depth > 2 {
			f.Incomplete = true
			return
		}
		inside := argv[i+1:]
		outer := f.host
		f.host = cmp.Or(outer, commands.HostOf(argv[i:]))
		for _, other := range f.others {
			for k := i + 1; len(other) == len(argv) && k < len(argv); k++ {
				if other[k] != argv[k] {
					inside = append(inside[:len(inside):len(inside)], other[k])
				}
			}
		}
		for _, inner := range inside {
			if name == "alias" {
				_, inner, _ = strings.Cut(inner, "=")
			}
			if strings.ContainsAny(inner, " ;|&\n") {
				if file := parse(inner); file != nil {
					f.walk(file, inner, depth+1)
				} else if ownCommandText.MatchString(inner) {
					f.Forbidden = OwnCommandDenied
				}
			}
		}
		if name == "eval" && i+1 < len(argv) {
			if file := parse(strings.Join(argv[i+1:], " ")); file != nil {
				f.walk(file, strings.Join(argv[i+1:], " "), depth+1)
			}
		}
		f.host = outer
		break
	}
}

func (f *Facts) addWords(words []string) {
	if len(f.Words) >= maxFacts {
		f.Incomplete = true
		return
	}
	away := commands.Away(words)
	for i, w := range words {
		f.note(w, away[i])
	}
	f.Words = append(f.Words, words...)
}

// addArgv adds a command. If the command is a wrapper, such as sudo, addArgv also adds every
// command that the wrapper's words may mean.
func (f *Facts) addArgv(argv []string, inexact bool) {
	f.addOne(argv, inexact)
	if !commands.Entry(commands.ProgramName(argv[0])).Wraps {
		return
	}
	operands := 0
	for i := 1; i < len(argv); i++ {
		if variable, _, with := strings.Cut(argv[i], "="); with && movingVariable.MatchString(variable) {
			f.moved = true
		}
		if strings.HasPrefix(argv[i], "-") || strings.Contains(argv[i], "=") {
			continue
		}
		if operands++; operands > maxOperands {
			f.Incomplete = true
			return
		}
		f.addOne(argv[i:], true)
	}
}

func (f *Facts) addOne(argv []string, inexact bool) {
	f.ownCommand(argv)
	if len(f.Commands) >= maxFacts || f.long && f.argvWords >= maxArgv {
		f.Incomplete, f.tooMany = true, true
		return
	}
	full := len(argv)
	if f.long && full > maxArgv-f.argvWords {
		f.Incomplete, f.cut = true, true
		argv = argv[:maxArgv-f.argvWords]
	}
	f.argvWords += len(argv)
	f.Commands, f.inexact, f.fed = append(f.Commands, argv), append(f.inexact, inexact), append(f.fed, f.feeding)
	f.loose, f.at, f.shown = append(f.loose, f.looseNext), append(f.at, f.host), append(f.shown, f.shownNext)
	var alike [][]string
	for _, other := range f.others {
		if from := len(other) - full; from >= 0 {
			alike = append(alike, other[from:from+len(argv)])
		}
	}
	f.alike = append(f.alike, alike)
}
