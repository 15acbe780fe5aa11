package people

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

func TestLineShowsWhatHides(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":                  {"git status && echo 'a b'", "git status && echo 'a b'"},
		"other scripts":          {"größe naïve 漢字 русский ✅", "größe naïve 漢字 русский ✅"},
		"scripts with marks":     {"नमस्ते ที่นี่", "नमस्ते ที่นี่"},
		"bidi override":          {"rm \u202egnp.exe\u202c", "rm ⟦U+202E⟧gnp.exe⟦U+202C⟧"},
		"bidi isolates":          {"\u2066a\u2069\u061c\u200e", "⟦U+2066⟧a⟦U+2069⟧⟦U+061C⟧⟦U+200E⟧"},
		"ANSI escape":            {"\x1b[2J\x1b]0;x\x07", "⟦U+001B⟧[2J⟦U+001B⟧]0;x⟦U+0007⟧"},
		"C1 escape":              {"\u009b31m", "⟦U+009B⟧31m"},
		"carriage return":        {"rm -rf /\rls", "rm -rf /⟦U+000D⟧ls"},
		"backspace, NUL, DEL":    {"a\b\x00\x7f", "a⟦U+0008⟧⟦U+0000⟧⟦U+007F⟧"},
		"zero width":             {"a\u200bb\u200d\ufeff", "a⟦U+200B⟧b⟦U+200D⟧⟦U+FEFF⟧"},
		"repeats are counted":    {strings.Repeat("\u200b", 180) + "x", "⟦U+200B ×180⟧x"},
		"tag characters":         {"ok\U000E0041\U000E0042", "ok⟦U+E0041⟧⟦U+E0042⟧"},
		"variation selectors":    {"a\ufe0f\U000E0100", "a⟦U+FE0F⟧⟦U+E0100⟧"},
		"private use":            {"\ue000\U000F0000", "⟦U+E000⟧⟦U+F0000⟧"},
		"unassigned":             {"\u0378\uffff", "⟦U+0378⟧⟦U+FFFF⟧"},
		"fillers":                {"\u3164\u115f\u2800\u034f", "⟦U+3164⟧⟦U+115F⟧⟦U+2800⟧⟦U+034F⟧"},
		"unusual spaces":         {"a\u00a0b\u3000c\u2003d\u2028e\u2029", "a⟦U+00A0⟧b⟦U+3000⟧c⟦U+2003⟧d⟦U+2028⟧e⟦U+2029⟧"},
		"bytes that are no text": {"a\xff\xfe\xfe", "a⟦0xFF⟧⟦0xFE ×2⟧"},
		"an encoded surrogate":   {"\xed\xa0\x80", "⟦0xED⟧⟦0xA0⟧⟦0x80⟧"},
		"the replacement itself": {"\ufffd", "\ufffd"},
		"accents on their own":   {"\u0301e\u0301", "⟦U+0301⟧e⟦U+0301⟧"},
		"an accent flood":        {"Z" + strings.Repeat("\u0351\u0489", 2), "Z⟦U+0351⟧⟦U+0489⟧⟦U+0351⟧⟦U+0489⟧"},
		"a vowel flood":          {"ก" + strings.Repeat("\u0e34", 9), "ก" + strings.Repeat("\u0e34", 3) + "⟦U+0E34 ×6⟧"},
		"doubles":                {"o\u212a \u037e \u1fef", "o⟦U+212A⟧ ⟦U+037E⟧ ⟦U+1FEF⟧"},
		"parts of a syllable":    {"\u1100\u1161", "\u1100⟦U+1161⟧"},
		"forged marks":           {"⟦U+202E⟧ ⏎ ⇥", "⟦U+27E6⟧U+202E⟦U+27E7⟧ ⟦U+23CE⟧ ⟦U+21E5⟧"},
		"line breaks and tabs":   {"a\n\tb", "a⏎⇥   b"},
		"a gap that is normal":   {"a" + strings.Repeat(" ", 24) + "b", "a" + strings.Repeat(" ", 24) + "b"},
		"a gap that pushes":      {"ls" + strings.Repeat(" ", 180) + "; rm", "ls⟦180 spaces⟧; rm"},
		"mixed gap":              {"a" + strings.Repeat(" ", 20) + "\t\t   \t\tb", "a⟦20 spaces⟧⟦2 tabs⟧⟦3 spaces⟧⟦2 tabs⟧b"},
		"blanks at the end":      {"a \t", "a⟦1 space⟧⟦1 tab⟧"},
		"break at the end":       {"a\n", "a⏎"},
		"right to left":          {"cp שלום עולם /etc", "cp ⟦rtl שלום עולם ltr⟧ /etc"},
		"right to left, a digit": {"א / 5 / ב", "⟦rtl א ltr⟧ / 5 / ⟦rtl ב ltr⟧"},
		"Arabic digits":          {"\u0661\u0662", "⟦U+0661⟧⟦U+0662⟧"},
		"empty":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Line(c.in)) })
	}
}

