package schemas

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// RememberedRule is a rule of a grant. It covers a parsed command (all its words or the first
// ones), a path, or a tool, in one project. It allows only calls about which a person is asked
// because no rule of the policy matches. Deny and ask rules outrank it.
type RememberedRule struct {
	Tool    string   `json:"tool"`
	Argv    []string `json:"argv,omitempty"`
	Prefix  bool     `json:"prefix,omitempty"` // a command may have more words after Argv
	Path    string   `json:"path,omitempty"`   // the covered file, or directory if it ends in a slash
	Project string   `json:"project,omitempty"`
	// Dirs are the directories in which the command may run: elsewhere its words would mean
	// other files. The command of a task runner has no Dirs; it may run anywhere in the
	// project.
	Dirs []string `json:"dirs,omitempty"`
	// Elsewhere means that the rule also covers the command if the agent does not tell the
	// directory in which it runs. Such a rule covers exactly the words in Argv.
	Elsewhere bool  `json:"elsewhere,omitempty"`
	Later     Later `json:"-"`
}

// String returns the rule as people see it and as settings contain it:
//
//	TOOL(COMMAND:*) in PROJECT
//	TOOL(PATH) in PROJECT
//	TOOL(COMMAND) at DIR or DIR in PROJECT
//	TOOL(COMMAND) at PROJECT
//	TOOL(COMMAND) in PROJECT or elsewhere
//
// Without ":*" a command has exactly these words. "in PROJECT" covers the whole project, and
// "at DIR" a directory alone. "or elsewhere" also covers the command in an unknown directory. Words and paths are quoted as for a shell if they need it.
// ParseRememberedRule reads this form.
func (a *RememberedRule) String() string {
	var b strings.Builder
	b.WriteString(a.Tool)
	switch {
	case len(a.Argv) > 0:
		b.WriteString("(" + ShellLine(a.Argv))
		if a.Prefix {
			b.WriteString(":*")
		}
		b.WriteString(")")
	case a.Path != "":
		b.WriteString("(" + ShellLine([]string{a.Path}) + ")")
	}
	for i, dir := range a.Dirs {
		b.WriteString([]string{" at ", " or "}[min(i, 1)] + ShellLine([]string{dir}))
	}
	if a.Project != "" && !slices.Equal(a.Dirs, []string{a.Project}) {
		b.WriteString(" in " + ShellLine([]string{a.Project}))
	}
	if a.Elsewhere {
		b.WriteString(orElsewhere)
	}
	return b.String()
}

// Quoted returns the rule as a JSON string in ASCII, to be pasted into settings.json. If its end is cut
// off, the string has no closing quote and nothing reads it; the bare form may lose its place at a word
// and then cover every project.
func (a *RememberedRule) Quoted() string {
	raw, err := Encode(a.String())
	if err != nil {
		panic(err) // a string always encodes
	}
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(string(raw))) {
		if unit < 0x7f {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// ParseRememberedRule reads a rule in the form of String. It reads every byte or fails: a part
// that it left out would make the rule cover more calls.
func ParseRememberedRule(text string) (RememberedRule, error) {
	p := ruleText{rest: text}
	var r RememberedRule
	r.Tool = p.take(toolBytes)
	if p.skip("(") {
		words := []string{p.word()}
		for p.skip(" ") {
			words = append(words, p.word())
		}
		switch {
		case r.Tool == "Bash":
			r.Argv, r.Prefix = words, p.skip(":*")
		case len(words) == 1:
			r.Path = words[0]
		default:
			p.failed = true // only a command has several words
		}
		p.expect(")")
	}
	if p.skip(" at ") {
		r.Dirs = []string{p.word()}
		for p.skip(" or ") {
			r.Dirs = append(r.Dirs, p.word())
		}
	}
	if p.skip(" in ") {
		r.Project = p.word()
		r.Elsewhere = p.skip(orElsewhere)
	} else if len(r.Dirs) == 1 {
		r.Project = r.Dirs[0]
	}
	switch {
	case p.failed || p.rest != "" || r.Tool == "":
		return RememberedRule{}, fmt.Errorf("%q is not a rule with a place: nod cannot read it from %q on; expected TOOL(PATTERN) in PROJECT, or TOOL(COMMAND) at DIR in PROJECT, with quotes as for a shell", text, p.rest)
	case r.String() != text:
		return RememberedRule{}, fmt.Errorf("%q is not a rule as nod writes it: write %q", text, r.String())
	}
	return r, nil
}

// orElsewhere is the end of a rule that also covers the command in an unknown directory.
const orElsewhere = " or elsewhere"

// toolBytes are the bytes of a tool's name.
const toolBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// ruleText is a rule as it is read: its rest, and whether an expected part was missing.
type ruleText struct {
	rest   string
	failed bool
}

func (p *ruleText) skip(prefix string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, prefix)
	return ok
}

func (p *ruleText) expect(prefix string) {
	p.failed = !p.skip(prefix) || p.failed
}

// take returns the longest beginning of the rest that has only these bytes.
func (p *ruleText) take(bytes string) string {
	after := strings.TrimLeft(p.rest, bytes)
	taken := p.rest[:len(p.rest)-len(after)]
	p.rest = after
	return taken
}

// word reads one word as ShellLine writes it.
func (p *ruleText) word() string {
	if !strings.HasPrefix(p.rest, "'") {
		w := p.take(plainBytes)
		if strings.HasSuffix(w, ":") && strings.HasPrefix(p.rest, "*)") { // the mark of a prefix is no part of the word
			w, p.rest = w[:len(w)-1], ":"+p.rest
		}
		p.failed = p.failed || w == ""
		return w
	}
	var b strings.Builder
	for p.skip("'") {
		text, after, closed := strings.Cut(p.rest, "'")
		p.failed = p.failed || !closed
		b.WriteString(text)
		p.rest = after
		if strings.HasPrefix(after, `\''`) {
			p.rest = after[2:]
			b.WriteByte('\'')
		}
	}
	return b.String()
}

// ShellLine joins words into a line that a shell splits into the same words.
func ShellLine(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		if out[i] = a; a == "" || a[0] == '=' || strings.Trim(a, plainBytes) != "" {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// plainBytes are the bytes that need no quotes in any shell, except "=" at the start of a word.
const plainBytes = "=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:@_"
