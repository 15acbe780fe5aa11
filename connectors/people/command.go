package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/nodbus/nod/schemas"
)

// Commands carries out the commands that people type on a channel: /start and /pair with a
// pairing code, /web, /leave, /back, /freeze and /thaw.
type Commands struct {
	Desk    Desk
	Channel string    // the name of the connector on which the command was typed
	Prefix  string    // what a person writes before the name of a command, such as "/nod "; empty means "/"
	Now     time.Time // the broker's time if it is known, otherwise this machine's time
}

// Run carries out the command in a person's text and returns the reply. If the text is no command, known
// is false and Run has done nothing. An error means that the result is unknown, and the channel must
// deliver the text again.
func (c *Commands) Run(ctx context.Context, from schemas.From, text string) (reply string, known bool, err error) {
	command, rest := Command(text)
	switch {
	case (command == "/start" || command == "/pair") && rest != "":
		reply, err = c.pair(ctx, from, rest)
	case command == "/web":
		reply, err = c.loginLink(ctx, from)
	case command == "/leave":
		reply, err = c.leave(ctx, from, rest)
	case command == "/back":
		reply, err = c.back(ctx, from, rest)
	case command == "/freeze", command == "/thaw":
		reply, err = c.freezeOrThaw(ctx, from, command, rest)
	default:
		return "", false, nil
	}
	return reply, true, err
}

// text returns the text that a person types on this channel for a command.
func (c *Commands) text(command string) string { return cmp.Or(c.Prefix, "/") + command }

// refuse returns the reply to a command that failed with err. If the result of the command is unknown, it
// returns an error instead.
func (c *Commands) refuse(err error) (string, error) {
	var e *schemas.Error
	if IsUncertain(err) || !errors.As(err, &e) {
		return "", fmt.Errorf("carry out a command from %s: %w", c.Channel, err)
	}
	return Refusal(e, c.Now), nil
}

// pair submits the pairing code that a person sent. The command nod pair, which showed this code, then
// gets the person's user id.
func (c *Commands) pair(ctx context.Context, from schemas.From, code string) (string, error) {
	pairer, ok := c.Desk.(Pairer)
	if !ok {
		return "Nothing changed: this channel takes no pairing codes.", nil
	}
	if err := pairer.Pair(ctx, code, from); err != nil {
		if _, err := c.refuse(err); err != nil {
			return "", err
		}
		return "That code is not awaited. Run nod pair " + c.Channel + ", and send the code exactly as it stands there.", nil
	}
	return "The code is right. You can answer as soon as nod pair accepts you, in the terminal where it runs.", nil
}

// loginLink returns a link that logs this person in to the web inbox. The link works once.
func (c *Commands) loginLink(ctx context.Context, from schemas.From) (string, error) {
	linker, ok := c.Desk.(LoginLinker)
	if !ok {
		return "Nothing changed: this channel sends no links to the web inbox.", nil
	}
	p, err := linker.LoginLink(ctx, from)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden:
		return "No link: " + e.Message, nil
	case err != nil:
		return c.refuse(err)
	}
	return LoginLink(p.URL, p.Code) + "\n\nThis link logs one browser in, once, until " + p.Until.UTC().Format("15:04 UTC") + ".", nil
}

// freezeOrThaw freezes or thaws all agents, one agent or one session. In a freeze, the text after the
// target is the reason.
func (c *Commands) freezeOrThaw(ctx context.Context, from schemas.From, command, rest string) (string, error) {
	freezer, ok := c.Desk.(Freezer)
	if !ok {
		return "Nothing changed: agents cannot be frozen from this channel.", nil
	}
	b := parseFreeze(rest)
	b.From = from
	freeze := command == "/freeze"
	if !freeze && b.Reason != "" { // a thaw with a mistyped target must not thaw everything
		return fmt.Sprintf("Nothing changed. Send %s, %s or %s, and nothing else.", c.text("thaw"), c.text("thaw agent NAME"), c.text("thaw session ID")), nil
	}
	apply := freezer.Thaw
	if freeze {
		apply = freezer.Freeze
	}
	now, err := apply(ctx, b)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && (e.Code == schemas.CodeForbidden || e.Code == schemas.CodeNotFound):
		return "Nothing changed: " + Line(e.Message), nil
	case err != nil:
		return c.refuse(err)
	case freeze:
		return c.frozenText(&b, &now), nil
	}
	lines := []string{"Thawed: " + FreezeTarget(&b) + " may ask again."}
	for i := range now.Freezes {
		lines = append(lines, "Still in force: "+DescribeFreeze(&now.Freezes[i]))
	}
	return strings.Join(lines, "\n"), nil
}

// frozenText describes a new freeze: its target, the command that ends it, and the number of denied
// requests. It adds that the freeze does not stop running commands.
func (c *Commands) frozenText(b *schemas.FreezeRequest, now *schemas.FreezeState) string {
	text := fmt.Sprintf("Frozen: every request of %s is denied until you send %s. %s. Commands that already run are not stopped.",
		FreezeTarget(b), c.text(strings.TrimSpace("thaw "+TargetArgs(b))), Denials(now))
	if TargetArgs(b) != "" {
		text += " All others go on; send " + c.text("freeze") + " alone to stop them too."
	}
	if late := Laggards(now); late != "" {
		text += "\n" + late
	}
	return text
}

// parseFreeze parses the target and the reason of a freeze: "agent NAME why", "session ID why", or
// only a reason, which freezes all agents. It treats a malformed target as a reason, because a freeze
// that was typed in haste must take effect.
func parseFreeze(rest string) schemas.FreezeRequest {
	what, more := firstWord(rest)
	id, why := firstWord(more)
	switch {
	case !schemas.ValidID(id):
	case strings.EqualFold(what, "agent"):
		return schemas.FreezeRequest{Agent: id, Reason: shortened(why)}
	case strings.EqualFold(what, "session"):
		return schemas.FreezeRequest{SessionID: id, Reason: shortened(why)}
	}
	return schemas.FreezeRequest{Reason: shortened(rest)}
}

// Command returns the first word of a text, and the rest of the text. It removes the name of a bot from
// the first word, as in "/leave@nodbot".
func Command(text string) (command, rest string) {
	command, rest = firstWord(text)
	command, _, _ = strings.Cut(command, "@")
	return command, rest
}

func firstWord(text string) (first, rest string) {
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

// IsUncertain reports whether nod may have stored a person's message although the Desk returned this
// error. The channel must then deliver the message again.
func IsUncertain(err error) bool {
	var e *schemas.Error
	return err != nil && (!errors.As(err, &e) || e.Code == schemas.CodeUnavailable)
}
