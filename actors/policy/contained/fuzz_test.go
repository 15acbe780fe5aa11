package contained_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/contained"
)

// If a command that loses work is added to a line, the line does not run contained. The test adds
// the command in every way that shell syntax offers.
func FuzzInfected(f *testing.F) {
	for _, src := range append(lines(f, "run.txt"), lines(f, "ask.txt")...) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, bad := range []string{"rm -rf src", "git reset --hard", "mv a b", "git push", "sudo ls"} {
			for _, infected := range []string{bad + "; " + src, bad + "\n" + src, bad + " && " + src, "$(" + bad + ") " + src, "if " + bad + "; then " + src + "\nfi", "( " + bad + " )\n" + src, "env " + bad + "\n" + src, "bash -c '" + bad + "'\n" + src} {
				if judgement(infected).Why == "" {
					t.Fatalf("runs contained: %q", infected)
				}
			}
			if judgement(src).Why != "" || strings.ContainsAny(src, "'\"\\#") || strings.Contains(src, "<<") {
				continue // the added text may be inside quotes
			}
			for _, infected := range []string{src + "; " + bad, src + "\n" + bad, src + " || " + bad, src + " $(" + bad + ")", src + " | xargs " + bad, src + "; find . -exec " + bad + " \\;"} {
				if judgement(infected).Why == "" {
					t.Fatalf("runs contained: %q", infected)
				}
			}
		}
	})
}

// Two spellings of a line get the same judgement if Bash runs the same commands for both spellings.
func FuzzSpelling(f *testing.F) {
	for _, src := range append(lines(f, "run.txt"), lines(f, "ask.txt")...) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if strings.ContainsAny(src, "`") || len(src) > 4000 {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
		if err != nil {
			return
		}
		var b strings.Builder
		if syntax.NewPrinter().Print(&b, file) != nil || strings.Contains(b.String(), "`") {
			return
		}
		if was, is := judgement(src), judgement(b.String()); (was.Why == "") != (is.Why == "") && !strings.Contains(was.Why+is.Why, "too many") && !strings.Contains(was.Why+is.Why, "character") && !strings.Contains(was.Why+is.Why, "no command") {
			t.Fatalf("%q: %s\n%q: %s", src, was.Why, b.String(), is.Why)
		}
	})
}

// Every shell reads the result of RunLine as a single command, whose last word is the original
// line, byte for byte.
func FuzzRunLine(f *testing.F) {
	for _, src := range append(lines(f, "run.txt"), `'`, `\`, `\'`, `'x\' 'y; touch z; echo '`, "a\nb", "$(touch z)", "`touch z`", "!!", "\\\\'\\'", "", "#x", "\t", "é", `"`, `$'\n'`) {
		f.Add(src)
	}
	var shells []string
	for _, name := range []string{"bash", "dash", "zsh", "fish"} {
		if path, err := exec.LookPath(name); err == nil {
			shells = append(shells, path)
		} else {
			f.Logf("left out: %v", err)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		if strings.ContainsRune(src, 0) || !utf8.ValidString(src) || strings.ContainsRune(src, '\r') {
			return // nod refuses lines with control characters
		}
		line := contained.RunLine(contained.Program{Path: "/opt/my programs/nod"}, "s.c", src)
		for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangMirBSDKorn} {
			file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
			require.NoError(t, err, line)
			require.Len(t, file.Stmts, 1, line)
			call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
			require.True(t, ok, line)
			require.Len(t, call.Args, 8, line)
		}
		if len(src) > 1000 {
			return
		}
		for _, shell := range shells {
			out, err := exec.Command(shell, "-c", strings.Replace(line, "'/opt/my programs/nod' exec --run s.c -- bash -c", "printf %s", 1)).CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, out)
			require.Equal(t, src, string(out), shell)
		}
	})
}
