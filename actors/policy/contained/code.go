package contained

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/shell"
)

type interpreter struct {
	inline string   // letters of the flags whose value is code
	long   string   // the long flag whose value is code
	valued []string // flags whose value is the next word
	last   bool     // whether the words after the code are arguments of the code
	flags  string   // letters of harmless flags without a value
	longs  string   // harmless long flags without a value, or with a value after =
}

var interpreters = map[string]*interpreter{
	"python":  {inline: "c", valued: []string{"-W", "-X"}, last: true, flags: "bBdEhIOqsSuvVxP?", longs: "--version --help --check-hash-based-pycs"},
	"node":    {inline: "ep", long: "--eval", valued: []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"}, flags: "cvhi", longs: nodeFlags},
	"ruby":    {inline: "e", valued: []string{"-I", "-r", "-C", "-E"}, flags: "acdhlnpsSvwWyU0", longs: "--version --help --yjit --jit --encoding --verbose --disable --enable"},
	"perl":    {inline: "eE", valued: []string{"-I"}, flags: "acdhlnpsStTuUvwWX0FM", longs: "--version --help"},
	"php":     {inline: "rBRE", valued: []string{"-d", "-c", "-z"}, flags: "ahilmnqsvw", longs: "--version --ini --run"},
	"lua":     {inline: "e", valued: []string{"-l"}, flags: "vEWi"},
	"tsx":     {inline: "e", long: "--eval", flags: "v", longs: "--version --help " + nodeFlags},
	"ts-node": {inline: "e", long: "--eval", valued: []string{"-r", "--require", "-P", "--project"}, flags: "vhTs", longs: "--version --help --transpile-only --esm --files --swc"},
	"sh":      shellInterpreter(), "bash": shellInterpreter(), "dash": shellInterpreter(), "zsh": shellInterpreter(), "ksh": shellInterpreter(),
}

const nodeFlags = "--version --help --eval --print --check --test --test-only --test-name-pattern --test-reporter --test-concurrency --test-timeout --watch --watch-path --no-warnings --trace-warnings --trace-uncaught --trace-deprecation --throw-deprecation --unhandled-rejections --enable-source-maps --max-old-space-size --max-http-header-size --stack-trace-limit --stack-size --expose-gc " +
	"--experimental-vm-modules --experimental-strip-types --experimental-transform-types --experimental-test-coverage --experimental-specifier-resolution --experimental-fetch --experimental-global-webcrypto --experimental-modules --experimental-json-modules --experimental-wasm-modules --experimental-sqlite --experimental-default-type --input-type --preserve-symlinks --dns-result-order --icu-data-dir --v8-options --no-deprecation --pending-deprecation --interactive --conditions"

func shellInterpreter() *interpreter {
	return &interpreter{inline: "c", valued: []string{"-o", "-O", "+o", "+O", "--rcfile", "--init-file"}, last: true, flags: "abefhiklmnprstuvxBCDEHPT", longs: "--login --norc --noprofile --posix --verbose --version --help --noediting --restricted"}
}

// programOf returns the name under which the tables of this package list a program. For example,
// python3.11 is listed as python, and gsed as sed.
func programOf(name string) string {
	if other := otherNames[name]; other != "" {
		return other
	}
	if base := strings.TrimRight(name, "0123456789.-"); interpreters[base] != nil {
		return base
	}
	return name
}

var otherNames = map[string]string{
	"python3": "python", "pypy3": "python", "pypy": "python", "ipython": "python", "ipython3": "python", "nodejs": "node", "luajit": "lua", "ash": "sh", "mksh": "sh", "rbash": "bash",
	"nawk": "awk", "original-awk": "awk", "gsed": "sed", "gtar": "tar", "gfind": "find", "gxargs": "xargs", "grm": "rm", "gmv": "mv", "gcp": "cp", "gln": "ln",
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true}

// interprets checks an interpreter, which may run a file of the project. Code in the command line
// must not delete or overwrite files, or start programs.
func (c *command) interprets() {
	in := interpreters[c.name]
	ran := false
	for i := 0; i < len(c.args); i++ {
		t := c.args[i]
		if !t.Known && t.Before() == "" {
			c.refuse("runs code that is not known")
			return
		}
		text := t.Text
		if !strings.HasPrefix(text, "-") || text == "-" || text == "--" {
			if !ran {
				c.runsFile(i, t)
			}
			if i > 0 && text != "--" { // the word may be the value of the previous flag
				c.laterCode(in, i+1)
			}
			return
		}
		if c.name == "php" && strings.HasPrefix(text, "--") && text != "--version" && text != "--ini" {
			c.refuse(text + " is not a flag that nod knows")
			return
		}
		if strings.Contains(text, "data:") || i+1 < len(c.args) && strings.HasPrefix(c.args[i+1].Text, "data:") {
			c.refuse("runs code that nod does not read")
			return
		}
		if slices.Contains(in.valued, text) {
			if i++; i < len(c.args) {
				c.loads(c.args[i])
			}
			continue
		}
		if m := strings.IndexByte(text, 'm'); c.name == "python" && m > 0 && !strings.HasPrefix(text, "--") && !strings.ContainsAny(text[:m], "cWX") {
			module := shell.Term{Text: "-m" + text[m+1:], Known: t.Known}
			c.runsModule(append([]shell.Term{module}, c.args[i+1:]...))
			return
		}
		if code, is := in.code(text, c.args[i+1:]); is {
			if c.runsCode(code); in.last {
				return
			}
			ran = true
			if code.Text != "" && i+1 < len(c.args) && code.Text == c.args[i+1].Text {
				i++
			}
		}
		if why := in.stray(text); why != "" {
			c.refuse(why)
			return
		}
		part := t
		for _, value := range append(flagValue(text), attachedValue(text)) {
			part.Text = value
			c.loads(part)
		}
		if strings.HasPrefix(c.name, "perl") && strings.Contains(text, "i") || c.name == "ruby" && strings.HasPrefix(text, "-i") {
			c.refuse("edits files in place")
			return
		}
	}
	if !ran {
		c.runsInput()
	}
}

// loads checks the value of an interpreter's flag, which may be a file with code or a directory
// of such files.
func (c *command) loads(t shell.Term) {
	if !strings.ContainsAny(t.Text, "/.") {
		return
	}
	for _, text := range append(flagValue(t.Text), t.Text) {
		t.Text = text
		for _, p := range c.resolve(t) {
			if inPrivate(c.script, p) || isData(p) {
				c.readsCode(p)
			}
		}
	}
}

// stray returns the reason to ask about a flag that may run code. It returns "" for a harmless flag.
func (in *interpreter) stray(text string) string {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case strings.HasPrefix(text, "--"):
		if !contains(in.longs, name) && !slices.Contains(in.valued, name) && name != in.long && name != "--print" {
			return name + " is not a flag that nod knows"
		}
	case strings.HasPrefix(text, "+"):
	default:
		for i, l := range text[1:] {
			if strings.ContainsRune(in.inline, l) || slices.Contains(in.valued, "-"+string(l)) || l >= '0' && l <= '9' {
				return ""
			}
			if !strings.ContainsRune(in.flags, l) {
				return "-" + text[1+i:] + " is not a flag that nod knows"
			}
		}
	}
	return ""
}

