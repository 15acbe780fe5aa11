package shell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// Every command in grammars must be Special in the command table, because only the grammars of
// Special commands are used.
func TestGrammarsAreUsed(t *testing.T) {
	for name := range grammars {
		assert.True(t, commands.Entry(name).Special, name)
	}
}

// plainWords returns exactly the words that the parser finds.
func FuzzPlainWords(f *testing.F) {
	for _, s := range []string{"ls -la", "git log -1 a..b", "  a  b ", "a=b c", "c a=b", "if true", "time ls", "a:b @c %d +e", "", " ", "ls ~", "ls\tx", "function x", "select a", "a@b.c=d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		words := plainWords(src)
		if words == nil || tooMuch(src) != "" {
			return
		}
		file := parse(src)
		if file == nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Negated {
			t.Fatalf("%q is no single command", src)
		}
		call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(call.Assigns) > 0 || len(call.Args) != len(words) {
			t.Fatalf("%q is no call of %d words", src, len(words))
		}
		for i, a := range call.Args {
			if w, why := word.Read(a, src); why != "" || w != words[i] {
				t.Fatalf("%q: word %d is %+v (%s), not %+v", src, i, w, why, words[i])
			}
		}
	})
}
