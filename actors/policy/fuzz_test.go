package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"regexp"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy"
)

// seeds are the first inputs of the fuzz tests: commands of every kind, some of them allowed.
var seeds = []string{
	"ls -la", "cat README.md", "git log --oneline -5 | head", "cd src && ls", "grep -rn --include='*.go' x .", "sed -n '1,5p' a.go", "find . -name '*.go'", "echo 'a; b'", `echo "it's $?"`, "ls 2>/dev/null || true",
	"jq -r '.a' a.json", "rg -n 'x|y' src", "awk '{print $1}' a", "[ -f a ] && echo b", "wc -l < a", "ls # all", "git diff HEAD~1 -- a b", "cat a\\ b", "sort -u a | uniq -c | sort -rn", "git branch --list 'x*'", "git show HEAD:a",
	"rm -rf x", "echo $(id)", "ls > x", "cat .env", "git branch -D x", "FOO=1 ls", "if true; then ls; fi", "cat <<E\nx\nE", "echo {a,b}", "git -c a=b log", "ls `id`", "nod allow x",
}

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	if f.Name() != "FuzzCheckIsFast" {
		return
	}
	for _, s := range []string{strings.Repeat("(", 150), strings.Repeat("$(", 90), strings.Repeat("a|", 8000) + "a", strings.Repeat("*a", 4000), "cat " + strings.Repeat("x*", 4), "cat " + strings.Repeat("é", 400), strings.Repeat("ls;", 5000),
		"cat " + strings.Repeat("../", 5000), "git log " + strings.Repeat("a:", 7000), strings.Repeat("[[ ", 60), "echo " + strings.Repeat("'a'", 5000), "cat " + strings.Repeat("[", 190), "sed -n '" + strings.Repeat("1p;", 4000) + "'",
		"cat " + strings.Repeat("a ", 8000), "nod " + strings.Repeat("nod ", 3000), strings.Repeat("bash -c 'bash -c ", 500), "eval " + strings.Repeat("eval ", 3000), strings.Repeat("{", 150), "cat " + strings.Repeat("a=", 7000), "cat " + strings.Repeat("\xe4!", 300), "cat " + strings.Repeat("é!", 300), "cat " + strings.Repeat("?a", 600), "cat " + strings.Repeat("[a]", 30), "tar " + strings.Repeat("-C nod ", 400)} {
		f.Add(s)
	}
}

func verdict(p *policy.Policy, command string) policy.Verdict {
	raw, _ := json.Marshal(map[string]string{"command": command}) // encoding strings cannot fail
	return p.Check(policy.Call{ToolName: "Bash", Input: raw, Cwd: project, Project: project, Home: home})
}

// A line to which the test adds a writing command must not be allowed. The test adds the command in every way
// that shell syntax offers.
func FuzzInfected(f *testing.F) {
	f.Add("ls # #") // an interactive Zsh may read a comment as words, even inside another comment
	addSeeds(f)
	p := preset(f, policy.PresetProject)
	f.Fuzz(func(t *testing.T, src string) {
		for _, infected := range []string{"touch pwned; " + src, "touch pwned\n" + src, "touch pwned && " + src, "touch pwned | " + src, "touch pwned & " + src, "> pwned; " + src, "$(touch pwned) " + src, "`touch pwned` " + src, "X=$(touch pwned) " + src} {
			if verdict(p, infected).Effect == policy.Allow {
				t.Fatalf("allowed: %q", infected)
			}
		}
		if verdict(p, src).Effect != policy.Allow {
			return
		}
		for _, tail := range []string{"; touch pwned", "\ntouch pwned", " && touch pwned", " || touch pwned", " | tee pwned", " & touch pwned", " > pwned", " >> pwned", " 2> pwned", " &> pwned", " $(touch pwned)", " `touch pwned`", " <(touch pwned)", " \"$(touch pwned)\"", "\r\ntouch pwned", " ${x:-$(touch pwned)}", ";{ touch pwned; }", "; (touch pwned)", "\n\n\ttouch pwned"} {
			if verdict(p, src+tail).Effect == policy.Allow {
				t.Fatalf("allowed: %q", src+tail)
			}
		}
		if strings.ContainsAny(src, "'\"\\#") {
			return // the added text may be inside quotes
		}
		for i := 0; i <= len(src); i++ {
			for _, in := range []string{"$(touch pwned)", "`touch pwned`", ";touch pwned;", "\ntouch pwned\n"} {
				if verdict(p, src[:i]+in+src[i:]).Effect == policy.Allow {
					t.Fatalf("allowed: %q", src[:i]+in+src[i:])
				}
			}
		}
	})
}

