package people_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// waiting returns two requests that wait for a person, the first with five identical calls.
func waiting() []schemas.Prompt {
	return []schemas.Prompt{
		{SessionID: "s", PendingID: "p", Digest: strings.Repeat("ab", 32), Waiters: 5, Waiting: 5},
		{SessionID: "s", PendingID: "q", Digest: strings.Repeat("cd", 32), Waiters: 1, Waiting: 1},
	}
}

// A code finds its own request with the calls that its message counted, and changes with each thing
// that it depends on.
func TestACodeIsForOneMessage(t *testing.T) {
	codes, open := people.Codes("a secret of the channel"), waiting()
	seen := map[string]bool{}
	for n := 1; n <= 5; n++ {
		shown := people.AsShown(open[0], n)
		code := codes.Of(&shown, "4711")
		require.Len(t, code, people.CodeLength)
		seen[code] = true
		p, ok := codes.Find(code, open, "4711")
		require.True(t, ok)
		require.Equal(t, []any{"p", n, n}, []any{p.PendingID, p.Waiters, p.Waiting})
	}
	require.Len(t, seen, 5)
	code := codes.Of(&open[0], "4711")
	for name, find := range map[string]func() (schemas.Prompt, bool){
		"another person":  func() (schemas.Prompt, bool) { return codes.Find(code, open, "4712") },
		"another secret":  func() (schemas.Prompt, bool) { return people.Codes("another").Find(code, open, "4711") },
		"another request": func() (schemas.Prompt, bool) { return codes.Find(code, open[1:], "4711") },
		"no request":      func() (schemas.Prompt, bool) { return codes.Find(code, nil, "4711") },
		"two requests":    func() (schemas.Prompt, bool) { return codes.Find(code, append(open, open[0]), "4711") },
		"no code":         func() (schemas.Prompt, bool) { return codes.Find("", open, "4711") },
	} {
		_, ok := find()
		require.False(t, ok, name)
	}
	changed := open[0]
	changed.Digest = strings.Repeat("ef", 32)
	_, ok := codes.Find(code, []schemas.Prompt{changed}, "4711")
	require.False(t, ok, "the request has changed")
}

// FuzzTextsWithACode requires that no text allows a request except for yes and its code.
func FuzzTextsWithACode(f *testing.F) {
	codes, open := people.Codes("a secret of the channel"), waiting()
	code := codes.Of(&open[1], "4711")
	for _, text := range peopletest.UnclearWithCode {
		f.Add(strings.ReplaceAll(text, "CODE", code))
	}
	f.Fuzz(func(t *testing.T, text string) {
		said := people.ReadText(text)
		p, ok := codes.Find(said.Code, open, "4711")
		if said.Word != people.Yes || !ok {
			return
		}
		words := strings.Fields(strings.ToLower(text))
		require.Len(t, words, 2, "%q allows %s", text, p.PendingID)
		require.Equal(t, "yes", words[0], "%q", text)
		require.Equal(t, strings.ToLower(codes.Of(&p, "4711")), words[1], "%q", text)
	})
}
