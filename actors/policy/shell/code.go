package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// maxNested limits the nesting of code in code.
const maxNested = 2

// addCode judges code that a command runs, other than a command line among its words: the lines of a
// here-document for a shell, SQL, or a program in another language.
func (f *Facts) addCode(lang commands.Language, text string, depth int) {
	if text == "" || lang == commands.NoCode || depth > maxNested || len(f.code) > maxFacts {
		return
	}
	f.codeTexts = append(f.codeTexts, text)
	if lang == commands.ShellCode {
		f.ranInput = true
		if file := parse(text); file != nil {
			f.walk(file, text, depth+1)
		} else if ownCommandText.MatchString(text) {
			f.Forbidden = OwnCommandDenied
		}
		return
	}
	f.code = append(f.code, commands.CodeFindings(lang, text)...)
	if lang != commands.ProgramCode {
		return
	}
	for _, line := range commands.LinesIn(text) {
		if file := parse(line); file != nil {
			f.walk(file, line, depth+1)
		}
	}
}

// addInlineCode judges those words of a command that may be code. It also judges the command that this
// command starts in a container or on another machine.
func (f *Facts) addInlineCode(argv []string, depth int) {
	lang := commands.LanguageOf(argv[0])
	if lang != commands.NoCode && lang != commands.ShellCode {
		for _, w := range argv[1:] {
			if commands.MayBeCode(lang, w) {
				f.addCode(lang, w, depth)
			}
		}
		for _, other := range f.others {
			for k := 1; len(other) >= len(argv) && k < len(argv); k++ {
				if meant := other[len(other)-len(argv)+k]; meant != argv[k] {
					f.addCode(lang, meant, depth)
				}
			}
		}
	}
	inner := commands.Inner(argv)
	if len(inner) == 0 || depth > maxNested {
		return
	}
	outer := f.host
	f.host = cmp.Or(outer, commands.HostOf(argv))
	f.addCommand(inner, true, depth+1)
	f.host = outer
}

// codeInput is a text that a command reads as code.
type codeInput struct {
	lang commands.Language
	text string
}

// inputsOf returns the text of a statement's here-documents, once for each command of the statement, with the
// language in which the command runs its input.
func inputsOf(s *syntax.Stmt, src string) []codeInput {
	if s.Cmd == nil {
		return nil
	}
	return codeFor(s.Cmd, hereText(s, src), src)
}

// codeFor returns a text once for each command in a node, with the language in which the command runs its
// input.
func codeFor(to syntax.Node, text, src string) (all []codeInput) {
	if text == "" {
		return nil
	}
	for _, call := range allCalls(to) {
		argv := make([]string, len(call.Args))
		for i, a := range call.Args {
			argv[i], _ = word.Known(a, src)
		}
		if len(argv) > 0 {
			all = append(all, codeInput{commands.InputLanguage(argv), text})
		}
	}
	return all
}

// hereText returns the text of a statement's here-documents and here-strings.
func hereText(s *syntax.Stmt, src string) string {
	var all []string
	for _, r := range s.Redirs {
		switch {
		case r.Op == syntax.WordHdoc:
			text, _ := word.Known(r.Word, src)
			all = append(all, text)
		case r.Hdoc != nil:
			text, _ := literalText(r.Hdoc)
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}

// printed returns the texts that the commands in a node print and that the line contains, such as the words
// of echo.
func printed(n syntax.Node, src string) string {
	var all []string
	syntax.Walk(n, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		if text := hereText(s, src); text != "" {
			all = append(all, text)
		}
		if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 1 && slices.Contains([]string{"echo", "printf"}, call.Args[0].Lit()) {
			for _, a := range call.Args[1:] {
				text, _ := word.Known(a, src)
				all = append(all, text)
			}
		}
		return true
	})
	return strings.Join(all, "\n")
}

// readsShownText reports whether the last input of a statement is a here-document in which the shell replaces
// nothing, so that the line shows all of it.
func readsShownText(s *syntax.Stmt) bool {
	shown := false
	for _, r := range s.Redirs {
		switch {
		case r.Hdoc != nil && (r.N == nil || r.N.Value == "0"):
			_, shown = literalText(r.Hdoc)
		case r.Op != syntax.RdrOut && r.Op != syntax.AppOut:
			shown = false
		}
	}
	return shown
}