var simpleWord = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// The verdict stays the same if the test quotes plain words or adds spaces, because the shell runs the same
// command. The test does not quote the first word of a command, because aliases do not apply to a quoted word.
func FuzzSpelling(f *testing.F) {
	addSeeds(f)
	p := preset(f, policy.PresetReaders)
	f.Fuzz(func(t *testing.T, src string) {
		file, err := syntax.NewParser().Parse(strings.NewReader(src), "")
		if err != nil || strings.ContainsAny(src, "#\\") || strings.Contains(src, "<<") {
			return
		}
		var quoted, spaced strings.Builder
		last := 0
		syntax.Walk(file, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok {
				return true
			}
			for i, w := range call.Args {
				at, end := int(w.Pos().Offset()), int(w.End().Offset())
				if i == 0 || at < last || len(w.Parts) != 1 || !simpleWord.MatchString(src[at:end]) {
					continue
				}
				q := "'" + src[at:end] + "'"
				if i%2 == 0 {
					q = `"` + src[at:end] + `"`
				}
				quoted.WriteString(src[last:at] + q)
				spaced.WriteString(src[last:at] + " \t" + src[at:end])
				last = end
			}
			return true
		})
		want := verdict(p, src).Effect
		for _, other := range []string{quoted.String() + src[last:], spaced.String() + src[last:]} {
			if got := verdict(p, other).Effect; got != want && len(other) < 8<<10 {
				t.Fatalf("%q: %s, but %q: %s", src, want, other, got)
			}
		}
	})
}

// If nod allows a line, Bash and Zsh divide it into the same commands and words.
func FuzzZsh(f *testing.F) {
	addSeeds(f)
	p := preset(f, policy.PresetProject)
	shape := func(src string, lang syntax.LangVariant) (string, bool) {
		file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(src), "")
		if err != nil {
			return "", false
		}
		var out bytes.Buffer
		err = syntax.NewPrinter(syntax.Minify(true)).Print(&out, file)
		return out.String(), err == nil
	}
	f.Fuzz(func(t *testing.T, src string) {
		if verdict(p, src).Effect != policy.Allow {
			return
		}
		bash, _ := shape(src, syntax.LangBash)
		zsh, ok := shape(src, syntax.LangZsh)
		if !ok || bash != zsh {
			t.Fatalf("%q: Bash reads %q, Zsh %q", src, bash, zsh)
		}
	})
}

// Check never panics and is never slow. The test measures the fastest of several runs, so that it
// does not fail on a busy machine.
func FuzzBounded(f *testing.F) {
	addSeeds(f)
	p := preset(f, policy.PresetProject)
	limit := 10 * time.Millisecond
	if fuzzing := flag.Lookup("test.fuzz"); raceEnabled || fuzzing != nil && fuzzing.Value.String() != "" {
		limit *= 10 // fuzzing and the race detector make the code about ten times slower
	}
	f.Fuzz(func(t *testing.T, src string) {
		best := time.Hour
		for range 5 {
			start := time.Now()
			v := verdict(p, src)
			best = min(best, time.Since(start))
			if v.Effect != policy.Allow && v.Effect != policy.Ask && v.Effect != policy.Deny {
				t.Fatalf("no verdict: %q", src)
			}
			if best < limit {
				return
			}
		}
		t.Fatalf("%v for %d bytes: %.200q", best, len(src), src)
	})
}

// A tool's input may be any text. Check never panics because of the input, and never allows an
// input that is not JSON.
func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"command":"ls"}`, `{"command":["bash","-lc","ls"]}`, `{"file_path":"x"}`, `{"url":"http://x"}`, `{"input":"*** Update File: a"}`, `{`, `[]`, `null`} {
		for _, tool := range []string{"Bash", "Read", "Edit", "apply_patch", "WebFetch", "Grep", "mcp__a__b", ""} {
			f.Add(tool, s)
		}
	}
	p := preset(f, policy.PresetProject)
	f.Fuzz(func(t *testing.T, tool, input string) {
		v := p.Check(policy.Call{ToolName: tool, Input: []byte(input), Cwd: project})
		if v.Effect == policy.Allow && !json.Valid([]byte(input)) && input != "" {
			t.Fatalf("%s %q is allowed and no JSON", tool, input)
		}
	})
}
