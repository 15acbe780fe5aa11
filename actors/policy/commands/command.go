// Package commands describes shell commands: the flags with which they are harmless, the harm
// that they may do otherwise, and how a rule may limit them. A flag, word or command "asks"
// if a rule or a person must decide about it.
package commands

import (
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Level is the first preset that allows a command, or the preset in force.
type Level int

// The levels of the presets. Each preset allows what the one before it allows. No preset
// allows a command of levelNone or levelApproved.
const (
	levelNone Level = iota // no flags are known
	LevelDesign
	LevelReaders
	LevelProject
	levelApproved // the flags are known, but only a person or a rule allows the command
)

// Command is an entry of the command table: the words that may follow a command, the harm
// that it may do, and how a rule may limit it.
//
// A flag that the entry does not list asks, as does an abbreviation of a listed one: it may
// write or execute.
type Command struct {
	level Level // the first preset that allows it

	short string // one-letter flags without a value
	value string // one-letter flags with a value, attached or in the next word
	tail  string // one-letter flags with an optional value, attached only
	// long lists long flags: "name" takes no value, "name=" an optional one after =,
	// "name:" one after = or in the next word.
	long     string
	digits   bool   // -20 and +20 are flags that give a count
	operands int    // the maximum number of operands
	Text     bool   // operands are text, not paths
	raw      bool   // every word is an operand: the command has no flags that matter
	anyFlag  bool   // no flag does harm, so a file name that is read as a flag is harmless
	apart    bool   // a letter's value is the next word, whatever letters follow the letter
	ordered  bool   // a flag after the first operand asks
	Loose    bool   // only operands after the script are paths; values of flags, and the script, are not
	Lists    bool   // prints names only, so it reads only the directories that a pattern spells out
	script   string // of a loose command: the flag that gives the pattern instead of the first operand
	// check returns the reason to refuse flags and operands that read, write or run more than
	// the lists above tell, or "".
	check   func(s Secrets, a *Args) string
	Special bool   // its words follow a grammar of their own: no list tells which of them are harmless
	follows string // flags that make it follow the links that it finds
	Differ  bool   // of a git subcommand: may run a configured diff program

	Harm Harm // the harm that it may do; the longest entry that matches a command line counts

	// How a remembered answer or a rule may limit the command.
	runner      bool   // builds, tests, checks or shows: an answer may hold only its first words
	target      bool   // of a runner: the next word names the target, so an answer holds that word too
	manyTargets bool   // every further operand is a target too, so an answer for one target covers no other operand
	chooser     string // with manyTargets: the flag whose value is not a target
	oneDash     bool   // long flags have one dash
	Wraps       bool   // runs the rest of its words as a command
	Interprets  bool   // takes a command line as a word
	inline      string // the flag that takes code
	runsAny     bool   // a flag or a subcommand can run any other program

	longs map[string]byte // long, compiled: 0, '=' or ':' by name
}

// unlimited means that a command takes any number of operands.
const unlimited = 1 << 20

// Secrets tells the checks of search commands, such as grep, which files hold secrets.
type Secrets interface {
	// SecretFilter reports whether files that hold secrets may pass the filter of a
	// search.
	SecretFilter(filter string) bool
	// SearchesPrivate reports whether a search of these paths, or of the current directory if
	// there are none, goes through a home directory or one that holds known secrets.
	SearchesPrivate(paths []word.Word) bool
}

// table returns the known commands by name, or by name and first words, as in "git log". The
// caller must not change them.
var table = sync.OnceValue(newTable)

var unknownCommand = Command{}

// Entry returns the entry of a command, or of a command and its first words, as in "git log";
// an empty entry if there is none. The caller must not change it.
func Entry(name string) *Command {
	if c := table()[name]; c != nil {
		return c
	}
	return &unknownCommand
}

// Reader returns the entry of a command that some preset allows by the flags listed for
// it; nil for every other command.
func Reader(name string) *Command {
	c := table()[name]
	if c == nil || c.level == levelNone || c.level == levelApproved || c.Special {
		return nil
	}
	return c
}

// AllowedAt reports whether the preset of this level allows the command.
func (c *Command) AllowedAt(l Level) bool { return c.level != levelNone && c.level <= l }

// Check checks the words after a command's name by its entry. It returns the words, divided
// into flags and operands, and the reason to ask, or "". If there is a reason, the Args may
// be incomplete.
func (c *Command) Check(name string, words []word.Word, s Secrets) (Args, string) {
	a, why := c.parse(name, words)
	if why == "" && c.check != nil {
		why = c.check(s, &a)
	}
	return a, why
}

// Fits reports whether the texts are flags and operands that the entry lists.
func (c *Command) Fits(texts []string) bool {
	_, why := c.parse("", word.Literals(texts))
	return why == ""
}

// FollowsLinks reports whether the words make the command follow the links that it
// finds.
func (c *Command) FollowsLinks(words []word.Word) bool {
	if c.follows == "" {
		return false
	}
	a, _ := c.parse("", words)
	return a.has(strings.Fields(c.follows)...)
}

// RunsAnything reports whether some words can make the command run code or any other program.
func (c *Command) RunsAnything() bool {
	return c.Interprets || c.inline != "" || c.Wraps || c.runsAny
}

// RunsInput reports whether the command runs its input as code.
func (c *Command) RunsInput() bool { return c.Harm == runsInlineCode || c.Harm == runsProgram }

// RunnerWords returns the number of leading words that a remembered answer for a runner must
// hold; 0 if an answer must hold all words of argv.
func RunnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := RunnerWords(argv[1:]); n > 0 {
			return n + 1 // rtk shortens the runner's output
		}
	}
	for n := min(3, len(argv)); n > 0; n-- {
		name := strings.Join(argv[:n], " ")
		switch c := Entry(name); {
		case !c.runner || strings.Count(name, " ") != n-1: // a word that holds a space is not two words
		case !c.target:
			return n
		case len(argv) == n || !word.Plain(argv[n]) || strings.HasPrefix(argv[n], "-") || strings.Contains(argv[n], "="):
			return 0
		default:
			return n + 1
		}
	}
	return 0
}

// compile sets longs from long in each entry of t, and returns t.
func compile(t map[string]*Command) map[string]*Command {
	for _, c := range t {
		c.longs = map[string]byte{}
		for name := range strings.FieldsSeq(c.long) {
			kind := byte(0)
			if last := name[len(name)-1]; last == '=' || last == ':' {
				name, kind = name[:len(name)-1], last
			}
			c.longs[name] = kind
		}
	}
	return t
}
