package contained

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/shell"
)

// unreadCode refuses a command with code that nod does not read, because nod does not know its
// language. The code is the value of a flag such as -e; a value that is only a name is allowed.
func (c *command) unreadCode() {
	for i, t := range c.args {
		flag, value, _ := strings.Cut(t.Text, "=")
		switch {
		case !codeFlags[flag]:
			continue
		case value == "" && i+1 < len(c.args):
			value = c.args[i+1].Text
		}
		if strings.ContainsAny(value, "({;$`!") || dangerous(value) {
			c.refuse("runs code that nod does not read")
		}
	}
}

var codeFlags = set("-e -E -c -r --eval -eval --execute --expression --run eval --command -command -Command -x")

// readsProgram refuses a command that runs a program from its input, as in make -f -, from a file
// in /tmp, or from the line itself, as in make --eval.
func (c *command) readsProgram() {
	if compilers[c.name] && slices.ContainsFunc(c.args, func(t shell.Term) bool { return t.Text == "-" || input(t.Text) }) {
		c.refuse("compiles code from its input")
	}
	if !takesTargets[c.name] && !runsFiles[c.name] {
		return
	}
	for _, r := range c.Redirects {
		if r.Kind == shell.ReadsText {
			c.refuse("runs code from its input")
		}
	}
	for i, t := range c.args {
		word := strings.TrimLeft(t.Text, "-")
		switch name, value, _ := strings.Cut(t.Text, "="); {
		case t.Text == "-", t.Text == "-f-", t.Text == "--file=-", t.Text == "--makefile=-", input(t.Text), input(value), strings.Contains(t.Text, "/dev/stdin"):
			c.refuse("runs code from its input")
		case takesTargets[c.name] && c.name == "make" && (t.Text == "-E" || strings.HasPrefix(word, "ev")), strings.HasPrefix(t.Text, "SHELL="):
			c.refuse("runs code that stands in the line")
		case private(value) && programFlags[name]:
			c.refuse("may run code in /tmp, which nod has not read")
		case c.name == "cmake" && (t.Text == "-E" || t.Text == "--install"), t.Text == "--wipe", c.name == "cargo" && i > 0 && c.args[i-1].Text == "clean" && t.Text != "--release":
			c.refuse("may delete or overwrite files")
		}
		for _, p := range append(c.resolve(t), c.resolve(shell.Term{Text: strings.TrimLeft(t.Text, "-f"), Known: t.Known && strings.HasPrefix(t.Text, "-f")})...) {
			if inPrivate(c.script, p) && !t.Glob && (i > 0 && (c.args[i-1].Text == "-f" || c.args[i-1].Text == "-P" || c.args[i-1].Text == "--file" || c.args[i-1].Text == "run") || strings.HasPrefix(t.Text, "-f/")) {
				c.refuse("runs code in /tmp, which nod has not read")
			}
		}
	}
}

// programFlags are flags whose value is a file with code.
var programFlags = set("--file --makefile --justfile --taskfile --script-shell --init-script --build-file --settings-file -f -P")

// runsFiles are commands that run the file in their operand. Commands that take targets are not listed.
var runsFiles = set("tclsh wish expect go rscript julia elixir groovy guile racket octave pwsh powershell swift scala ocaml runghc runhaskell raku crystal dart r meson")
