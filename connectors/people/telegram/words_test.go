package telegram_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// form waits for the message that asks Ann to reply with a text.
func (w *world) form(head string) (m telegramtest.Message) {
	w.t.Helper()
	w.waits(func() bool {
		all := w.Chat(ann)
		m = all[len(all)-1]
		return strings.HasPrefix(m.Text, head)
	})
	return m
}

// nod asked for a text about one request. The text does not count for a later request with the same
// id.
func TestATextForALaterRequestWithTheSameIDIsRefused(t *testing.T) {
	t.Parallel()
	for button, c := range map[string]struct{ head, option string }{
		"Deny, say why":  {"Reply to this message and say why", "reject_once"},
		"Something else": {"Reply to this message with your answer", "own_words"},
	} {
		t.Run(button, func(t *testing.T) {
			w := newWorld(t)
			if c.option == "own_words" {
				w.desk.prompt.Request.Kind = schemas.KindQuestion
				w.desk.prompt.Request.Options = []schemas.Option{{OptionID: c.option, Name: button, Kind: schemas.AllowOnce, Text: true}}
			}
			m := w.shows()
			defer w.run()()
			w.press(m, button)
			form := w.form(c.head)
			asked := w.desk.prompt.Digest
			w.desk.prompt.Digest = strings.Repeat("ab", 32)
			w.Write(ann, "use Postgres", form.ID)
			w.told("no such request")
			w.Empty(w.desk.answers)

			w.desk.prompt.Digest = asked
			w.Write(ann, "use Postgres", form.ID)
			a := <-w.desk.answers
			w.Equal([]string{c.option, "use Postgres", asked}, []string{a.OptionID, a.Message, a.Digest})
			w.Empty(w.Rejected())
		})
	}
}
