// Package contained decides which command lines may run contained. A contained process can write only
// the project and its own /tmp, reads no secret and has no network, but it can still lose work in the
// project. The package therefore finds commands that delete, overwrite or rewrite files, and commands
// that act outside the project. It also lists the permissions without which a command would fail.
//
// The package reads no files, so the same line in the same directory always gets the same judgement.
package contained

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Judgement says whether a command line may run contained.
type Judgement struct {
	// Why is the reason why a person must decide about the line. It is empty if there is no reason.
	Why string
	// Needs are the permissions without which a command of the line would fail.
	Needs []Need
	// Project is the directory that the line may write. It is the project, or the project's work
	// tree in which the line runs.
	Project string
	// ChangesDir means that the line only changes the directory of its shell. Such a line has no
	// effect in a process of its own.
	ChangesDir bool
}

// Need is a permission that a command needs.
type Need struct {
	Permission string // a permission tag, such as @network:proxy.golang.org:443
	Command    string // the first words of the command that needs the permission
}

// Judge decides which command lines may run contained. It is immutable and safe for concurrent use.
type Judge struct {
	names     *secrets.Names
	protected *secrets.Protected // files that a contained command cannot change
	checks    map[string]func(*command)
}

// New returns a Judge that takes a file for a secret if the argument names has its name.
func New(names *secrets.Names) *Judge {
	return &Judge{names: names, protected: secrets.CompileProtected(), checks: newChecks()}
}

// Line decides whether the command line src may run contained at the location loc.
func (by *Judge) Line(src string, loc pathname.Location) Judgement {
	if len(loc.Dirs) == 1 && pathname.MainTree(loc.Dirs[0]) == loc.Main {
		if top := pathname.WorkTree(loc.Dirs[0]); top != "" && !pathname.Within(loc.Project, top) {
			loc.Project = top
		}
	}
	j := &judge{Judge: by, script: shell.ReadScript(src, loc)}
	switch {
	case loc.Project == "" || len(loc.Dirs) == 0:
		j.refuse("the project's directory is not known")
	case loc.HoldsHome(loc.Project):
		j.refuse("the project is a home directory, or contains one")
	case slices.ContainsFunc(loc.Dirs, func(d string) bool { return !pathname.Within(d, loc.Project) }):
		j.refuse("it runs outside the project")
	}
	j.all(j.script)
	steps := j.script.Steps
	if j.script.Background && !slices.ContainsFunc(steps, usesBackground) {
		j.refuse("it leaves a program running, which ends with its container")
	}
	return Judgement{
		Why: j.why, Needs: j.needs, Project: loc.Project,
		ChangesDir: len(steps) == 1 && len(steps[0].Words) > 0 && (steps[0].Words[0].Text == "cd" || steps[0].Words[0].Text == "pushd"),
	}
}

// usesBackground reports whether a command waits for a background program or makes use of one.
func usesBackground(st shell.Step) bool {
	if len(st.Words) == 0 {
		return false
	}
	switch name := st.Words[0].Text; name {
	case "wait", "curl", "kill":
		return true
	}
	return false
}

type judge struct {
	*Judge
	script *shell.Script
	why    string
	needs  []Need
	edited []string // files that the line changes, and whose new content nod does not read
}

func (j *judge) refuse(why string) {
	if j.why == "" {
		j.why = why
	}
}

func (j *judge) need(words []shell.Term, tag string) {
	n := Need{Permission: tag, Command: shown(words)}
	if !slices.ContainsFunc(j.needs, func(o Need) bool { return o.Permission == tag }) {
		j.needs = append(j.needs, n)
	}
}

// shown returns the words by which people see a command: its first three words, up to an unknown one.
func shown(words []shell.Term) string {
	var out []string
	for _, w := range words[:min(len(words), 3)] {
		if !w.Known || len(w.Text) > 40 || strings.ContainsAny(w.Text, "\n") {
			break
		}
		out = append(out, w.Text)
	}
	return strings.Join(out, " ")
}

func (j *judge) all(s *shell.Script) {
	if s.Why != "" {
		j.refuse("the line " + s.Why)
	}
	for _, st := range s.Steps {
		j.step(s, st)
	}
}

