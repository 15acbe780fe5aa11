package people

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/payload"
)

// styledLines writes a run of visible ASCII characters at once, to be fast. The result must be the same
// as for single characters, whatever text is around the run and whatever styles it has.
func TestARunOfCharactersIsShownLikeItsCharacters(t *testing.T) {
	alphabet := []rune("aaabcXYZ019-_/~  \t\néе́אב⟦⏎\u200b\x01\x7f\u0301\u0430ー\U0001F600")
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text []rune
		for range random.IntN(30) {
			text = append(text, alphabet[random.IntN(len(alphabet))])
		}
		s := string(text)
		var styles []payload.Span
		for at := 0; at < len(s) && random.IntN(3) > 0; {
			from := at + random.IntN(4)
			at = from + 1 + random.IntN(6)
			styles = append(styles, payload.Span{From: from, To: at, Style: payload.Key})
		}
		m := marker{text: s}
		for at := 0; at < len(s); {
			m.style = payload.StyleAt(styles, at)
			at += m.next(at)
			m.paint(m.style)
		}
		m.end()
		lines, spans := styledLines(s, styles)
		require.Equal(t, m.lines, lines, "%q %v", s, styles)
		require.Equal(t, m.spans, spans, "%q %v", s, styles)
	}
}
