package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// checkCommand checks a command whose words are all known. It returns the reason to ask, or "". The
// second result is true if the reason is a secret.
func (line *Line) checkCommand(words []word.Word) (string, bool) {
	name := words[0]
	if line.zsh && strings.HasPrefix(name.Text, "#") {
		return "", false // nothing runs, because Zsh has no command whose name begins with #
	}
	if !name.Bare {
		if name.Text == "[" && len(name.Text) == 1 && line.reader.Level >= commands.LevelReaders {
			line.NamesOnly = true
			defer func() { line.NamesOnly = false }()
			return line.testExpression(words[1:], true)
		}
		return "the command's name is quoted or a pattern", false
	}
	switch name.Text {
	case "pushd", "popd":
		line.Untracked = true
	case "cd":
		if line.reader.Level < commands.LevelReaders {
			line.changeDir(words[1:]) // a rule may allow cd, and the rules of the new directory then apply
		}
	}
	c := commands.Entry(name.Text)
	if !c.AllowedAt(line.reader.Level) {
		return unknownCommand, false
	}
	line.NamesOnly = c.Lists || c.NamesOnly
	defer func() { line.NamesOnly = false }()
	if c.Special {
		if check := grammars[name.Text]; check != nil {
			return check(line, words[1:])
		}
		return unknownCommand, false
	}
	a, why := c.Check(name.Text, words[1:], line)
	if why != "" {
		return why, line.AnySecret(words[1:], c.Text)
	}
	checked := words[1:]
	switch {
	case c.Loose:
		checked = a.Paths()
	case c.Lists:
		checked = spelled(checked)
	}
	if w := line.firstSecret(checked, c.Text); w != nil {
		return line.namesWhat(*w), true
	}
	if line.Lost && !c.Text && !line.NamesOnly && slices.ContainsFunc(a.Paths(), isRelative) {
		return unknownDirectory, false
	}
	return "", false
}

// unknownDirectory is the reason to ask about a relative path if the command may run in any
// directory.
const unknownDirectory = "names a file in a directory that nod does not know: write its full path"

func isRelative(w word.Word) bool {
	return w.Text != "-" && !w.Tilde && !pathname.IsAbs(pathname.Slashes(w.Text))
}

// unknownNumber is the reason to ask about a word such as .m$?. The shell replaces $? by a number,
// and the word may then name any file.
const unknownNumber = "$? may stand for any number"

// takesNumbers reports whether an unknown number may be part of the words, because the command only prints
// its words, compares them as strings, or is a gh command that shows the pull request, issue or run with
// that number.
func takesNumbers(words []word.Word) bool {
	switch words[0].Text {
	case "echo", "printf", ":":
		return true
	case "gh":
		return commands.ReadsService(texts(words))
	case "test", "[":
		return !slices.ContainsFunc(words[1:], func(w word.Word) bool {
			return len(w.Text) == 2 && w.Text[0] == '-' && w.Text != "-n" && w.Text != "-z"
		})
	}
	return false
}

func texts(words []word.Word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.Text
	}
	return out
}

// grammars has the checks of commands whose harmless uses cannot be described by a list of flags and
// operands. A check returns the reason to ask, or "". The result secret is true if the reason is a secret.
var grammars = map[string]func(line *Line, words []word.Word) (why string, secret bool){
	"cd":      (*Line).changeDir,
	"find":    (*Line).findFiles,
	"git":     (*Line).git,
	"rtk":     (*Line).rtk,
	"test":    (*Line).testCommand,
	"workmux": (*Line).workmux,
}

// spelled returns the words of a command that prints only names. It cuts each word before the first
// path segment with a wildcard. It keeps a segment that begins with a dot, because such a segment
// can match hidden names.
func spelled(words []word.Word) []word.Word {
	out := make([]word.Word, 0, len(words))
	for _, w := range words {
		if w.Glob {
			for at := 0; ; {
				end := strings.IndexByte(w.Text[at:], '/')
				seg := w.Text[at:]
				if end >= 0 {
					seg = w.Text[at : at+end]
				}
				if pathname.IsGlob(seg) && seg[0] != '.' {
					w.Text = w.Text[:at]
					break
				}
				if end < 0 {
					break
				}
				at += end + 1
			}
		}
		out = append(out, w)
	}
	return out
}

// unknownCommand is the reason to ask about a command that the preset does not allow.
const unknownCommand = "is not a command known to only read"

// rtk checks the words after rtk, a program that runs another program and shortens its output. Only
// git may follow rtk.
func (line *Line) rtk(words []word.Word) (string, bool) {
	if len(words) == 0 || words[0].Text != "git" {
		return unknownCommand, false
	}
	changeable := line.Changeable
	line.Changeable = false // Harden does not change rtk's lines
	defer func() { line.Changeable = changeable }()
	return line.git(words[1:])
}

// workmux allows subcommands of workmux that show work trees and the output of the agents in these
// work trees.
func (line *Line) workmux(words []word.Word) (string, bool) {
	if len(words) == 0 {
		return unknownCommand, false
	}
	sub := commands.Reader("workmux " + words[0].Text)
	if sub == nil {
		return unknownCommand, false
	}
	_, why := sub.Check("workmux", words[1:], line)
	return why, false
}

// AnySecret reports whether a word may mean a secret. If the argument text is true, the words are not
// paths. In this case, only words that the shell expands to paths count.
func (line *Line) AnySecret(words []word.Word, text bool) bool {
	return line.firstSecret(words, text) != nil
}

