package contained

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
)

type wrapper struct {
	flags    string // letters of the flags without a value
	valued   string // letters of the flags with a value
	long     string // the long flags, separated by spaces; a flag with = takes a value
	operands int    // the number of operands before the command
}

var wrappers = map[string]*wrapper{
	"time": {flags: "pv"}, "nohup": {}, "builtin": {}, "command": {flags: "p"}, "exec": {}, "setsid": {flags: "fw", long: "--wait --fork"}, "chronic": {}, "noglob": {},
	"timeout": {flags: "v", valued: "ks", long: "--foreground --preserve-status --verbose --kill-after= --signal=", operands: 1}, "gtimeout": {valued: "ks", operands: 1},
	"nice": {valued: "n", long: "--adjustment="}, "ionice": {flags: "t", valued: "cn"}, "stdbuf": {valued: "ioe", long: "--input= --output= --error="},
	"env": {flags: "i0", valued: "u", long: "--ignore-environment --unset="}, "rtk": {}, "caffeinate": {flags: "dims"}, "xvfb-run": {flags: "a", long: "--auto-servernum"},
}

// again checks a second command, which the command c runs.
func (c *command) again(words []shell.Term) {
	if len(words) == 0 {
		return
	}
	c.step(c.script, shell.Step{Words: words, Dirs: c.Dirs, Piped: c.Piped, Redirects: c.inputOnly()})
}

// inputOnly returns only the redirections of the input, because the function step checks those of the output.
func (c *command) inputOnly() []shell.Redirect {
	return slices.DeleteFunc(slices.Clone(c.Redirects), func(r shell.Redirect) bool { return r.Kind == shell.Truncates || r.Kind == shell.Appends })
}

// wraps checks a wrapper, such as env. nod must know the wrapper's flags, and the command that the
// wrapper runs.
func (c *command) wraps() {
	w := wrappers[c.name]
	i := 0
	for ; i < len(c.args); i++ {
		t := c.args[i]
		name, _, eq := strings.Cut(t.Text, "=")
		switch {
		case !t.Known && !strings.Contains(t.Before(), "="):
			c.refuse("runs a command that is not known")
			return
		case t.Text == "--":
			i++
			c.again(c.args[min(i+w.operands, len(c.args)):])
			return
		case c.name == "env" && eq && !strings.HasPrefix(name, "-"):
			value := t
			value.Text = strings.TrimPrefix(t.Text, name+"=")
			c.assign(c.script, &c.Step, shell.Assign{Name: name, Value: value})
		case !strings.HasPrefix(t.Text, "-"):
			if i+w.operands > len(c.args) {
				return
			}
			c.again(c.args[i+w.operands:])
			return
		case c.name == "command" && (t.Text == "-v" || t.Text == "-V"):
			return
		case slices.Contains(strings.Fields(w.long), name) || slices.Contains(strings.Fields(w.long), name+"=") && eq:
		case slices.Contains(strings.Fields(w.long), name+"="):
			i++
		case len(t.Text) > 1 && strings.IndexByte(w.valued, t.Text[1]) >= 0:
			if len(t.Text) == 2 {
				i++
			}
		case strings.Trim(t.Text[1:], w.flags) == "", c.name == "nice" && strings.Trim(t.Text[1:], "0123456789") == "":
		default:
			c.refuse(t.Text + " is not a flag that nod knows")
			return
		}
	}
}

// unknownWord stands for a word that a command gets from another program, such as xargs.
var unknownWord = shell.Term{}

// filled returns a copy of a command's words. An unknown word replaces each word that contains the
// placeholder in the argument mark.
func filled(words []shell.Term, mark string) []shell.Term {
	out := slices.Clone(words)
	for i := range out {
		if mark != "" && strings.Contains(out[i].Text, mark) {
			out[i] = unknownWord
		}
	}
	return out
}

// appends checks xargs. The words after the flags of xargs are a command, and xargs adds words from
// its input to this command.
func (c *command) appends() {
	mark := ""
	i := 0
	for ; i < len(c.args) && strings.HasPrefix(c.args[i].Text, "-"); i++ {
		switch t := c.args[i].Text; {
		case t == "-0", t == "-r", t == "-t", t == "--null", t == "--no-run-if-empty", t == "-0r", t == "-r0":
		case t == "-I" || t == "-i" || t == "-J":
			if mark = "{}"; t != "-i" && i+1 < len(c.args) {
				i++
				mark = c.args[i].Text
			}
		case t == "-n", t == "-P", t == "-L", t == "-d", t == "-s", t == "-a":
			i++
		case len(t) > 2 && strings.IndexByte("nPLds", t[1]) >= 0:
		case strings.HasPrefix(t, "-I") && len(t) > 2:
			mark = t[2:]
		default:
			c.refuse(t + " is not a flag that nod knows")
			return
		}
	}
	if i >= len(c.args) {
		return // xargs without a command prints its input
	}
	c.fills(append(filled(c.args[i:], mark), unknownWord))
}

// fills checks a command that gets further words from files or from another command. The further
// words may be flags and paths, so the command must lose no work, whatever these words are.
func (c *command) fills(words []shell.Term) {
	if len(words) == 0 || !words[0].Known {
		c.refuse("runs a command that is not known")
		return
	}
	before := c.why
	c.again(words)
	if c.why != before {
		return
	}
	if n := programOf(commands.ProgramName(words[0].Text)); interpreters[n] != nil || n == "git" && !filledGit(words) {
		c.refuse("gives " + n + " words that are not known")
	}
}

// filledGit reports whether a git command loses no work, whatever further words it gets.
func filledGit(words []shell.Term) bool {
	return len(words) > 1 && (words[1].Text == "add" || words[1].Text == "check-ignore")
}

func (c *command) finds() {
	for i := 0; i < len(c.args); i++ {
		t := c.args[i]
		switch text := t.Text; {
		case !t.Known && t.Before() == "" && i > 0:
			c.refuse("has words that are not known")
			return
		case text == "-delete", strings.HasPrefix(text, "-fprint"), text == "-fls":
			c.refuse("deletes or overwrites what it finds")
		case text == "-exec", text == "-execdir", text == "-ok", text == "-okdir":
			end := i + 1
			for end < len(c.args) && c.args[end].Text != ";" && c.args[end].Text != "+" {
				end++
			}
			c.fills(filled(c.args[i+1:end], "{}"))
			i = end
		case c.name != "find" && (text == "-x" || text == "-X" || text == "--exec" || text == "--exec-batch"):
			words := filled(c.args[i+1:], "{")
			c.fills(append(words, unknownWord))
			return
		case c.name != "find" && (strings.HasPrefix(text, "--exec") || strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.ContainsAny(text, "xX")):
			c.refuse("runs a command for each file")
		}
	}
}
