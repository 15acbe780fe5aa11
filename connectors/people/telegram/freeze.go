package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// brake freezes everything, an agent or a session, with what was written behind it
// as the reason, or thaws it.
func (v *visit) brake(ctx context.Context, m *message, command, rest string, say func(string)) error {
	brakes, ok := v.desk.(people.Freezer)
	if !ok {
		say("Nothing changed: this nod cannot be frozen from here.")
		return nil
	}
	b := braked(rest)
	b.From = m.from()
	freeze := command == "/freeze"
	if !freeze && b.Reason != "" { // a thaw of everything must be meant
		say("Nothing changed. It is /thaw, /thaw agent NAME or /thaw session ID, and nothing else.")
		return nil
	}
	brake := brakes.Thaw
	if freeze {
		brake = brakes.Freeze
	}
	now, err := brake(ctx, b)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && (e.Code == schemas.CodeForbidden || e.Code == schemas.CodeNotFound):
		say("Nothing changed: " + people.Line(e.Message))
		return nil
	case err != nil:
		return v.refuse(err, say)
	case freeze:
		say(froze(&b, &now))
		return nil
	}
	lines := []string{"Thawed: " + people.Whose(&b) + " may ask again."}
	for i := range now.Freezes {
		lines = append(lines, "Still in force: "+people.DescribeFreeze(&now.Freezes[i]))
	}
	say(strings.Join(lines, "\n"))
	return nil
}

// froze says what was frozen, and what was not.
func froze(b *schemas.FreezeRequest, now *schemas.FreezeState) string {
	text := fmt.Sprintf("Frozen: whatever %s asks is denied until you send %s. %s. Commands that run already are not stopped.",
		people.Whose(b), strings.TrimSpace("/thaw "+people.Named(b)), people.Denials(now))
	if people.Named(b) != "" {
		text += " All others go on: /freeze alone stops them too."
	}
	if late := people.Laggards(now); late != "" {
		text += "\n" + late
	}
	return text
}

// braked reads what is to be frozen or thawed: "agent NAME why", "session ID why",
// or everything. Whatever names neither whole is a reason, so that a brake that is
// pulled in haste brakes.
func braked(rest string) schemas.FreezeRequest {
	what, more := word(rest)
	id, why := word(more)
	switch {
	case !schemas.ValidID(id):
	case strings.EqualFold(what, "agent"):
		return schemas.FreezeRequest{Agent: id, Reason: shortened(why)}
	case strings.EqualFold(what, "session"):
		return schemas.FreezeRequest{SessionID: id, Reason: shortened(why)}
	}
	return schemas.FreezeRequest{Reason: shortened(rest)}
}

// word is the first word of a text, and what follows it.
func word(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// shortened is a reason as it is stored: 512 bytes at most.
func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