func (j *judge) step(s *shell.Script, st shell.Step) {
	for _, d := range st.Dirs {
		if !pathname.Within(d, s.Project) && !private(d) {
			j.refuse("it changes to " + d + ", outside the project")
		}
	}
	for _, a := range st.Assigns {
		j.assign(s, &st, a)
	}
	c := command{judge: j, script: s, Step: st}
	for _, r := range st.Redirects {
		c.redirect(r)
	}
	if len(st.Words) == 0 {
		return
	}
	name := st.Words[0]
	if !name.Known || name.Glob && name.Text != "[" || name.Text == "" {
		j.refuse("the name of a command in it is not known")
		return
	}
	if name.Text != "[" && (!programName.MatchString(name.Text) || strings.Contains(strings.TrimPrefix(name.Text, "../"), "..")) {
		j.refuse("the name of a command in it, " + name.Text + ", is not a plain one")
		return
	}
	c.name, c.args = programOf(commands.ProgramName(name.Text)), st.Words[1:]
	c.programPath(name)
	for _, t := range st.Words[1:] {
		if !t.Known && strings.Contains(strings.TrimPrefix(t.Text, t.Before()), "..") {
			j.refuse(c.name + ": .. follows a part of a path that is not known")
		}
	}
	c.judgeWords()
	c.readsProgram()
	c.elsewhere()
	if check := c.checks[c.name]; check != nil {
		check(&c)
		return
	}
	c.other()
}

// programName matches names and paths of programs that contain no confusing characters.
var programName = lazyregexp.New(`^(?:[~.]?/|\.\./)?[A-Za-z0-9_.+:][A-Za-z0-9_.+:@/-]*[A-Za-z0-9_.+-]$|^[A-Za-z0-9_:.]$`)

// command is one command whose name is known.
type command struct {
	*judge
	shell.Step
	script *shell.Script
	name   string // the program's name without its directory
	args   []shell.Term
}

func (c *command) refuse(why string) { c.judge.refuse(c.name + " " + why) }

// assign checks the assignment of a variable. The values of some variables name programs or options
// for later commands, and so hide what a line does.
func (j *judge) assign(s *shell.Script, st *shell.Step, a shell.Assign) {
	switch {
	case obeyed(a.Name) && !(a.Value.Known && harmlessValue[a.Value.Text]):
		j.refuse("it sets " + a.Name + ", which decides what other commands do")
	case a.Name == "PATH" && (!strings.HasPrefix(a.Value.Before(), "/usr/") && !strings.HasPrefix(a.Value.Before(), "/opt/")):
		j.refuse("it sets PATH, which decides which programs run")
	case (len(st.Words) > 0 || a.Exported) && !flagsVariable(a):
		j.refuse("it sets " + a.Name + " to flags that nod does not know")
	case (len(st.Words) > 0 || a.Exported) && strings.HasPrefix(a.Value.Before(), "/") && inPrivate(s, pathname.Clean(a.Value.Before())) && !scratchVariable[a.Name]:
		j.refuse("it sets " + a.Name + " to a file in /tmp, which nod has not read")
	case strings.Contains(a.Value.Text, "[") && strings.ContainsAny(a.Value.Text, "$`"):
		j.refuse("it sets " + a.Name + " to text with a hidden command")
	case a.Value.Known && strings.ContainsAny(a.Value.Text, " \t\n;|&"):
		j.hiddenDanger(s, st, a.Value.Text)
	}
}

// harmlessValue are harmless values, mostly programs without effect. For example, GIT_EDITOR=true
// keeps a command from waiting for a person.
var harmlessValue = map[string]bool{"true": true, "cat": true, ":": true, "": true, "0": true, "1": true}

