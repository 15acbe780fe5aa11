package policy

import (
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/schemas"
)

// level is the first preset that allows a command, or the preset in force.
type level int

// The levels of the presets, each allowing what the one before it does. No preset
// allows an entry below or above them.
const (
	levelNone level = iota // no flags are known
	levelDesign
	levelReaders
	levelProject
	levelApproved // the flags are known, and only a person or a rule allows the command
)

// command is an entry of the command table: the words that may follow a command, the
// harm that it may do, and how a rule may bound it.
//
// Unlisted flags ask, abbreviated long flags too: they may write or execute.
type command struct {
	level level

	short string // letters without a value
	value string // letters with a value, attached or in the next word
	tail  string // letters with an optional value, attached only
	// long lists long flags: "name" takes no value, "name=" an optional one after =,
	// "name:" one after = or in the next word.
	long     string
	digits   bool   // -20 and +20 are counts
	operands int    // most operands allowed
	text     bool   // operands are text, not paths
	raw      bool   // every word is an operand: the command has no flags that matter
	anyFlag  bool   // no flag does harm, so a file name that is read as a flag is harmless
	apart    bool   // a letter's value is the next word, whatever letters follow the letter
	ordered  bool   // flags after the first operand ask
	loose    bool   // values of flags are not paths, because the first operand is a pattern or a program
	lists    bool   // prints names only, so of a pattern only the directories that it spells out are read
	script   string // of a loose command: the flag that gives the pattern instead of the first operand
	// check refuses flags and operands that read, write or run more than the lists
	// above tell; it returns the reason, or "".
	check func(line *commandLine, a *args) string
	// special checks the command instead of the lists above. It returns the reason to
	// ask, or "", and whether the reason is a secret.
	special func(line *commandLine, words []word.Word) (why string, secret bool)
	follows string // flags that make it follow the links that it finds
	differ  bool   // of git: may run a configured diff program

	harm harm // the harm that it may do; the longest entry that matches a command line counts

	// How an answer or a rule may bound the command.
	runner      bool   // builds, tests, checks or shows: an answer may leave further words open
	target      bool   // of a runner: the next word names the target, so an answer holds that word too
	manyTargets bool   // runs every further operand, so an answer for one target covers no second one
	chooser     string // with manyTargets: the flag whose value is not a target
	oneDash     bool   // long flags have one dash
	wraps       bool   // runs the rest of its words as a command
	interprets  bool   // takes a command line as a word
	inline      string // the flag that takes code
	runsAny     bool   // a flag, or a command of its own, can run any other program

	longs map[string]byte // long, compiled: "", = or : by name
}

// unlimited means that a command takes any number of operands.
const unlimited = 1 << 20

// harm is the harm that a command may do: its risk and the reason for a person.
type harm struct {
	risk schemas.Risk
	why  string
}

var (
	deletes            = harm{schemas.RiskMedium, "deletes files"}
	destroys           = harm{schemas.RiskHigh, "destroys data"}
	writesDisk         = harm{schemas.RiskHigh, "writes to a disk"}
	writesFiles        = harm{schemas.RiskMedium, "writes files"}
	changesAccess      = harm{schemas.RiskMedium, "changes who may use files"}
	runsAsRoot         = harm{schemas.RiskHigh, "runs as root"}
	usesNetwork        = harm{schemas.RiskMedium, "uses the network"}
	runsRemotely       = harm{schemas.RiskHigh, "runs on another machine"}
	publishes          = harm{schemas.RiskHigh, "publishes"}
	discardsChanges    = harm{schemas.RiskHigh, "discards changes"}
	changesRepository  = harm{schemas.RiskMedium, "changes the repository"}
	changesSettings    = harm{schemas.RiskHigh, "changes settings"}
	stopsProcesses     = harm{schemas.RiskMedium, "stops processes"}
	stopsMachine       = harm{schemas.RiskHigh, "stops the machine"}
	installs           = harm{schemas.RiskMedium, "installs software"}
	runsProject        = harm{schemas.RiskMedium, "runs the project's code"}
	runsInlineCode     = harm{schemas.RiskHigh, "runs code that the command holds"}
	runsProgram        = harm{schemas.RiskMedium, "runs a program"}
	controlsContainers = harm{schemas.RiskMedium, "controls containers"}
	changesSystems     = harm{schemas.RiskHigh, "changes other systems"}
	showsSecrets       = harm{schemas.RiskHigh, "shows secrets"}
)

// commandTable holds the known commands by name, or by name and first words, as in "git
// log".
type commandTable map[string]*command

// commands returns the table that all policies share. It must not be changed.
var commands = sync.OnceValue(newCommandTable)

var unknownCommand = command{}

// entry returns the entry of a command, an empty one if it has none.
func (t commandTable) entry(name string) *command {
	if c := t[name]; c != nil {
		return c
	}
	return &unknownCommand
}

// reader returns the entry of a command that some preset allows by the flags listed for
// it; nil for every other command.
func (t commandTable) reader(name string) *command {
	c := t[name]
	if c == nil || c.level == levelNone || c.level == levelApproved || c.special != nil {
		return nil
	}
	return c
}

// runnerWords counts the leading words that a remembered answer for a runner must hold;
// 0 if the command is not a runner.
func (t commandTable) runnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := t.runnerWords(argv[1:]); n > 0 {
			return n + 1 // rtk shortens the runner's output
		}
	}
	for n := min(3, len(argv)); n > 0; n-- {
		name := strings.Join(argv[:n], " ")
		switch c := t.entry(name); {
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

func compileCommands(table commandTable) commandTable {
	for _, c := range table {
		c.longs = map[string]byte{}
		for name := range strings.FieldsSeq(c.long) {
			kind := byte(0)
			if last := name[len(name)-1]; last == '=' || last == ':' {
				name, kind = name[:len(name)-1], last
			}
			c.longs[name] = kind
		}
	}
	return table
}
