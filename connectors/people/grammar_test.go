package people

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

func TestReadText(t *testing.T) {
	for text, want := range map[string]Utterance{
		"yes":                        {Word: Yes},
		"  YES\n":                    {Word: Yes},
		"no":                         {Word: No},
		"yes 7F3K":                   {Word: Yes, Code: "7F3K"},
		"Yes  7f3k ":                 {Word: Yes, Code: "7F3K"},
		"no 7F3K":                    {Word: No, Code: "7F3K"},
		"No 7f3k use make clean":     {Word: No, Code: "7F3K", Reason: "use make clean"},
		"no 7F3K yes, but not there": {Word: No, Code: "7F3K", Reason: "yes, but not there"},
		"no 7F3K a\nb":               {Word: No, Code: "7F3K", Reason: "a\nb"},
	} {
		assert.Equal(t, want, ReadText(text), "%q", text)
	}
}

// unclear lists typed and spoken texts that are no answer. The list contains "yes.", which is an answer
// only if it is spoken and no code word is set.
var unclear = []string{
	"", " ", "y", "yes.", "yes!", "yes?", "yes, 7F3K", "yes 7F3", "yes 7F3KX", "yes 7F3I", "yes7F3K", "7F3K", "7F3K yes", "yes yes",
	"yes 7F3K please", "yes 7F3K no", "yes not 7F3K", "yes don't", "yes\n7F3K", "yes\t7F3K", "yes 7F3K 8G4M", "y e s", "\"yes\"", "yes\u200b",
	"yes\u00a07F3K", "ｙｅｓ", "yeſ", "уes", "oui", "si", "👍", "allow", "allow 7F3K", "disallow", "disallow 7F3K", "do not allow abcd1234",
	"not yes", "no yes", "no please", "no, 7F3K", "no\n7F3K", "never", "nope", "yesno", "yes/no", "yes or no", "yes, no", "no no no",
	"approve it", "please approve", "do not approve", "don't approve", "disapprove", "not approve", "approve not", "approved", "approve no",
	"ok no", "o\u212a", "okay not", "ok?", "ok, stop", "continue to reject", "discontinue", "do not stop", "don't stop", "unstoppable", "no stop",
	"cancel that", "cancel cancel", "yes..", ". yes", "yes .", "not", "yes but no",
}

func TestUnclearTextDecidesNothing(t *testing.T) {
	for _, text := range unclear {
		assert.Equal(t, Utterance{}, ReadText(text), "typed %q", text)
		if text != "yes." {
			assert.Equal(t, Utterance{}, ReadVoice(text), "spoken %q", text)
		}
	}
}

func TestReadVoice(t *testing.T) {
	for want, words := range map[Word][]string{
		Yes: {"yes", "approve", "ok", "okay", "continue"},
		No:  {"no", "reject", "stop", "cancel"},
	} {
		for _, word := range words {
			for _, text := range []string{word, strings.ToUpper(word), " " + word + ". "} {
				assert.Equal(t, Utterance{Word: want}, ReadVoice(text), "%q", text)
			}
			for _, text := range []string{word + " tango", "not " + word, word + " not", word + " " + word, word + "?"} {
				assert.Equal(t, Utterance{}, ReadVoice(text), "%q", text)
			}
		}
	}
	assert.Equal(t, "tango whisky", Spoken(" Tango whisky. "))
}

func TestPick(t *testing.T) {
	yes, no, coded := Utterance{Word: Yes}, Utterance{Word: No}, Utterance{Word: Yes, Code: "7F3K"}
	for _, c := range []struct {
		said Utterance
		open []string
		want int // the index of the request that Pick must return; -1 if Pick must find no request
	}{
		{yes, nil, -1}, {coded, nil, -1},
		{yes, []string{"7F3K"}, 0}, {no, []string{"7F3K"}, 0},
		{yes, []string{"7F3K", "8G4M"}, -1}, {no, []string{"7F3K", "8G4M"}, -1},
		{coded, []string{"8G4M", "7F3K"}, 1}, {coded, []string{"8G4M"}, -1},
		{coded, []string{"7F3K", "7F3K"}, -1},
		{yes, []string{"", ""}, -1}, {yes, []string{"", "7F3K"}, -1},
		{Utterance{}, []string{"7F3K"}, -1},
	} {
		i, ok := c.said.Pick(c.open)
		assert.Equal(t, c.want >= 0, ok, "%v of %v", c.said, c.open)
		if ok {
			assert.Equal(t, c.want, i)
		}
	}
}