// obeyed reports whether the value of a variable with this name can change the effects of
// programs.
func obeyed(name string) bool {
	switch name {
	case "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "SHELL", "HOME", "CDPATH", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PERL5OPT", "PERL5LIB",
		"RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "MAKEFLAGS", "BROWSER", "LESSOPEN", "LESSCLOSE", "CC", "CXX", "CPP", "LD", "AR", "AS", "MAKE", "RUSTC_WRAPPER", "RUSTC", "RUSTDOC",
		"MAKEFILES", "GNUMAKEFLAGS", "MFLAGS", "ZDOTDIR", "FPATH", "INPUTRC", "VIMINIT", "EXINIT", "GOROOT", "GOENV", "GOTOOLDIR", "CLASSPATH", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
		"PERLLIB", "PERL5DB", "PERL5SHELL", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "TCLLIBPATH", "PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTEST_PLUGINS",
		"COVERAGE_PROCESS_START", "AWKPATH", "AWKLIBPATH", "MANOPT", "TAR_OPTIONS", "GREP_OPTIONS", "RSYNC_RSH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "RIPGREP_CONFIG_PATH":
		return true
	}
	upper := strings.ToUpper(name)
	for _, start := range []string{"GIT_", "LD_", "DYLD_", "BASH_FUNC", "NPM_CONFIG_", "CARGO_TARGET_", "CARGO_BUILD_", "CARGO_HOME", "PIP_", "YARN_", "PNPM_", "BUN_", "DENO_", "NODE_", "GEM_", "BUNDLE_", "MVN_", "MAVEN_", "GRADLE_", "ZSH_", "FZF_"} {
		if strings.HasPrefix(upper, start) && name != "NODE_ENV" {
			return true
		}
	}
	return strings.HasSuffix(name, "EDITOR") || strings.HasSuffix(name, "PAGER")
}

// scratchVariable are variables that name a program's directory for temporary files or output.
var scratchVariable = set("TMPDIR TMP TEMP OUT OUTPUT OUTDIR DESTDIR PREFIX GOCACHE GOTMPDIR CCACHE_DIR")

// flagsVariable reports whether a variable contains no flags, or only flags that run and write
// nothing. Compilers and runners read further flags from some variables.
func flagsVariable(a shell.Assign) bool {
	text := a.Value.Before()
	holds := strings.HasPrefix(text, "-") || strings.HasPrefix(text, "@") || strings.Contains(text, " -")
	named := strings.HasSuffix(a.Name, "FLAGS") || strings.HasSuffix(a.Name, "OPTS") || strings.HasSuffix(a.Name, "OPTIONS") || strings.HasSuffix(a.Name, "ARGS")
	return !holds && (!named || a.Value.Known) || a.Value.Known && harmlessFlags.MatchString(text)
}

var harmlessFlags = lazyregexp.New(`^(?:\s*(?:-?-count=\d+|-mod=(?:readonly|vendor)|-v|-race|-short|-tags=[\w,]+|-p=\d+|-trimpath|-buildvcs=\w+|-timeout=\w+|-[DWAF] ?[\w:-]+|-O[0-3sg]?|-g|-W\w*(?:-\w+)*|-f(?:no-)?(?:PIC|omit-frame-pointer|sanitize=\w+)|-std=[\w+]+|-Xm[sx]\d+[kmgKMG]?|-q|-x|-s|-vv|--verbose|--color=\w+|--tb=\w+|-n ?\d+|-j ?\d*|-C (?:opt-level|debuginfo|target-cpu|panic|codegen-units)=\w+))*\s*$`)

// setsNames are shell commands that evaluate code in the index of a variable such as a[$(code)].
var setsNames = set("read getopts mapfile readarray declare typeset let")

// judgeWords finds secrets and hidden commands in the words of a command.
func (c *command) judgeWords() {
	if textCommands[c.name] && c.name != "printf" && c.name != "unset" {
		return
	}
	args := c.args
	if patternFirst[c.name] { // the first operand is a pattern or a script, and not a path
		for i, t := range args {
			if !strings.HasPrefix(t.Text, "-") {
				args = slices.Delete(slices.Clone(args), i, i+1)
				break
			}
		}
	}
	for i, t := range args {
		if t.Known && strings.Contains(t.Text, "[") && strings.ContainsAny(t.Text, "$`") && (pureReaders[c.name] && !patternFirst[c.name] || setsNames[c.name]) {
			c.refuse("may run the command that is hidden in an index")
		}
		if c.storesText(args, i) {
			continue
		}
		code := (interpreters[c.name] != nil || c.evaluatesAt(i)) && strings.ContainsAny(t.Text, " (") // the function runsCode looks for secrets in code
		if w := c.secretIn(t); w != "" && c.name != "rm" && !code {
			c.refuse("names a secret or settings, " + w)
		}
		if !pureReaders[c.name] && !patternFirst[c.name] && t.Known && strings.ContainsAny(t.Text, " \t\n;|&`$") {
			c.hiddenDanger(c.script, &c.Step, t.Text)
		}
		c.readsOutside(t)
	}
}

