package people_test

import (
	"context"
	"fmt"
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

// pages is a Desk that lists pending requests in these pages.
type pages struct {
	people.Desk
	of   [][]schemas.Prompt
	read int // the number of pages that were read
}

func (d *pages) EachPending(_ context.Context, _ schemas.Query, f func([]schemas.Prompt) error) error {
	for _, page := range d.of {
		d.read++
		if err := f(page); err != nil {
			return err
		}
	}
	return nil
}

// A code finds only its own request, with the number of calls that its message showed. The code changes
// with the number of calls, the request's content, the recipient and the channel's secret.
func TestACodeIsForOneMessage(t *testing.T) {
	codes, open := people.Codes("a secret of the channel"), waiting()
	find := func(codes people.Codes, code, person string, of ...[]schemas.Prompt) (schemas.Prompt, bool) {
		p, ok, err := codes.Find(t.Context(), &pages{of: of}, code, person)
		require.NoError(t, err)
		return p, ok
	}
	seen := map[string]bool{}
	for n := 1; n <= 5; n++ {
		shown := people.AsShown(open[0], n)
		code := codes.Of(&shown, "4711")
		require.Len(t, code, people.CodeLength)
		seen[code] = true
		p, ok := find(codes, code, "4711", open[1:], open[:1])
		require.True(t, ok)
		require.Equal(t, []any{"p", n, n}, []any{p.PendingID, p.Waiters, p.Waiting})
		_, ok = find(codes, code, "4711", open, open[:1])
		require.True(t, ok, "a request that changes meanwhile may be on two pages")
	}
	require.Len(t, seen, 5)
	code, changed := codes.Of(&open[0], "4711"), open[0]
	changed.Digest = strings.Repeat("ef", 32)
	for name, found := range map[string]func() (schemas.Prompt, bool){
		"another person":      func() (schemas.Prompt, bool) { return find(codes, code, "4712", open) },
		"another secret":      func() (schemas.Prompt, bool) { return find(people.Codes("another"), code, "4711", open) },
		"another request":     func() (schemas.Prompt, bool) { return find(codes, code, "4711", open[1:]) },
		"no request":          func() (schemas.Prompt, bool) { return find(codes, code, "4711") },
		"no code":             func() (schemas.Prompt, bool) { return find(codes, "", "4711", open) },
		"the changed request": func() (schemas.Prompt, bool) { return find(codes, code, "4711", []schemas.Prompt{changed}) },
	} {
		_, ok := found()
		require.False(t, ok, name)
	}
}

// If two requests have the same code by chance, an answer with this code decides neither of them.
func TestACodeOfTwoRequestsFindsNone(t *testing.T) {
	codes, with := people.Codes("a secret of the channel"), map[string]schemas.Prompt{}
	for i := 0; ; i++ {
		p := schemas.Prompt{SessionID: "s", PendingID: fmt.Sprint("p", i), Waiters: 1, Waiting: 1}
		code := codes.Of(&p, "4711")
		q, taken := with[code]
		if with[code] = p; !taken {
			continue
		}
		for _, of := range [][][]schemas.Prompt{{{p, q}}, {{p}, {q}}} {
			_, ok, err := codes.Find(t.Context(), &pages{of: of}, code, "4711")
			require.NoError(t, err)
			require.False(t, ok)
		}
		return
	}
}

// If two messages about one request, with different numbers of calls, have the same code by
// chance, an answer with this code decides nothing.
func TestACodeOfTwoNumbersOfCallsFindsNone(t *testing.T) {
	codes := people.Codes("a secret of the channel")
	for i := 0; ; i++ {
		p := schemas.Prompt{SessionID: "s", PendingID: fmt.Sprint("p", i), Waiters: 1000, Waiting: 1000}
		with := map[string]bool{}
		for n := 1; n <= p.Waiters; n++ {
			shown := people.AsShown(p, n)
			code := codes.Of(&shown, "4711")
			if !with[code] {
				with[code] = true
				continue
			}
			_, ok, err := codes.Find(t.Context(), &pages{of: [][]schemas.Prompt{{p}}}, code, "4711")
			require.NoError(t, err)
			require.False(t, ok)
			return
		}
	}
}

// FuzzTextsWithACode requires that only a yes with the request's code allows the request.
func FuzzTextsWithACode(f *testing.F) {
	codes, open := people.Codes("a secret of the channel"), waiting()
	code := codes.Of(&open[1], "4711")
	for _, text := range peopletest.UnclearWithCode {
		f.Add(strings.ReplaceAll(text, "CODE", code))
	}
	f.Fuzz(func(t *testing.T, text string) {
		said := people.ReadText(text)
		p, ok, err := codes.Find(t.Context(), &pages{of: [][]schemas.Prompt{open}}, said.Code, "4711")
		require.NoError(t, err)
		if said.Word != people.Yes || !ok {
			return
		}
		words := strings.Fields(strings.ToLower(text))
		require.Len(t, words, 2, "%q allows %s", text, p.PendingID)
		require.Equal(t, "yes", words[0], "%q", text)
		require.Equal(t, strings.ToLower(codes.Of(&p, "4711")), words[1], "%q", text)
	})
}
