package payload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// styled returns a text in which each styled piece is written as <style piece>.
func styled(text string, all []Span) string {
	var b strings.Builder
	at := 0
	for _, s := range all {
		b.WriteString(text[at:s.From] + "<" + string(s.Style) + " " + text[s.From:s.To] + ">")
		at = s.To
	}
	return b.String() + text[at:]
}

func TestShellFindsTheRolesOfWords(t *testing.T) {
	for src, want := range map[string]string{
		"rm -rf build":              "<command rm> <flag -rf> build",
		"cd a && make >out 2>&1":    "<command cd> a <operator &&> <command make> <operator >>out 2<operator >&>1",
		`echo "a $B" 'c' # why`:     `<command echo> <quoted "a ><variable $B><quoted "> <quoted 'c'> <comment # why>`,
		"A=1 env; x=$(pwd)":         "<variable A>=1 <command env><operator ;> <variable x>=<operator $(><command pwd><operator )>",
		"cat <<E\nhi\nE\n":          "<command cat> <operator <<>E\n<quoted hi\nE>\n",
		"echo (":                    "echo (",
		strings.Repeat("(", 20_000): strings.Repeat("(", 20_000),
	} {
		assert.Equal(t, want, styled(src, Shell(src)))
	}
}

func TestMarkdownStylesTheTextAndChangesNoByte(t *testing.T) {
	for src, want := range map[string]string{
		"## Mend `it`\n":              "<comment ## ><key Mend `it`>\n",
		"- run `make`, **then** stop": "<operator - >run <quoted `make`>, <key **then**> stop",
		"10) [x] done\r\n":            "<operator 10) [x] >done\r\n",
		"> said":                      "<comment >> said",
		"#no heading, 2 * 3 * 4":      "#no heading, 2 * 3 * 4",
		"```sh\n# rm\n``\n```\n# x\n": "<comment ```sh>\n<quoted # rm>\n<quoted ``>\n<comment ```>\n<comment # ><key x>\n",
		"~~~\nno end":                 "<comment ~~~>\n<quoted no end>",
		"<b>[a](javascript:alert(1))": "<b>[a](javascript:alert(1))",
		"\xff`\xfe`":                  "\xff<quoted `\xfe`>",
	} {
		assert.Equal(t, want, styled(src, Markdown(src)))
	}
}

func TestDiffMarksTheWordsThatChanged(t *testing.T) {
	lines := Diff("func main() {\n\tlimit := 10\n}\n", "func main() {\n\tlimit := 25\n\trun()\n}\n")
	require.Len(t, lines, 5)
	assert.Equal(t, "\tlimit := <removed-word 10>\n", styled(lines[1].Text, lines[1].Words))
	assert.Equal(t, "\tlimit := <added-word 25>\n", styled(lines[2].Text, lines[2].Words))
	assert.Empty(t, lines[3].Words, "a line that replaces no other is added whole")
	lines = Diff("a\ntimeout = oldValue * 2\n", "a\ntimeout = newValue * 2\n")
	require.Len(t, lines, 3)
	assert.Equal(t, "timeout = <removed-word oldValue> * 2\n", styled(lines[1].Text, lines[1].Words))
	assert.Equal(t, "timeout = <added-word newValue> * 2\n", styled(lines[2].Text, lines[2].Words))
}

func TestURLFindsTheHostThatIsReached(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.org/a?b#c":            "https://<host example.org>/a?b#c",
		"https://github.com@evil.test/nod":     "https://github.com@<host evil.test>/nod",
		"https://evil.test?@github.com/":       "https://<host evil.test>?@github.com/",
		`https://evil.test\@github.com/`:       `https://<host evil.test>\@github.com/`,
		"https://evil.test#https://github.com": "https://<host evil.test>#https://github.com",
		"no address":                           "no address",
		"https://":                             "https://",
	} {
		assert.Equal(t, want, styled(text, URL(text)))
	}
}

func TestPatchStylesAndCountsItsLines(t *testing.T) {
	text := "*** Update File: a.go\n@@ f\n-x\n+y\n+z\n same\n"
	all, added, removed := Patch(text)
	assert.Equal(t, "<key *** Update File: a.go>\n<comment @@ f>\n<removed -x>\n<added +y>\n<added +z>\n same\n", styled(text, all))
	assert.Equal(t, []int{2, 1}, []int{added, removed})
}

func TestJSONStylesKeysAndStrings(t *testing.T) {
	text := `{"a\"b": "c:", "d": 1}`
	assert.Equal(t, `<comment {><key "a\"b"><comment :> <quoted "c:"><comment ,> <key "d"><comment :> 1<comment }>`, styled(text, JSON(text)))
	assert.Equal(t, `<quoted "x\>`, styled(`"x\`, JSON(`"x\`)))
}

// requireSpans requires that spans are in order, inside the text, and not empty.
func requireSpans(t *testing.T, text string, all []Span) {
	at := 0
	for _, s := range all {
		require.True(t, s.From >= at && s.To > s.From && s.To <= len(text), "%+v in %d bytes", all, len(text))
		at = s.To
	}
}

// The kept and removed lines of a diff are exactly the old text. The kept and added lines are exactly
// the new text.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nB\nc\n")
	f.Add("", "x")
	f.Add("x\n", "")
	f.Add("same\n", "same")
	f.Add("\xff\n\u202e", "\xfe\n\u202e\r\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		var old, new strings.Builder
		for _, l := range Diff(before, after) {
			require.NotEmpty(t, l.Text)
			requireSpans(t, l.Text, l.Words)
			if l.Op != Add {
				old.WriteString(l.Text)
			}
			if l.Op != Remove {
				new.WriteString(l.Text)
			}
		}
		require.Equal(t, before, old.String())
		require.Equal(t, after, new.String())
	})
}

func FuzzStyles(f *testing.F) {
	f.Add("rm -rf \"$A\" <<E\nx\nE")
	f.Add(`{"a":["\"`)
	f.Add("https://a@b/")
	f.Add("*** x\n+a\n-b")
	f.Fuzz(func(t *testing.T, text string) {
		requireSpans(t, text, Shell(text))
		requireSpans(t, text, URL(text))
		requireSpans(t, text, JSON(text))
		all, _, _ := Patch(text)
		requireSpans(t, text, all)
	})
}
