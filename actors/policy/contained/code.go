package contained

import (
	"regexp"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// An interpreter runs code from a flag, a file or its input.
type interpreter struct {
	inline string // letters of the flags whose value is code
	long   string // the long flag whose value is code
	valued []string
}

var interpreters = map[string]*interpreter{
	"python": {inline: "c", valued: []string{"-W", "-X"}}, "python3": {inline: "c", valued: []string{"-W", "-X"}}, "node": {inline: "ep", long: "--eval", valued: []string{"-r", "--require"}},
	"ruby": {inline: "e", valued: []string{"-I", "-r"}}, "perl": {inline: "eE"}, "php": {inline: "rBRE"}, "lua": {inline: "e"}, "tsx": {inline: "e", long: "--eval"}, "ts-node": {inline: "e", long: "--eval"},
	"sh": {inline: "c"}, "bash": {inline: "c"}, "dash": {inline: "c"}, "zsh": {inline: "c"}, "ksh": {inline: "c"},
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true}

// interprets judges an interpreter. A file of the project is the project's code; code in the
// line itself must not delete, overwrite or start programs.
func (c *command) interprets() {
	in := interpreters[c.name]
	for i, t := range c.args {
		if !t.Known && t.Before() == "" {
			c.refuse("runs code that is not known")
			return
		}
		text := t.Text
		if !strings.HasPrefix(text, "-") || text == "-" || text == "--" {
			c.runsFile(i, t)
			return
		}
		if text == "-m" || strings.HasPrefix(text, "-m") && strings.HasPrefix(c.name, "python") {
			c.runsModule(c.args[i:])
			return
		}
		if code, is := in.code(text, c.args[i+1:]); is {
			c.runsCode(code)
			return
		}
		if strings.HasPrefix(c.name, "perl") && strings.Contains(text, "i") || c.name == "ruby" && strings.HasPrefix(text, "-i") {
			c.refuse("edits files in place")
			return
		}
	}
	c.runsInput()
}

// code returns the code that a flag holds. It is unknown if its Term is.
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
	if at < 1 {
		return next, false
	}
	if at+1 < len(flag) && in.inline != "c" {
		return shell.Term{Text: flag[at+1:], Known: true}, true
	}
	return next, true
}

// runsFile judges the file that an interpreter runs.
func (c *command) runsFile(i int, t shell.Term) {
	if t.Text == "-" || t.Text == "--" {
		c.runsInput()
		return
	}
	all := c.resolve(t)
	if len(all) == 0 || t.Glob {
		c.refuse("runs code that is not known")
		return
	}
	for _, p := range all {
		if !c.readable(p) {
			c.need(c.Words, "@read:"+p)
		}
	}
	rest := *c
	rest.args = c.args[i+1:]
	rest.targets()
}

// runsModule judges python -m MODULE.
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
		rest := *c
		rest.args = args[1:]
		rest.targets()
	}
}

// runsInput judges an interpreter that reads its code from its input.
func (c *command) runsInput() {
	for _, r := range c.Redirects {
		if r.Kind == shell.ReadsText {
			c.runsCode(r.File)
			return
		}
		if r.Kind == shell.ReadsFile && r.File.Known {
			return // a file is the project's code, like one that is named as an operand
		}
	}
	if len(c.args) == 0 && !c.Piped {
		return // without input it prints its version, or waits
	}
	for _, t := range c.args {
		if t.Text == "--version" || t.Text == "-V" || t.Text == "-v" || t.Text == "--help" || t.Text == "--test" {
			return
		}
	}
	c.refuse("runs code that is not known")
}

// runsCode judges code that stands in the line.
func (c *command) runsCode(t shell.Term) {
	switch {
	case !t.Known:
		c.refuse("runs code that is not known as a whole")
	case shells[c.name]:
		c.all(c.script.Inner(t.Text, c.Dirs))
	case dangerous(t.Text):
		c.refuse("runs code that may delete, overwrite or start programs")
	case len(t.Text) > maxCode:
		c.refuse("runs code that is too long to check")
	case namesSecret(c, t.Text):
		c.refuse("runs code that names a secret or settings")
	}
}

// maxCode limits the code in a line, in bytes.
const maxCode = 4 << 10

var codeWord = regexp.MustCompile("[^\\s'\"`(),;=<>{}]+")

func namesSecret(c *command, code string) bool {
	for _, w := range codeWord.FindAllString(code, 200) {
		if strings.ContainsAny(w, "/.") && c.secretIn(shell.Term{Text: w, Known: true}) != "" && !strings.HasPrefix(w, "process.env") && !strings.HasPrefix(w, "os.env") {
			return true
		}
	}
	return false
}

// safeOpen matches a call that opens a file to read it.
var safeOpen = regexp.MustCompile(`\bopen\s*\([^,()]*(?:,\s*(?:mode\s*=\s*)?['"]r[bt]?['"])?(?:,\s*(?:encoding|errors)\s*=\s*['"][^'"]*['"])?\s*\)`)

// dangerous reports whether code may delete or overwrite files, start programs, use a database
// or the network, or hide what it does.
func dangerous(code string) bool {
	return dangerousCode.MatchString(safeOpen.ReplaceAllString(code, ""))
}