// laterCode checks the code in the flags of all words from the index i on.
func (c *command) laterCode(in *interpreter, i int) {
	for ; i < len(c.args); i++ {
		if !strings.HasPrefix(c.args[i].Text, "-") {
			continue
		}
		if code, is := in.code(c.args[i].Text, c.args[i+1:]); is {
			c.runsCode(code)
		}
	}
}

// code returns the code in a flag, and whether the flag takes code. If the code is not known, the
// Term is unknown.
func (in *interpreter) code(flag string, rest []shell.Term) (shell.Term, bool) {
	next := shell.Term{}
	if len(rest) > 0 {
		next = rest[0]
	}
	name, value, eq := strings.Cut(flag, "=")
	switch {
	case strings.HasPrefix(flag, "--") && in.long != "" && (name == in.long || name == "--print"):
		if eq {
			return shell.Term{Text: value, Known: true}, true
		}
		return next, true
	case strings.HasPrefix(flag, "--"):
		return next, false
	}
	at := strings.IndexAny(flag, in.inline)
	if at < 1 || in.inline == "ep" && strings.HasPrefix(next.Text, "-") {
		return next, false
	}
	if at+1 < len(flag) && in.inline != "c" && in.inline != "ep" {
		return shell.Term{Text: flag[at+1:], Known: true}, true
	}
	return next, true
}

