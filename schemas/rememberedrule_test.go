package schemas

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestARememberedRuleIsReadAsItIsPrinted(t *testing.T) {
	for text, want := range map[string]RememberedRule{
		"Bash(go test:*) in /app":                  {Tool: "Bash", Argv: []string{"go", "test"}, Prefix: true, Project: "/app"},
		"Bash(mkdir -p 'a b') at /app":             {Tool: "Bash", Argv: []string{"mkdir", "-p", "a b"}, Project: "/app", Dirs: []string{"/app"}},
		"Bash(cp a b) at /app/x or /app/y in /app": {Tool: "Bash", Argv: []string{"cp", "a", "b"}, Project: "/app", Dirs: []string{"/app/x", "/app/y"}},
		"Bash(echo 'x:*' ':*':*) in /app":          {Tool: "Bash", Argv: []string{"echo", "x:*", ":*"}, Prefix: true, Project: "/app"},
		`Bash(echo 'it'\''s' '') in '/a in /b'`:    {Tool: "Bash", Argv: []string{"echo", "it's", ""}, Project: "/a in /b"},
		"Edit('/app/a) in /x') in /app":            {Tool: "Edit", Path: "/app/a) in /x", Project: "/app"},
		"mcp__notes__add in /app":                  {Tool: "mcp__notes__add", Project: "/app"},
	} {
		assert.Equal(t, text, want.String())
		got, err := ParseRememberedRule(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

// The parser reads every part of a remembered rule, or refuses the rule. If the parser ignored a part,
// the rule would cover more calls.
func TestARememberedRuleIsReadWholeOrRefused(t *testing.T) {
	for _, text := range []string{
		"", "Bash(go test:*) in", "Bash(go test:*) in ", "Bash(go test:*) in /app ", "Bash(go test:*) in /app at", "Bash(go test:*) in /app or /b", "Bash(go test:*) within /app",
		"Bash(go test:*) at /app or", "Bash(go test:*) at /a in /a", "Bash(go  test) in /app", "Bash(go test:* ) in /app", `Bash(go "test") in /app`, "Bash(ls *.go) in /app",
		"Bash(ls 'a) in /app", "Bash(ls $HOME) in /app", "Bash() in /app", "Edit(/a /b) in /app", "Edit(/a:*) in /app", "Bash(ls) in '/app'", "Bash(ls) in /a b", "Bash(ls)  in /app", "Bash(ls) in /app\n",
	} {
		_, err := ParseRememberedRule(text)
		assert.Error(t, err, text)
	}
}

// The parser reads a printed rule as the same rule. It refuses a damaged text, unless that text is
// exactly the printed form of another rule. The parser therefore ignores no byte of a text.
func FuzzRememberedRule(f *testing.F) {
	f.Add("go\x00test", true, "/app", "/app\x00/app/x", uint16(3), " in /")
	f.Add("echo\x00it's\x00:*", false, "/a in /b", "", uint16(9), "'")
	f.Add("/app/a b/", false, "/app", "", uint16(0), ")")
	f.Fuzz(func(t *testing.T, words string, prefix bool, project, dirs string, at uint16, damage string) {
		r := RememberedRule{Tool: "Bash", Argv: strings.Split(words, "\x00"), Prefix: prefix, Project: project}
		if dirs != "" && project != "" {
			r.Dirs = strings.Split(dirs, "\x00")
		}
		edit := RememberedRule{Tool: "Edit", Path: words, Project: project}
		for _, r := range []RememberedRule{r, edit} {
			line := r.String()
			got, err := ParseRememberedRule(line)
			assert.NoError(t, err, line)
			assert.Equal(t, r, got)
			quoted := r.Quoted()
			var unquoted string
			if assert.NoError(t, json.Unmarshal([]byte(quoted), &unquoted), quoted); utf8.ValidString(line) {
				assert.Equal(t, line, unquoted)
			}
			assert.Error(t, json.Unmarshal([]byte(quoted[:int(at)%len(quoted)]), &unquoted), "a quoted rule whose end is cut off is unreadable")
			i := int(at) % (len(line) + 1)
			for _, damaged := range []string{line[:i], line[i:], line[:i] + damage + line[i:], line[:i] + damage} {
				if got, err := ParseRememberedRule(damaged); err == nil {
					assert.Equal(t, damaged, got.String())
				}
			}
		}
	})
}
