// Package commands describes shell commands: the flags with which they are harmless, the harm
// that they may do otherwise, and how a rule may limit them. About a command with an unknown
// flag or word, nod asks a person, unless a rule decides.
package commands

import (
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Level is a preset. The level of a command is the first preset that allows it.
type Level int

// The levels, in the order of the presets. Each preset also allows the commands of the preset
// before it. No preset allows a command of levelNone or levelApproved.
const (
	levelNone Level = iota // for commands without known harmless flags
	LevelDesign
	LevelReaders
	LevelProject
	levelApproved // for commands that only a person or a rule may allow, with known flags
)

// Command is an entry of the command table: the words that may follow a command, the harm that
// it may do, and how a rule may limit it.
//
// nod asks about a flag that the entry does not list, and about an abbreviation of a listed
// flag, because such flags may write or execute.
type Command struct {
	level Level // the first preset that allows the command

	short string // letters of the flags without a value
	value string // letters of the flags with a value, which is attached or is the next word
	tail  string // letters of the flags with an optional value, which must be attached
	// long lists the long flags. A "name" takes no value. A "name=" takes an optional value
	// after =. A "name:" takes a value after = or in the next word.
	long      string
	digits    bool   // a count such as -20 or +20 is a flag
	operands  int    // the maximum number of operands
	Text      bool   // the operands are text, and no paths
	raw       bool   // every word is an operand, because no flag of the command matters
	anyFlag   bool   // no flag does harm, so a pattern may expand to a file name that the command reads as a flag
	apart     bool   // a flag's value is always the next word; letters after the flag's letter are further flags
	getopt    bool   // some systems read every word after the first operand as an operand
	ordered   bool   // nod asks about a flag after an operand
	Loose     bool   // the first operand is a script or a search pattern; only later operands are paths
	Lists     bool   // the command prints only names, so a pattern in its words reads only the directory before the first wildcard
	NamesOnly bool   // the command prints no content of files
	script    string // the flag whose value is the script or search pattern; if the flag is missing, the first operand is the script or search pattern
	// check finds harmful flags and operands that the other fields of the entry allow. It
	// returns the reason to refuse them, or "".
	check   func(s Secrets, a *Args) string
	Special bool   // the words need a grammar of their own, in package shell, because a list of flags cannot tell which are harmless
	follows string // the flags with which the command follows the symbolic links that it finds
	Differ  bool   // a git subcommand that may run a diff program from git's configuration

	Harm Harm // the harm that the command may do; if several entries match a command, the harm in the entry with the most words counts

	// Limits that a remembered rule, or a rule of the policy, may use.
	runner      bool   // the command is a runner: it builds, tests, checks or shows the project; a remembered rule stores its first words and covers most words after them
	target      bool   // the word after the runner, such as build in "make build", is a target; a remembered rule stores the target too
	manyTargets bool   // every operand of the runner is a target; a remembered rule for one target covers no second target
	chooser     string // the flag whose next word is no target, although all other operands of the runner are targets
	outputs     string // the flags whose value is a file to write; only in lists of runner flags
	plain       string // the flags whose value must be a plain name; only in lists of runner flags
	behind      string // the name of the list for flags after the word --; only in lists of runner flags
	oneDash     bool   // long flags begin with one dash instead of two
	Wraps       bool   // the words after the command's name are another command, which it runs
	Interprets  bool   // a word of the command may be a command line, which it runs
	inline      string // the flag whose value is code that the command runs
	runsAny     bool   // a flag or a subcommand of the command can run any other program

	longs map[string]byte // the flags in the field long, by name; the value '=', ':' or '!' tells how the flag takes its value
}

const unlimited = 1 << 20

// Secrets tells the checks of search commands, such as grep, which files contain secrets.
type Secrets interface {
	// SecretFilter reports whether a search with this file name filter may include secrets.
	SecretFilter(filter string) bool
	// SearchesPrivate reports whether a search of these paths, or of the current directory if
	// there are none, includes a home directory or a directory with known secrets.
	SearchesPrivate(paths []word.Word) bool
	// SearchesExposed returns a file with secrets that a search of these paths, or of the current
	// directory if paths is empty, would show, or "". It leaves out files for which the function
	// skips returns true. unsearched is true if found is a directory that holds too many names
	// for nod to know its files.
	SearchesExposed(paths []word.Word, skips func(file string) bool) (found string, unsearched bool)
}

// table returns the known commands by name, or by name and first words as in "git log". The
// caller must not change the table.
var table = sync.OnceValue(newTable)

var unknownCommand = Command{}

// Entry returns the entry of a command. The name is the command's own, or that with the first
// words, as in "git log". An unknown command has an empty entry. The caller must not change the
// entry.
func Entry(name string) *Command {
	if c := table()[name]; c != nil {
		return c
	}
	return &unknownCommand
}

// Reader returns the table entry of a command that a preset allows. For every other command it
// returns nil.
func Reader(name string) *Command {
	c := table()[name]
	if c == nil || c.level == levelNone || c.level == levelApproved || c.Special {
		return nil
	}
	return c
}

// AllowedAt reports whether the preset with this level allows the command.
func (c *Command) AllowedAt(l Level) bool { return c.level != levelNone && c.level <= l }

// Check compares the words after a command's name with the command's entry. It returns the
// words as flags and operands, and the reason to ask, or "". With a reason, the Args may be
// incomplete.
func (c *Command) Check(name string, words []word.Word, s Secrets) (Args, string) {
	a, why := c.parse(name, words)
	if why == "" && c.check != nil {
		why = c.check(s, &a)
	}
	return a, why
}

// Fits reports whether the entry lists all these flags and operands.
func (c *Command) Fits(texts []string) bool {
	_, why := c.parse("", word.Literals(texts))
	return why == ""
}

// FollowsLinks reports whether the command with these words follows the symbolic links that it
// finds.
func (c *Command) FollowsLinks(words []word.Word) bool {
	if c.follows == "" {
		return false
	}
	a, _ := c.parse("", words)
	return a.has(strings.Fields(c.follows)...)
}

// RunsAnything reports whether the command, with certain words, can run code or another
// program.
func (c *Command) RunsAnything() bool {
	return c.Interprets || c.inline != "" || c.Wraps || c.runsAny
}

// RunsInput reports whether the command runs its input as code.
func (c *Command) RunsInput() bool { return c.Harm == runsInlineCode || c.Harm == runsProgram }

// RunnerWords returns the number of first words of argv that a remembered rule for a runner
// must store. It returns 0 if a rule must store all words.
func RunnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := RunnerWords(argv[1:]); n > 0 {
			return n + 1 // rtk runs the runner and shortens its output
		}
	}
	switch c, n := runnerOf(argv); {
	case c == nil:
		return 0
	case !c.target:
		return n
	case len(argv) == n || !word.Plain(argv[n]) || strings.HasPrefix(argv[n], "-") || strings.Contains(argv[n], "="):
		return 0
	default:
		return n + 1
	}
}

// compile fills in the field longs of each entry.
func compile(t map[string]*Command) map[string]*Command {
	for _, c := range t {
		c.longs = map[string]byte{}
		for name := range strings.FieldsSeq(c.long) {
			kind := byte(0)
			if last := name[len(name)-1]; strings.IndexByte("=:!", last) >= 0 {
				name, kind = name[:len(name)-1], last
			}
			c.longs[name] = kind
		}
	}
	return t
}