// storesText reports whether a word is a text that the command only stores, such as the message of a commit.
func (c *command) storesText(args []shell.Term, i int) bool {
	flags := textFlags[c.name]
	name, _, joined := strings.Cut(args[i].Text, "=")
	return i > 0 && flags[args[i-1].Text] || joined && args[i].Known && strings.HasPrefix(name, "--") && flags[name]
}

// textFlags has, for each program, the flags whose value the program only stores. bd is a program for notes
// about tasks.
var textFlags = map[string]map[string]bool{
	"git": set("-m --message"),
	"bd":  set("-d --description --title --notes --append-notes --acceptance --design --reason --set-metadata"),
}

// hiddenDanger refuses a word that is a dangerous command line, because a program may run this word.
func (j *judge) hiddenDanger(s *shell.Script, st *shell.Step, text string) {
	in := s.Inner(text, st.Dirs)
	if in.Why != "" {
		return // no shell runs the word, because the word is not a command line
	}
	for _, inner := range in.Steps {
		if len(inner.Words) == 0 || !inner.Words[0].Known {
			continue
		}
		if name := programOf(commands.ProgramName(inner.Words[0].Text)); losesWork[name] || wrappers[name] != nil || name == "git" || interpreters[name] != nil || name == "xargs" || name == "find" {
			trial := &judge{Judge: j.Judge, script: s, edited: j.edited}
			if trial.step(in, inner); trial.why != "" {
				j.refuse("a word of it may be a command: " + trial.why)
			}
		}
	}
}

// other checks a command that is not in the map named checks. The kernel limits the effects of the command.
func (c *command) other() {
	switch {
	case pureReaders[c.name]:
	case people[c.name] != "":
		c.refuse(people[c.name])
	case strings.HasPrefix(c.name, "git-"):
		c.refuse("is a command of git that nod does not know")
	case losesWork[c.name]:
		c.refuse("may delete or overwrite files")
	default:
		c.entry()
	}
}

// entry checks a command by the command table.
func (c *command) entry() {
	argv, known := c.argv()
	if why := commands.DecidedByPerson(argv); why != "" {
		c.refuse(why)
		return
	}
	if e := commands.Reader(c.name); e != nil && (!known || !e.Fits(argv[1:])) {
		c.refuse("may write files with these words")
		return
	}
	c.unreadCode()
	c.flags([]string{c.name}, c.args)
	c.targets()
	c.mayWrap()
}

// mayWrap checks the words of an unknown command, because an unknown command, such as setarch, may
// run its words as a second command.
func (c *command) mayWrap() {
	for i, t := range c.args {
		if !t.Known || strings.HasPrefix(t.Text, "-") {
			continue
		}
		name := programOf(commands.ProgramName(t.Text))
		if !losesWork[name] && name != "rm" && name != "mv" && name != "git" && name != "xargs" && name != "find" && interpreters[name] == nil && wrappers[name] == nil {
			continue
		}
		trial := &judge{Judge: c.Judge, script: c.script, edited: c.edited}
		if trial.step(c.script, shell.Step{Words: c.args[i:], Dirs: c.Dirs}); trial.why != "" {
			c.refuse("may run the words after it: " + trial.why)
			return
		}
	}
}

// argv returns the command's words, and whether all of them are known. For an unknown word it
// returns only the known beginning.
func (c *command) argv() ([]string, bool) {
	argv, known := []string{c.name}, true
	for _, t := range c.args {
		argv = append(argv, t.Before())
		known = known && t.Known
	}
	return argv, known
}
