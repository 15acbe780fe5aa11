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

// freezeOrThaw freezes or thaws all agents, one agent or one session. In a freeze, the text after the
// target is the reason.
func (h *handler) freezeOrThaw(ctx context.Context, m *message, command, rest string, tell teller) error {
	freezer, ok := h.desk.(people.Freezer)
	if !ok {
		tell.alert("Nothing changed: agents cannot be frozen from this channel.")
		return nil
	}
	b := parseFreeze(rest)
	b.From = m.from()
	freeze := command == "/freeze"
	if !freeze && b.Reason != "" { // a thaw with a mistyped target must not thaw everything
		tell.alert("Nothing changed. Send /thaw, /thaw agent NAME or /thaw session ID, and nothing else.")
		return nil
	}
	apply := freezer.Thaw
	if freeze {
		apply = freezer.Freeze
	}
	now, err := apply(ctx, b)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && (e.Code == schemas.CodeForbidden || e.Code == schemas.CodeNotFound):
		tell.alert("Nothing changed: " + people.Line(e.Message))
		return nil
	case err != nil:
		return h.refuse(err, tell)
	case freeze:
		tell.say(frozenText(&b, &now))
		return nil
	}
	lines := []string{"Thawed: " + people.FreezeTarget(&b) + " may ask again."}
	for i := range now.Freezes {
		lines = append(lines, "Still in force: "+people.DescribeFreeze(&now.Freezes[i]))
	}
	tell.say(strings.Join(lines, "\n"))
	return nil
}

// frozenText describes a new freeze: its target, the command that ends it, the number of denied
// requests, and that the freeze does not stop running commands.
func frozenText(b *schemas.FreezeRequest, now *schemas.FreezeState) string {
	text := fmt.Sprintf("Frozen: every request of %s is denied until you send %s. %s. Commands that already run are not stopped.",
		people.FreezeTarget(b), strings.TrimSpace("/thaw "+people.TargetArgs(b)), people.Denials(now))
	if people.TargetArgs(b) != "" {
		text += " All others go on; send /freeze alone to stop them too."
	}
	if late := people.Laggards(now); late != "" {
		text += "\n" + late
	}
	return text
}

// parseFreeze parses the target and the reason of a freeze: "agent NAME why", "session ID why", or
// only a reason, which freezes all agents. It treats a malformed target as a reason, because a freeze
// that was typed in haste must take effect.
func parseFreeze(rest string) schemas.FreezeRequest {
	what, more := cutWord(rest)
	id, why := cutWord(more)
	switch {
	case !schemas.ValidID(id):
	case strings.EqualFold(what, "agent"):
		return schemas.FreezeRequest{Agent: id, Reason: shortened(why)}
	case strings.EqualFold(what, "session"):
		return schemas.FreezeRequest{SessionID: id, Reason: shortened(why)}
	}
	return schemas.FreezeRequest{Reason: shortened(rest)}
}

func cutWord(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// shortened cuts a reason to the 512 bytes that nod stores.
func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