// dangerousCode matches such code in Python, JavaScript, Ruby, Perl, PHP and Lua. To call a
// function whose name it hides, code needs eval, getattr, an index or a similar form; these
// match too.
var dangerousCode = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`unlink|rmtree|rmdir|rm_|\bremove|\brm(?:Sync)?\b|delete|fileutils|shutil|send2trash|rimraf|truncate|move`,
	`rename|\.replace\s*\(\s*[^,()]*\)|os\.replace|copyfile|\bcp(?:Sync)?\s*\(|symlink|\blink(?:Sync)?\s*\(|chmod|chown|mkfifo`,
	`write_?file|write_text|write_bytes|createwritestream|append_?file|output_?file|file_put|fwrite|fputs|file\.write|io\.write|mode\s*=|\bopen\b|sysopen|fdopen|fopen|touch`,
	`subprocess|child_process|system|popen|spawn|exec|fork|backtick|` + "`" + `|%x|\bqx\b|kernel|\bpty\b|\bkill\b|posix|asyncio\.create|multiprocessing|runpy|pexpect`,
	`eval|compile\s*\(|__|importlib|getattr|setattr|attrgetter|methodcaller|globals|locals|vars\s*\(|base64|codecs|fromhex|\bchr\b|fromcharcode|atob|Function\s*\(|Reflect|constructor`,
	`ctypes|cffi|\bffi\b|marshal|pickle|\\x|\\u|\\[0-7]{2}|binding|\]\s*\(|\{\s*\[|\bsend\b|public_send|method\s*\(|->\s*\$|&\s*[\{$]|\$\w+\s*\(|call_user_func`,
	`sqlite|psycopg|mysql|pymongo|redis|sqlalchemy|drop\s+table|socket|urllib|requests|http|fetch\s*\(|\bnet\b|paramiko`,
	`\b(?:fs|os)\s*\[|require\s*\(\s*[^'"\s]|import\s*\(|import\s+\*|from\s+os\s+import|\bgem\b|include|dofile|loadstring|loadfile|\bload\b\s*\(\s*['"]|\bdo\s+['"]`,
}, "|"))

// runsScript judges source and the dot command, which run a file in the shell of the line.
func (c *command) runsScript() {
	if len(c.args) == 0 || !c.args[0].Known {
		c.refuse("runs code that is not known")
		return
	}
	c.runsFile(0, c.args[0])
}

// evaluates judges eval, trap and similar commands: their words are a command line.
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

// edits judges sed. In place, only substitutions and deletions of chosen lines are edits that a
// person can follow.
func (c *command) edits() {
	var rest []shell.Term
	inPlace := false
	for i, t := range c.args {
		if strings.HasPrefix(t.Text, "-i") || strings.HasPrefix(t.Text, "--in-place") {
			inPlace = true
			continue
		}
		if t.Text == "" && i > 0 && c.args[i-1].Text == "-i" {
			continue // sed -i '' on BSD and macOS
		}
		if !t.Known && t.Before() == "" {
			c.refuse("has words that are not known")
			return
		}
		rest = append(rest, t)
	}
	words := make([]word.Word, len(rest))
	for i, t := range rest {
		words[i] = word.Word{Text: t.Text}
	}
	a, why := commands.Entry("sed").Check("sed", words, nil)
	if why != "" {
		c.refuse("has a script that is more than addresses, p, d, q and plain s///")
		return
	}
	if !inPlace {
		return
	}
	if bareDelete.MatchString(strings.Join(texts(rest), "\n")) {
		c.refuse("empties files")
	}
	for _, p := range a.Paths() {
		for i := range rest {
			if rest[i].Text == p.Text {
				c.writes(withoutGlob(rest[i]), false)
				break
			}
		}
	}
}

// bareDelete matches a script of sed that deletes or quits without an address.
var bareDelete = regexp.MustCompile(`(?m)^\s*(?:[^;\n]*;)?\s*(?:1~1|1,\$|0~1)?\s*[dDqQ]\s*(?:;|$)`)

func texts(terms []shell.Term) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = t.Text
	}
	return out
}

// withoutGlob returns the directory of a pattern instead of the pattern.
func withoutGlob(t shell.Term) shell.Term {
	if t.Glob {
		t.Glob = false
		if t.Text = t.Text[:strings.LastIndexByte(t.Text[:strings.IndexAny(t.Text, "*?[")], '/')+1]; t.Text == "" {
			t.Text = "."
		}
	}
	return t
}

// awkActs matches a program of awk that writes, runs or reads by itself.
var awkActs = regexp.MustCompile(`system|getline|close\s*\(|\||@|print[^;}]*>|printf[^;}]*>|ENVIRON`)

func (c *command) scans() {
	for _, t := range c.args {
		if !t.Known && t.Before() == "" || awkActs.MatchString(t.Text) || t.Text == "-i" || t.Text == "-f" || t.Text == "-l" || strings.HasPrefix(t.Text, "--") {
			c.refuse("has a program that may write or run")
			return
		}
	}
}
