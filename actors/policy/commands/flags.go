package commands

import "github.com/nodbus/nod/actors/policy/shell/word"

import "strings"

// Args are the words after a command's name, divided into flags and operands.
type Args struct {
	of       *Command
	name     string
	flags    []flag
	operands []word.Word
	dashes   int // the number of operands before the word --, or -1 if there is no such word
}

type flag struct {
	name  string // the flag's name without its dashes
	value string
	after int  // the number of operands before the flag
	apart bool // the value is a word of its own
}

func (a *Args) has(names ...string) bool {
	for _, f := range a.flags {
		for _, n := range names {
			if f.name == n {
				return true
			}
		}
	}
	return false
}

func (a *Args) addFlag(name, value string, apart bool) {
	a.flags = append(a.flags, flag{name, value, len(a.operands), apart})
}

// parse divides the words after a command's name into flags and operands, and returns the reason to
// ask, or "". Like GNU getopt, it accepts flags after operands. Other programs read such flags as
// operands, so the caller also checks every word after an operand as a path.
func (c *Command) parse(name string, words []word.Word) (Args, string) {
	a := Args{of: c, name: name, dashes: -1}
	if c.raw {
		a.operands = words
		return a, ""
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		t := w.Text
		switch {
		case w.Glob && c.operands != unlimited && !c.Text:
			return a, "a pattern may stand for more words than it reads"
		case a.dashes >= 0 || t == "-" || t == "" || t[0] != '-' && (t[0] != '+' || !c.digits):
			if w.Lead && a.dashes < 0 && !c.anyFlag {
				return a, "a file name that the pattern matches could be read as a flag: put -- or ./ before it"
			}
			a.operands = append(a.operands, w)
		case w.Glob && !boundGlob(t):
			return a, "a pattern in a flag stands for unknown words"
		case t == "--":
			a.dashes = len(a.operands)
		case c.ordered && len(a.operands) > 0:
			return a, t + " after an operand can be read as a file"
		case c.digits && IsCount(t):
			a.addFlag("#", t[1:], false)
		case t[0] == '+':
			a.operands = append(a.operands, w)
		case strings.HasPrefix(t, "--"), c.oneDash:
			used, why := c.longFlag(&a, strings.TrimPrefix(t[1:], "-"), words[i+1:])
			if why != "" {
				return a, why
			}
			i += used
		default:
			used, why := c.cluster(&a, t[1:], words[i+1:])
			if why != "" {
				return a, why
			}
			i += used
		}
	}
	switch {
	case len(a.operands) > c.operands:
		return a, "has more operands than it reads"
	case c.takesScript(&a) && a.operands[0].Glob:
		return a, "a pattern in place of its script may stand for files as well"
	}
	return a, ""
}

// takesScript reports whether the first operand is a script or a pattern, and not a file.
func (c *Command) takesScript(a *Args) bool {
	return c.script != "" && len(a.operands) > 0 && !a.has(c.script, "regexp", "expression", "files", "type-list")
}

// boundGlob reports whether an unquoted pattern in the flag t is harmless, whatever file name the
// shell puts in place of the pattern. In --exclude, a file name only narrows a search. In
// --include=*.go, every file name still matches only files that end in .go. In other flags, an
// unseen file name could become a script, a format or a wider pattern.
func boundGlob(t string) bool {
	name, value, _ := strings.Cut(t, "=")
	switch name {
	case "--exclude", "--exclude-dir":
		return true
	case "--include":
		before, after, _ := strings.Cut(value, "*")
		return (before == "" || word.Plain(before)) && (after == "" || word.Plain(after))
	}
	return false
}

// IsCount reports whether a word is a number with one sign, - or +.
func IsCount(t string) bool {
	for i := 1; i < len(t); i++ {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	return len(t) > 1 && len(t) < 12
}

func (c *Command) longFlag(a *Args, t string, rest []word.Word) (int, string) {
	name, value, eq := strings.Cut(t, "=")
	kind, ok := c.longs[name]
	switch {
	case !ok:
		return 0, "--" + name + " is not a flag known to be harmless"
	case eq && kind == 0:
		return 0, "--" + name + " takes no value"
	case !eq && kind == '!' && len(rest) > 0:
		a.addFlag(name, rest[0].Text, true)
		return 1, ""
	case !eq && (kind == ':' || kind == '!'):
		v, why := nextValue("--"+name, rest)
		a.addFlag(name, v, true)
		return 1, why
	}
	a.addFlag(name, value, false)
	return 0, ""
}

func (c *Command) cluster(a *Args, t string, rest []word.Word) (int, string) {
	for i := 0; i < len(t); i++ {
		letter := t[i]
		switch {
		case strings.IndexByte(c.short, letter) >= 0:
			a.addFlag(t[i:i+1], "", false)
		case strings.IndexByte(c.tail, letter) >= 0:
			a.addFlag(t[i:i+1], t[i+1:], false)
			return 0, ""
		case strings.IndexByte(c.value, letter) >= 0:
			if i+1 < len(t) && c.apart && !IsCount("-"+t[i+1:]) {
				return 0, "the letters after -" + t[i:i+1] + " are read as more flags"
			}
			if i+1 < len(t) {
				a.addFlag(t[i:i+1], t[i+1:], false)
				return 0, ""
			}
			v, why := nextValue("-"+t[i:i+1], rest)
			a.addFlag(t[i:i+1], v, true)
			return 1, why
		default:
			return 0, "-" + t[i:i+1] + " is not a flag known to be harmless"
		}
	}
	return 0, ""
}

// nextValue returns the word after a flag as the flag's value, and the reason to ask, or "". nod asks about
// a value that looks like a flag, because some programs read it as a flag. A negative number is allowed.
func nextValue(name string, rest []word.Word) (string, string) {
	switch {
	case len(rest) == 0:
		return "", name + " lacks its value"
	case rest[0].Glob:
		return "", "the value of " + name + " may be several words"
	case strings.HasPrefix(rest[0].Text, "-") && !IsCount(rest[0].Text) && rest[0].Text != "-":
		return "", "the value of " + name + " looks like a flag"
	}
	return rest[0].Text, ""
}

// Paths returns the words that may be files. These are all operands except a first operand that is
// a script or a pattern. On some systems, tools read every word after the first operand as a file,
// so Paths includes the values of later flags.
func (a *Args) Paths() []word.Word {
	paths := a.operands
	if a.of.takesScript(a) {
		paths = paths[1:]
	}
	if !a.of.getopt {
		return paths
	}
	for _, f := range a.flags {
		if f.apart && f.after > 0 {
			paths = append(paths[:len(paths):len(paths)], word.Word{Text: f.value})
		}
	}
	return paths
}

// scripts returns the patterns or scripts among the command's words. An operand before the flag -e
// is included, because some systems' tools read this operand as the script.
func (a *Args) scripts() []string {
	var out []string
	early := true
	for _, f := range a.flags {
		if a.of.script == "e" && f.name == "e" || f.name == "regexp" || f.name == "expression" {
			out = append(out, f.value)
			early = early && f.after > 0
		}
	}
	if early && len(a.operands) > 0 {
		out = append(out, a.operands[0].Text)
	}
	return out
}
