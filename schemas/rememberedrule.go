package schemas

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// RememberedRule is a rule of a grant. In one project, it covers a path, a tool, or a parsed command
// that consists of certain words or begins with them. It allows only calls about which a person would
// be asked because no rule of the policy matches. Deny and ask rules of the policy take precedence
// over it.
type RememberedRule struct {
	Tool    string   `json:"tool"`
	Argv    []string `json:"argv,omitempty"`
	Prefix  bool     `json:"prefix,omitempty"` // whether a command may have more words after those in Argv
	Path    string   `json:"path,omitempty"`   // the covered file or, if the path ends in a slash, the covered directory
	Project string   `json:"project,omitempty"`
	// Dirs are the directories in which the command may run, because its words may mean other files in
	// another directory. The command of a task runner has no Dirs, and may run anywhere in the project.
	Dirs []string `json:"dirs,omitempty"`
	// Elsewhere means that the rule also covers the command if the agent does not say in which directory
	// the command runs. Such a rule covers only commands with exactly the words in Argv.
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
// Without ":*", a command has exactly these words. "in PROJECT" covers the whole project, and
// "at DIR" only that directory. "or elsewhere" also covers the command in an unknown directory.
// Words and paths have the quotes that a shell needs. ParseRememberedRule reads this form.
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

// Quoted returns the rule as a JSON string in ASCII, to be pasted into settings.json. If a person copies
// only a part of it, the closing quote is missing and nod refuses the settings. A part of the unquoted
// form could be a valid rule without its project, which would cover every project.
func (a *RememberedRule) Quoted() string {
	raw, err := Encode(a.String())
	if err != nil {
		panic(err) // encoding a string cannot fail
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

// ParseRememberedRule reads a rule in the form of String. It fails if it cannot read every byte,
// because the rule without that part would cover more calls.
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
			p.failed = true // only a command may have several words
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

// toolBytes are the bytes that a tool's name may have.
const toolBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// ruleText is the text of a rule while it is parsed: the rest of the text, and whether an expected part
// was missing.
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

// take removes from the rest the longest prefix that has only the given bytes, and returns this
// prefix.
func (p *ruleText) take(bytes string) string {
	after := strings.TrimLeft(p.rest, bytes)
	taken := p.rest[:len(p.rest)-len(after)]
	p.rest = after
	return taken
}

// word reads one word in the form in which ShellLine writes words.
func (p *ruleText) word() string {
	if !strings.HasPrefix(p.rest, "'") {
		w := p.take(plainBytes)
		if strings.HasSuffix(w, ":") && strings.HasPrefix(p.rest, "*)") { // the final ":*" marks a prefix and is no part of the word
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

// ShellLine joins words into a line that a shell would split into the same words.
func ShellLine(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		if out[i] = a; a == "" || a[0] == '=' || strings.Trim(a, plainBytes) != "" {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// plainBytes are the bytes that need no quotes in any shell, with one exception: "=" needs quotes at
// the start of a word.
const plainBytes = "=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:@_"