func TestLinesKeepBreaksApart(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"empty":           {"", nil},
		"one":             {"a", []string{"a"}},
		"two":             {"a\n  b", []string{"a⏎", "  b"}},
		"ends in a break": {"a\n", []string{"a⏎"}},
		"a blank line":    {"a\n\nb", []string{"a⏎", "⏎", "b"}},
		"only breaks":     {"\n\n", []string{"⏎", "⏎"}},
		"many breaks":     {"ls\n\n\n\n\n\n  rm", []string{"ls⟦6 line breaks⟧", "  rm"}},
		"many, with blanks": {"ls \n \n\t\n\n\nrm",
			[]string{"ls ⟦1 line break⟧⟦1 space⟧⟦1 line break⟧⟦1 tab⟧⟦3 line breaks⟧", "rm"}},
		"a forged answer": {"x\n✅ Allowed once · Ann", []string{"x⏎", "✅ Allowed once · Ann"}},
		"foreign breaks":  {"a\u2028b\vc\u0085d", []string{"a⟦U+2028⟧b⟦U+000B⟧c⟦U+0085⟧d"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Lines(c.in)) })
	}
}

// Every character is visible in the result of Line and can be recovered from it. The test skips most
// characters in the long ranges of ideographs, syllables, unassigned and private characters.
func TestEveryCharacterShows(t *testing.T) {
	const block = 0x100
	for first := rune(0); first <= unicode.MaxRune; first += block {
		switch first {
		case 0x3500:
			first = 0x9F00
		case 0xAD00:
			first = 0xD700
		case 0x20100:
			first = 0x2F800
		case 0x2FB00:
			first = 0xE0000
		case 0xE1000:
			first = unicode.MaxRune + 1 - block
		}
		var in strings.Builder
		for r := first; r < first+block; r++ {
			fmt.Fprintf(&in, "a%cb\n", r)
		}
		out := Line(in.String())
		requireVisible(t, out)
		require.Equal(t, in.String(), readBack(t, out), "in the block of U+%04X", first)
	}
}

func FuzzLines(f *testing.F) {
	for _, s := range []string{
		"", "rm -rf .", "a\u202eb\n\n\n\n\n\nc", "⟦180 spaces⟧\xff⏎\t \t", "א 5 ב (c) \u0661", "e\u0301\u1100\u1161\u11a8",
		"[א] [ב]", "⟦rtl א⟧", strings.Repeat("א ", 60), strings.Repeat(" \n", 30), "a" + strings.Repeat("\u0e34", 5),
	} {
		f.Add(s)
	}
	f.Fuzz(requireShown)
}

// Line correctly shows random mixtures of the most difficult characters. The random numbers have a
// fixed seed, so every run tests the same mixtures.
func TestMixturesOfHardCharactersAreShown(t *testing.T) {
	pieces := []string{
		" ", "  ", "\t", "\n", "\r", "a", "Z", "5", "/", "(", ")", "-", "⟦", "⟧", "⏎", "⇥", "⟦rtl ", " ltr⟧", "\u202e", "\u2066", "\u200b",
		"\u0301", "\u0e34", "ก", "é", "e", "\u1100", "\u1161", "\u11a8", "각", "א", "ש", "\u05c1", "\ufb2a", "ع", "\u064e", "\u0661", "،",
		"\u093c", "क", "\u094d", "\u212a", "\xff", "\xed\xa0\x80", "\ufffd", "\U000E0041", "\ufe0f", "👍", "漢", "\u00a0", "\u3164", "$", "%",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		var in strings.Builder
		for range random.IntN(24) {
			in.WriteString(strings.Repeat(pieces[random.IntN(len(pieces))], 1+random.IntN(3)*random.IntN(14)))
		}
		requireShown(t, in.String())
	}
}

