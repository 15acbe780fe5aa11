package people_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func offered(change func(*schemas.Prompt)) people.Offer {
	p := schemas.Prompt{SessionID: "S-1", PendingID: "P-1", Waiters: 1, Waiting: 1, Request: schemas.Request{
		Kind: schemas.KindToolCall, ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`),
		Options: schemas.DefaultOptions(), CreatedAt: time.Now(),
	}}
	change(&p)
	return people.Offer{Prompt: &p, Whole: true, MaxLabel: 80, MaxInput: 3000}
}

// The dialog for the code word says what the answer allows.
func TestTheCodeWordDialogSaysWhatItAllows(t *testing.T) {
	for want, change := range map[string]func(*schemas.Prompt){
		"once":            func(*schemas.Prompt) {},
		"once ×3":         func(p *schemas.Prompt) { p.Waiters, p.Waiting = 3, 3 },
		"in this session": func(p *schemas.Prompt) { p.Request.Kind = schemas.KindPermission },
	} {
		d, ok := offered(change).Dialog(people.ActAllow)
		require.True(t, ok, want)
		require.Equal(t, people.AskCode, d.Kind)
		require.Equal(t, want, d.Allows)
	}
}

// If an agent's question has several options that need a text, a channel with dialogs offers none of
// them, because the text would not say which option it answers.
func TestSeveralTextOptionsAreNotOffered(t *testing.T) {
	options := []schemas.Option{
		{OptionID: "0", Name: "Port 80", Kind: schemas.AllowOnce},
		{OptionID: "yes", Name: "Yes, with this note", Kind: schemas.AllowOnce, Text: true},
		{OptionID: "no", Name: "No, because", Kind: schemas.RejectOnce, Text: true},
	}
	question := func(n int) people.Offer {
		return offered(func(p *schemas.Prompt) { p.Request.Kind, p.Request.Options = schemas.KindQuestion, options[:n] })
	}
	one, two := question(2), question(3)
	require.Len(t, one.Buttons(), 2)
	a, ok := one.DialogAnswer(people.AskSay, people.ActSay, "note", schemas.From{})
	require.True(t, ok)
	require.Equal(t, "yes", a.OptionID)

	require.Len(t, two.Buttons(), 1)
	_, ok = two.Dialog(people.ActSay)
	require.False(t, ok)
	_, ok = two.DialogAnswer(people.AskSay, people.ActSay, "note", schemas.From{})
	require.False(t, ok)
	_, ok = people.TextAnswer(two.Prompt, false, "note", schemas.From{})
	require.False(t, ok, "also where the payload is not shown")
}
