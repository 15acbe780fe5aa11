// Package commands describes shell commands: their harmless flags, the harm that they may do with
// other words, and how a rule may limit them. If a command has an unknown flag or word and no rule
// decides, nod asks a person.
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
	levelApproved // for commands with known flags that only a person or a rule may allow
)

// Command is an entry of the command table. It describes the words that may follow a command, the harm
// that the command may do, and how a rule may limit the command.
//
// nod asks about a flag that the entry does not list, and about an abbreviation of a listed flag,
// because such flags may write or execute.
type Command struct {
	level Level // the first preset that allows the command

	short string // letters of the flags without a value
	value string // letters of the flags with a value, which is attached or is the next word
	tail  string // letters of the flags with an optional value, which must be attached
	// long lists the long flags. A "name" takes no value. A "name=" takes an optional value
	// after =. A "name:" takes a value after = or in the next word.
	long      string
	digits    bool   // a number with a sign, such as -20 or +20, is a flag
	operands  int    // the maximum number of operands
	Text      bool   // the operands are text and not paths
	raw       bool   // every word counts as an operand, because no flag of the command matters
	anyFlag   bool   // no flag does harm, so a pattern is harmless even if it expands to a file name that looks like a flag
	apart     bool   // a flag's value is always the next word; the letters after a flag's letter are further flags
	getopt    bool   // on some systems, the command takes every word after the first operand for an operand
	ordered   bool   // a flag after an operand makes nod ask
	Loose     bool   // the first operand is a script or a search pattern; only later operands are paths
	Lists     bool   // the command prints only names, so a pattern reads only the directory before its first wildcard
	NamesOnly bool   // the command prints only names, and no content of files
	script    string // the flag whose value is the script or search pattern; without this flag, the first operand is the script or pattern
	// check returns the reason to refuse flags or operands that the other fields of the entry
	// allow. It returns "" if it finds no such flag or operand.
	check   func(s Secrets, a *Args) string
	Special bool   // the words need a grammar in package shell, because a list of flags cannot tell which words are harmless
	follows string // the flags with which the command follows the symbolic links that it finds
	Differ  bool   // a git subcommand that may run a diff program from git's configuration

	Harm Harm // the harm that the command may do; if several entries match a command, the entry with the most words counts

	// Limits for remembered rules and rules of the policy.
	runner      bool   // the command builds, tests, checks or shows the project; a remembered rule stores its first words and covers most later words
	target      bool   // the word after the runner, such as build in "make build", is a target; a remembered rule stores the target too
	manyTargets bool   // every operand of the runner is a target; a remembered rule for one target covers no second target
	chooser     string // with manyTargets: the flag whose next word is not a target
	outputs     string // the flags whose value is a file to write; only in lists of runner flags
	plain       string // the flags whose value must be a plain name; only in lists of runner flags
	behind      string // the name of the list for flags after the word --; only in lists of runner flags
	oneDash     bool   // long flags begin with one dash instead of two
	Wraps       bool   // the words after the command's name are another command, which the command runs
	Interprets  bool   // a word of the command may be a command line that the command runs
	inline      string // the flag whose value is code that the command runs
	runsAny     bool   // a flag or a subcommand of the command may run any other program

	longs map[string]byte // the flags in the field long, by name; the byte '=', ':' or '!' tells how a flag takes its value
}

const unlimited = 1 << 20

// Secrets tells the checks of search commands, such as grep, which files contain secrets.
type Secrets interface {
	// SecretFilter reports whether a search with this file name filter may include secrets.
	SecretFilter(filter string) bool
	// SearchesPrivate reports whether a search of these paths includes a home directory or a
	// directory with known secrets. If paths is empty, the search is of the current directory.
	SearchesPrivate(paths []word.Word) bool
	// SearchesExposed returns a file with secrets that a search of these paths would show, or "". If paths
	// is empty, the search is of the current directory. Files for which the function skips returns true do
	// not count. If the result unsearched is true, the result found is a directory with too many names for
	// nod to know its files.
	SearchesExposed(paths []word.Word, skips func(file string) bool) (found string, unsearched bool)
}

// table returns the known commands. A key is a command's name, or its name and first words, as in
// "git log". The caller must not change the table.
var table = sync.OnceValue(newTable)

var unknownCommand = Command{}

// Entry returns the entry of a command. The argument is the command's name, or its name and first
// words, as in "git log". An unknown command has an empty entry. The caller must not change the entry.
func Entry(name string) *Command {
	if c := table()[name]; c != nil {
		return c
	}
	return &unknownCommand
}

// Reader returns the table entry of a command that a preset allows, or nil for every other command.
func Reader(name string) *Command {
	c := table()[name]
	if c == nil || c.level == levelNone || c.level == levelApproved || c.Special {
		return nil
	}
	return c
}

// AllowedAt reports whether the preset with this level allows the command.
func (c *Command) AllowedAt(l Level) bool { return c.level != levelNone && c.level <= l }

// Check compares the words after a command's name with the command's entry. It returns the words as
// flags and operands, and the reason to ask, or "". If there is a reason, the Args may be incomplete.
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

// FollowsLinks reports whether the command with these words follows symbolic links.
func (c *Command) FollowsLinks(words []word.Word) bool {
	if c.follows == "" {
		return false
	}
	a, _ := c.parse("", words)
	return a.has(strings.Fields(c.follows)...)
}

// RunsAnything reports whether some words make the command run code or another program.
func (c *Command) RunsAnything() bool {
	return c.Interprets || c.inline != "" || c.Wraps || c.runsAny
}

// RunsInput reports whether the command runs its input as code.
func (c *Command) RunsInput() bool { return c.Harm == runsInlineCode || c.Harm == runsProgram }

// RunnerWords returns how many of the first words in argv a remembered rule for a runner must store. It
// returns 0 if a rule must store all words.
func RunnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := RunnerWords(argv[1:]); n > 0 {
			return n + 1 // rtk runs the runner and shortens the runner's output
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