// requireShown fails the test if Lines loses, hides or reorders text, or pushes text out of view.
func requireShown(t *testing.T, in string) {
	all := Lines(in)
	for i, line := range all {
		requireVisible(t, line)
		requireInOrder(t, bar+line)
		require.NotContains(t, line, strings.Repeat(" ", maxGap+len(tab)), "a gap that pushes text away")
		if i < len(all)-1 {
			require.Regexp(t, `(⏎|line breaks?⟧)$`, line, "a line that ends for no reason")
		}
	}
	out := Line(in)
	require.Equal(t, strings.Join(all, ""), out)
	for _, mark := range anyMark.FindAllString(out, -1) {
		require.LessOrEqual(t, Cells(mark), minWidth-labelWidth, "a mark that fits no row")
	}
	require.True(t, norm.NFC.IsNormalString(out), "it would change where it is normalised: %+q", out)
	// If readBack recovers the text from its sanitised form, no character is lost, and no other text
	// has the same form.
	require.Equal(t, in, readBack(t, out))
}

// requireVisible fails the test if s contains an invisible character.
func requireVisible(t *testing.T, s string) {
	t.Helper()
	require.True(t, utf8.ValidString(s))
	for _, r := range s {
		if !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			require.Fail(t, "a character that does not show", "U+%04X in %+q", r, s)
		}
	}
}

// requireInOrder fails the test if a screen that reorders right-to-left text would move letters outside a
// mark.
func requireInOrder(t *testing.T, s string) {
	t.Helper()
	var p bidi.Paragraph
	_, err := p.SetString(s)
	require.NoError(t, err)
	order, err := p.Order()
	require.NoError(t, err)
	next := 0
	for i := range order.NumRuns() {
		run := order.Run(i)
		start, end := run.Pos()
		require.Equal(t, next, start, "out of order in %q", s)
		next = end + 1
		if run.Direction() == bidi.RightToLeft {
			require.NotRegexp(t, `[^\pL\pM\pN\pP\pS ]|[0-9A-Za-z⟦⟧|;&/]`, run.String())
		}
	}
}

// readBack returns the text from which Line made s.
func readBack(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for s != "" {
		_, size := utf8.DecodeRuneInString(s)
		switch piece := s[:size]; piece {
		case "⟦":
			size = strings.Index(s, "⟧") + len("⟧")
			b.WriteString(readMark(t, s[:size]))
		case "⏎":
			b.WriteByte('\n')
		case "⇥":
			require.True(t, strings.HasPrefix(s, tab), "half a tab")
			size = len(tab)
			b.WriteByte('\t')
		default:
			b.WriteString(piece)
		}
		s = s[size:]
	}
	return b.String()
}

var (
	anyMark  = regexp.MustCompile(`⟦[^⟧]*⟧`)
	byNumber = regexp.MustCompile(`^⟦(U\+|0x)([0-9A-F]+)(?: ×(\d+))?⟧$`)
	byCount  = regexp.MustCompile(`^⟦(\d+) (space|tab|line break)s?⟧$`)
	together = regexp.MustCompile(`^⟦rtl (.+) ltr⟧$`)
)

func readMark(t *testing.T, mark string) string {
	t.Helper()
	if m := together.FindStringSubmatch(mark); m != nil {
		return m[1]
	}
	if m := byCount.FindStringSubmatch(mark); m != nil {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return strings.Repeat(map[string]string{"space": " ", "tab": "\t", "line break": "\n"}[m[2]], n)
	}
	m := byNumber.FindStringSubmatch(mark)
	require.NotNil(t, m, "a mark that cannot be read: %s", mark)
	code, err := strconv.ParseInt(m[2], 16, 32)
	require.NoError(t, err)
	n := 1
	if m[3] != "" {
		n, err = strconv.Atoi(m[3])
		require.NoError(t, err)
	}
	if m[1] == "0x" {
		return strings.Repeat(string([]byte{byte(code)}), n)
	}
	return strings.Repeat(fmt.Sprintf("%c", code), n)
}