// firstSecret returns the first word that may mean a secret, or nil. If the argument text is true, only
// words that the shell expands to paths count.
func (line *Line) firstSecret(words []word.Word, text bool) *word.Word {
	for i, w := range words {
		if (!text || w.Glob || w.Tilde) && line.secretPath(w) {
			return &words[i]
		}
	}
	return nil
}

// namesWhat returns the reason to ask about a word that may mean a secret.
func (line *Line) namesWhat(w word.Word) string {
	for _, piece := range pathname.Pieces(w.Text) {
		for _, at := range line.Follow(piece) {
			if at == pathname.Unfollowed {
				return "names " + w.Text + ", whose links nod cannot follow"
			}
			if line.reader.Secrets.MayBe(at, &line.Location, false) {
				return "names " + w.Text + ", which leads to " + at
			}
		}
	}
	listed := func(t string) bool { return line.reader.Secrets.MayBeListed(t, &line.Location, true) }
	if !slices.ContainsFunc(pathname.Pieces(w.Text), listed) {
		return "names a hidden file or folder outside the project, " + w.Text
	}
	return "names a secret, " + w.Text
}

// secretPath reports whether w, or a path that is a part of w, may mean a secret or one of nod's own files.
func (line *Line) secretPath(w word.Word) bool { return line.secretText(w.Text, false) }

// secretText reports whether t, or a part of t that may be a path, may mean a secret. Such a part is PATH
// in --flag=PATH, REV:PATH and @PATH. If the argument dots is true, wildcards also match hidden names.
func (line *Line) secretText(t string, dots bool) bool {
	if line.secretIn(t, dots) {
		return true
	}
	for _, piece := range pathname.Pieces(t)[1:] {
		if line.secretIn(piece, dots) {
			return true
		}
	}
	return false
}

func (line *Line) secretIn(t string, dots bool) bool {
	if t == "" || commands.IsCount("-"+t) && len(line.Follow(t)) == 0 {
		return false // no secret has a number as its name, but a link with such a name may lead to a secret
	}
	return line.reader.Secrets.MayBe(t, &line.Location, dots)
}

// SearchesPrivate reports whether a search of these paths includes a home directory or a directory with
// known secrets. If paths is empty, the search is of the current directory.
func (line *Line) SearchesPrivate(paths []word.Word) bool {
	if line.Lost && (len(paths) == 0 || slices.ContainsFunc(paths, isRelative)) {
		return true
	}
	if len(paths) == 0 {
		return line.reader.Secrets.MayLieBelow(".", &line.Location)
	}
	return slices.ContainsFunc(paths, func(p word.Word) bool { return line.reader.Secrets.MayLieBelow(p.Text, &line.Location) })
}

// SearchesExposed returns a file with secrets that a search of these paths would show, a directory
// that may contain such files, or "".
func (line *Line) SearchesExposed(paths []word.Word, skips func(file string) bool) (found string, unsearched bool) {
	searches := make([]pathname.Search, len(paths))
	for i, p := range paths {
		searches[i] = pathname.Search{Path: p.Text, Pattern: p.Glob}
	}
	return line.Location.ExposedBelow(searches, skips)
}

// SecretFilter reports whether a search with this file name filter may include secrets.
func (line *Line) SecretFilter(filter string) bool {
	return line.reader.Secrets.MayPass(filter)
}

// changeDir follows a cd command. The cd may fail, so later commands may run in the old directory or in the
// new one. It returns the same results as checkCommand.
func (line *Line) changeDir(words []word.Word) (why string, secret bool) {
	defer func() { line.Untracked = line.Untracked || why != "" }()
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	if len(words) != 1 || words[0].Text == "" || words[0].Glob || strings.HasPrefix(words[0].Text, "-") || strings.HasPrefix(words[0].Text, "+") {
		return "does not name one plain directory", false
	}
	if line.secretPath(words[0]) {
		return line.namesWhat(words[0]), true
	}
	to := line.Resolve(words[0].Text)
	if len(to) == 0 {
		// The old directory and the new directory are unknown, so nod cannot check relative paths
		// from now on. A made-up directory outside every project stands for both directories.
		to = []string{"/?/" + pathname.Slashes(words[0].Text)}
	}
	if len(line.Dirs)+len(to) > 8 {
		return "changes the directory too often to follow", false
	}
	line.moveTo(append(line.Dirs[:len(line.Dirs):len(line.Dirs)], to...))
	return "", false
}

func (line *Line) testCommand(words []word.Word) (string, bool) {
	return line.testExpression(words, false)
}

// testExpression checks the words after test or inside [ ]. It allows tests of one file and comparisons
// of two strings. In some shells, other operators evaluate arithmetic, which can run commands.
func (line *Line) testExpression(words []word.Word, bracket bool) (string, bool) {
	if bracket {
		if len(words) == 0 || words[len(words)-1].Text != "]" {
			return "lacks its ]", false
		}
		words = words[:len(words)-1]
	}
	if len(words) > 0 && words[0].Text == "!" {
		words = words[1:]
	}
	for _, w := range words {
		if w.Glob {
			return "tests a pattern, which may be several words", false
		}
	}
	switch {
	case len(words) == 2 && len(words[0].Text) == 2 && words[0].Text[0] == '-' && strings.IndexByte("efdrwxsLhzn", words[0].Text[1]) >= 0:
		if line.secretPath(words[1]) {
			return line.namesWhat(words[1]), true
		}
		return "", false
	case len(words) == 3 && (words[1].Text == "=" || words[1].Text == "!=") && !strings.HasPrefix(words[0].Text, "-") && !strings.ContainsAny(words[0].Text, "()!"):
		return "", false
	}
	return "is not a test known to be harmless", false
}
