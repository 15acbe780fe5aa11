// Package commands describes shell commands: the flags with which they are harmless, the harm
// that they may do otherwise, and how a rule may limit them. A flag, word or command that is
// not known to be harmless makes nod ask: a rule or a person must decide.
package commands

import (
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Level is a preset. A command's level is the first preset that allows the command.
type Level int

// The levels of the presets. Each preset also allows the commands of the preset before it. No
// preset allows a command of levelNone or levelApproved.
const (
	levelNone Level = iota // the command's harmless flags are not known
	LevelDesign
	LevelReaders
	LevelProject
	levelApproved // the command's flags are known, but only a person or a rule allows the command
)

// Command is an entry of the command table: the words that may follow a command, the harm
// that it may do, and how a rule may limit it.
//
// A flag that the entry does not list makes nod ask, and so does an abbreviation of a listed
// flag, because such a flag may write or execute.
type Command struct {
	level Level // the first preset that allows the command

	short string // letters of the flags without a value
	value string // letters of the flags with a value, which is attached or is the next word
	tail  string // letters of the flags with an optional value, which must be attached
	// long lists the long flags. A "name" takes no value. A "name=" takes an optional value
	// after =. A "name:" takes a value after = or in the next word.
	long      string
	digits    bool   // a number after - or +, as in -20 and +20, is a flag: a count
	operands  int    // the maximum number of operands
	Text      bool   // operands are text, not paths
	raw       bool   // every word is an operand, because none of the command's flags matters
	anyFlag   bool   // no flag does harm: a pattern may expand to a file name that the command reads as a flag
	apart     bool   // a flag's value is always the next word, because letters after the flag's letter are further flags
	getopt    bool   // on some systems, every word after the first operand is an operand
	ordered   bool   // flags must come before the operands: a flag after an operand makes nod ask
	Loose     bool   // only the operands after the script or search pattern are paths; this operand and the values of flags are not
	Lists     bool   // the command prints only names, so it reads only the directories that a pattern spells out
	NamesOnly bool   // the command prints nothing of what files contain
	script    string // if Loose is set: the flag whose value is the script or the search pattern; without this flag, the first operand is
	// check finds flags and operands that the fields above allow, but that may read, write or
	// run more than is harmless. It returns the reason to refuse them, or "".
	check   func(s Secrets, a *Args) string
	Special bool   // no list of flags tells which words are harmless; package shell checks them by a grammar of their own
	follows string // the flags with which the command follows the symbolic links that it finds
	Differ  bool   // the command is a git subcommand, and may run a diff program that the configuration names

	Harm Harm // the harm that the command may do; of the entries that match a command line, the one with the most words counts

	// How a remembered answer or a rule may limit the command.
	runner      bool   // the command is a runner: it builds, tests, checks or shows the project; a remembered answer stores its first words and covers most words after them
	target      bool   // of a runner: the word after its name, such as build in "make build", is its target; a remembered answer stores it too
	manyTargets bool   // of a runner: every operand is a target; a remembered answer for one target covers no command with a second one
	chooser     string // if manyTargets is set: the flag whose value, in the next word, is not a target
	outputs     string // flags whose value is a file to write, in a list of runnerFlags
	plain       string // flags whose value must be a plain name, in a list of runnerFlags
	behind      string // the list of the flags after the word --, in a list of runnerFlags
	oneDash     bool   // long flags begin with one dash instead of two
	Wraps       bool   // the words after the name are a command, which it runs
	Interprets  bool   // one of the words may be a command line, which it runs
	inline      string // the flag whose value is code that the command runs
	runsAny     bool   // a flag or a subcommand can run any other program

	longs map[string]byte // the flags listed in the field long, by name; the value is 0, '=', ':' or '!'
}

// unlimited means that a command takes any number of operands.
const unlimited = 1 << 20

// Secrets tells the checks of search commands, such as grep, which files contain secrets.
type Secrets interface {
	// SecretFilter reports whether a search with this file name filter may include files that
	// contain secrets.
	SecretFilter(filter string) bool
	// SearchesPrivate reports whether a search of these paths, or of the current directory if
	// paths is empty, includes a home directory or a directory with known secrets.
	SearchesPrivate(paths []word.Word) bool
	// SearchesExposed returns a file with secrets that a search of these paths, or of the current
	// directory if paths is empty, would show, or "". It leaves out files for which the function
	// skips returns true.
	SearchesExposed(paths []word.Word, skips func(file string) bool) string
}

// table returns the known commands. A key is a command's name, or its name and first words, as
// in "git log". The caller must not change the table.
var table = sync.OnceValue(newTable)

var unknownCommand = Command{}

// Entry returns the entry of a command. The name may include the command's first words, as in
// "git log". If there is no entry, Entry returns an empty one. The caller must not change the
// entry.
func Entry(name string) *Command {
	if c := table()[name]; c != nil {
		return c
	}
	return &unknownCommand
}

// Reader returns the entry of a command that some preset allows because of its listed flags,
// and nil for every other command.
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
// words, divided into flags and operands, and the reason to ask, or "". If there is a reason,
// the Args may be incomplete.
func (c *Command) Check(name string, words []word.Word, s Secrets) (Args, string) {
	a, why := c.parse(name, words)
	if why == "" && c.check != nil {
		why = c.check(s, &a)
	}
	return a, why
}

// Fits reports whether texts consists of flags and operands that the entry lists.
func (c *Command) Fits(texts []string) bool {
	_, why := c.parse("", word.Literals(texts))
	return why == ""
}

// FollowsLinks reports whether the command, with these words, follows the symbolic links that
// it finds.
func (c *Command) FollowsLinks(words []word.Word) bool {
	if c.follows == "" {
		return false
	}
	a, _ := c.parse("", words)
	return a.has(strings.Fields(c.follows)...)
}

// RunsAnything reports whether the command, with certain words, can run code or any other
// program.
func (c *Command) RunsAnything() bool {
	return c.Interprets || c.inline != "" || c.Wraps || c.runsAny
}

// RunsInput reports whether the command runs its input as code.
func (c *Command) RunsInput() bool { return c.Harm == runsInlineCode || c.Harm == runsProgram }

// RunnerWords returns the number of first words of argv that a remembered answer for a runner
// must store. It returns 0 if an answer must store all words.
func RunnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := RunnerWords(argv[1:]); n > 0 {
			return n + 1 // the first word is rtk, which runs the runner and shortens its output
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

// compile fills in the field longs of each entry of t, and returns t.
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
