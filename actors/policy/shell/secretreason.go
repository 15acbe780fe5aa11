package shell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// plainWord matches a word that people cannot mistake for nod's own text.
var plainWord = lazyregexp.New(`^[A-Za-z0-9._/~*?-]{1,40}$`)

// secretReason returns a reason if the line names, or may name, a secret or settings, and otherwise "". The
// reason has the word that does so. The words in the slice sent, which name secrets that the line sends, do
// not count.
func (f *Facts) secretReason(line *Line, sent []string) string {
	certain, maybe := f.secretInCode(sent), ""
	scripts := f.onlyScripts()
	for i, w := range append(f.Words[:len(f.Words):len(f.Words)], f.meant...) {
		switch {
		case w == "", slices.Contains(sent, w), slices.Contains(sent, commands.FileIn(w)):
		case certain == "" && slices.ContainsFunc(f.Location.Resolve(w), f.secrets.Listed):
			certain = w
		case maybe == "" && i < len(f.Words) && !scripts[w] && !isText(w) && !ordinaryGlob(w) && f.secrets.MayBe(w, f.Location, false):
			maybe = w
		}
	}
	why, at := "touches a secret or settings", certain
	switch {
	case certain != "":
	case maybe != "" || len(sent) == 0 && line.NamesSecret() && f.mayNamePath(line):
		why, at = "may touch a secret or settings", maybe
	default:
		return ""
	}
	if plainWord.MatchString(at) {
		why += " (" + at + ")"
	}
	return why
}

// onlyScripts returns the words that the line contains only as search patterns or scripts.
func (f *Facts) onlyScripts() map[string]bool {
	scripts, others := map[string]bool{}, map[string]bool{}
	for _, argv := range f.Commands {
		own := commands.Scripts(argv)
		for _, w := range argv {
			if slices.Contains(own, w) {
				scripts[w] = true
			} else {
				others[w] = true
			}
		}
	}
	maps.DeleteFunc(scripts, func(w string, _ bool) bool { return others[w] })
	return scripts
}

// isText reports whether a word is code, a filter of jq or a sentence, and not a path. A control character
// may hide a path.
func isText(w string) bool {
	return jqFilter.MatchString(w) || strings.ContainsAny(w, " \t\n'\"`(){};|<>") && strings.IndexFunc(w, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) < 0
}

// jqFilter matches a filter of jq that begins with the items of a list. As a file name pattern, it would
// match at most hidden files whose names begin with a digit. jqFilter does not match .[]e]nv, because there
// the first ] is one of the characters between the brackets.
var jqFilter = lazyregexp.New(`^\.(?:\[\d+\]|\w*\[\][^\]]*$)`)

// ordinaryGlob reports whether a pattern selects only build output, or files by an extension that no secret has,
// as *.orig does.
func ordinaryGlob(w string) bool {
	if pathname.IsGlob(w) && !pathname.IsAbs(w) && !strings.Contains(w, "..") && !strings.Contains(w, "/.") && commands.IsBuildOutput(w) {
		return true
	}
	if !pathname.IsGlob(w) || !globWithExtension.MatchString(w) {
		return false
	}
	ext := strings.ToLower(path.Ext(w))
	if ext == ".orig" && path.Base(w) != "*"+path.Ext(w) {
		return false // id_*.orig may be the copy of a key
	}
	return !secrets.DataExtension(ext) && !slices.Contains([]string{".bak", ".backup", ".old", ".save", ".copy", ".tmp"}, ext)
}

// globWithExtension matches a pattern in whose last part * stands for visible names before a fixed extension.
var globWithExtension = lazyregexp.New(`^(?:\.{0,2}/|(?:[\w-]+[\w.-]*/))*[\w-]*\*[\w*-]*\.[A-Za-z0-9]{1,8}$`)

// mayNamePath reports whether the word by which a line names a secret may be a path.
func (f *Facts) mayNamePath(line *Line) bool {
	if line.secret {
		return true
	}
	for i := range line.Parts {
		if p := &line.Parts[i]; p.Secret && slices.ContainsFunc(p.Words, func(w word.Word) bool {
			return !isText(w.Text) && !ordinaryGlob(w.Text) && line.secretText(w.Text, true)
		}) {
			return true
		}
	}
	return false
}

// maxCodeWords limits the words of code that nod compares with the names of secrets.
const maxCodeWords = 400

// secretInCode searches the code and scripts in the line. It returns the first path that certainly is a
// secret, or "".
func (f *Facts) secretInCode(sent []string) string {
	for _, text := range append(f.Words[:len(f.Words):len(f.Words)], f.codeTexts...) {
		if !isText(text) {
			continue
		}
		for i, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`(,;=<>", r) }) {
			w = strings.TrimRight(w, ")]};:")
			if i > maxCodeWords || !strings.Contains(w, "/") && !strings.HasPrefix(w, ".") || slices.Contains(sent, w) {
				continue
			}
			if slices.ContainsFunc(f.Location.Resolve(w), f.secrets.Listed) {
				return w
			}
		}
	}
	return ""
}