func TestAnswer(t *testing.T) {
	p := runs("ls")
	from := schemas.From{UserID: "u1", Chat: "c1"}
	base := schemas.Answer{Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: "d1", From: from}

	want := base
	want.OptionID = "allow_once"
	a, ok := Utterance{Word: Yes}.Answer(p, from)
	assert.True(t, ok)
	assert.Equal(t, want, a)

	want = base
	want.OptionID, want.Message = "reject_once", "why"
	a, ok = Utterance{Word: No, Reason: "why"}.Answer(p, from)
	assert.True(t, ok)
	assert.Equal(t, want, a)

	_, ok = Utterance{}.Answer(p, from)
	assert.False(t, ok, "an unclear word answers nothing")

	// A yes chooses only an option that allows once, even if other options come first.
	p.Request.Options = []schemas.Option{{OptionID: "1", Kind: schemas.RejectAlways}, {OptionID: "2", Kind: schemas.AllowAlways}}
	_, ok = Utterance{Word: Yes}.Answer(p, from)
	assert.False(t, ok)
	want = base
	want.Cancelled = true
	a, ok = Utterance{Word: No}.Answer(p, from)
	assert.True(t, ok)
	assert.Equal(t, want, a)
}

func TestNewCode(t *testing.T) {
	var seen []string
	for range 200 {
		code := NewCode(func(c string) bool { return c == "" || len(seen) > 0 && c == seen[len(seen)-1] })
		require.Equal(t, Utterance{Word: Yes, Code: code}, ReadText("yes "+strings.ToLower(code)))
		seen = append(seen, code)
	}
	tries := 0
	NewCode(func(string) bool { tries++; return tries < 5 })
	assert.Equal(t, 5, tries, "taken codes are not given again")
}

func TestNotUnderstood(t *testing.T) {
	assert.Equal(t, "Nothing is waiting for you.", NotUnderstood(nil))
	assert.Equal(t, "I did not understand that, and nothing changed. Answer yes 7F3K or no 7F3K.", NotUnderstood([]string{"7F3K"}))
	assert.Contains(t, NotUnderstood([]string{"7F3K", "8G4M"}), "2 requests are waiting (7F3K, 8G4M)")
}

var (
	typedYes  = regexp.MustCompile(`^[ \t\r\n]*[yY][eE][sS]( +[0-9BCDFGHJKMNP-TV-Zbcdfghjkmnp-tv-z]{4})?[ \t\r\n]*$`)
	typedNo   = regexp.MustCompile(`(?s)^[ \t\r\n]*[nN][oO]( |[ \t\r\n]*$)`)
	spokenYes = regexp.MustCompile(`^[ \t\r\n]*([yY][eE][sS]|[aA][pP][pP][rR][oO][vV][eE]|[oO][kK]|[oO][kK][aA][yY]|[cC][oO][nN][tT][iI][nN][uU][eE])\.?[ \t\r\n]*$`)
	spokenNo  = regexp.MustCompile(`^[ \t\r\n]*([nN][oO]|[rR][eE][jJ][eE][cC][tT]|[sS][tT][oO][pP]|[cC][aA][nN][cC][eE][lL])\.?[ \t\r\n]*$`)
)

// A text is an answer only if it has one of the forms that ReadText and ReadVoice document.
func FuzzGrammar(f *testing.F) {
	for _, text := range append(unclear, "yes", "no 7F3K why", "yes 7f3k", "OK.", "approve tango", "continue") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said := ReadText(text)
		require.Equal(t, typedYes.MatchString(text), said.Word == Yes, "%q", text)
		if said.Word == No {
			require.Regexp(t, typedNo, text)
		}
		if said.Word == Yes {
			require.Empty(t, said.Reason)
		}
		said = ReadVoice(text)
		require.Equal(t, spokenYes.MatchString(text), said.Word == Yes, "%q", text)
		require.Equal(t, spokenNo.MatchString(text), said.Word == No, "%q", text)
	})
}