func (c *command) runsFile(i int, t shell.Term) {
	if t.Text == "-" || t.Text == "--" || input(t.Text) {
		c.args = nil
		c.runsInput()
		return
	}
	all := c.resolve(t)
	if len(all) == 0 || t.Glob {
		c.refuse("runs code that is not known")
		return
	}
	for _, p := range all {
		c.readsCode(p)
	}
	rest := *c
	rest.args = c.args[i+1:]
	rest.targets()
}

func (c *command) runsModule(args []shell.Term) {
	module := strings.TrimPrefix(args[0].Text, "-m")
	if module == "" && len(args) > 1 {
		if module = args[1].Text; !args[1].Known {
			module = ""
		}
		args = args[1:]
	}
	switch module {
	case "":
		c.refuse("runs a module that is not known")
	case "pip", "pip3":
		c.again(append([]shell.Term{{Text: "pip", Known: true}}, args[1:]...))
	default:
		if actingModules[module] || module == "venv" && slices.ContainsFunc(args, func(t shell.Term) bool { return strings.HasPrefix(t.Text, "--c") }) {
			c.refuse("-m " + module + " may overwrite files or run code")
		}
		rest := *c
		rest.args = args[1:]
		rest.targets()
	}
}

// actingModules are modules of Python's library that run code from the command line, or that write
// files which the caller names.
var actingModules = set("timeit zipfile tarfile zipapp json.tool pdb cProfile profile trace code sqlite3 runpy fileinput lib2to3 pydoc asyncio gzip idlelib twine ensurepip shelve bdb " +
	"base64 uu quopri rimraf pickle")

// input reports whether a path names a command's input or another open stream, such as
// /dev/stdin.
func input(p string) bool {
	return p == "/dev/stdin" || strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/proc/")
}

// runsInput checks an interpreter that reads its code from its input.
func (c *command) runsInput() {
	for _, r := range c.Redirects {
		if r.Kind == shell.ReadsText {
			c.runsCode(r.File)
			return
		}
		if all := c.resolve(r.File); r.Kind == shell.ReadsFile && len(all) > 0 && !r.File.Glob {
			for _, p := range all { // check a file with code as if an operand named it
				c.readsCode(p)
			}
			return
		}
	}
	if len(c.args) == 0 && !c.Piped && len(c.Redirects) == 0 {
		return // without input the interpreter prints its version or waits
	}
	for _, t := range c.args {
		if t.Text == "--version" || t.Text == "-V" || t.Text == "-v" || t.Text == "--help" || t.Text == "--test" {
			return
		}
	}
	c.refuse("runs code that is not known")
}

// runsScript checks the commands "source" and ".", which run a file in the same shell as the rest of the
// command line.
func (c *command) runsScript() {
	if len(c.args) == 0 || !c.args[0].Known {
		c.refuse("runs code that is not known")
		return
	}
	c.runsFile(0, c.args[0])
}

// evaluates checks eval, trap and similar commands, whose words are a command line.
func (c *command) evaluates() {
	var text []string
	for _, t := range c.args {
		if !t.Known {
			c.refuse("runs code that is not known")
			return
		}
		text = append(text, t.Text)
	}
	if c.name == "trap" {
		text = text[:min(1, len(text))]
	}
	if line := strings.Join(text, " "); line != "" && line != "-" {
		c.all(c.script.Inner(line, c.Dirs))
	}
}
