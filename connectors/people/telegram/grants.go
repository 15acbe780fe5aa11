package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// grantsListed is how many standing answers one message lists at most, and
	// maxCovered how much of each one's words: who ends it makes no call freer.
	grantsListed = 5
	maxCovered   = 300
)

// What the buttons of a list of standing answers send: the action and the token of
// the answer that is to end, or that the list goes on behind.
const (
	actRevoke    = "g1:r:"
	actNextPage  = "g1:n:"
	grantUnknown = "Nothing changed: nod knows no such standing answer that you may end. /grants lists those that hold."
	noRevoker    = "Nothing changed: this nod lists no standing answers here."
)

// grantToken names a standing answer for one person, in 43 bytes: another person's
// press with it names none.
func grantToken(g *schemas.StandingAnswer, person int64) string {
	key := strings.Join([]string{string(g.Scope), g.SessionID, g.Agent, g.GrantID, strconv.FormatInt(person, 10)}, "\x00")
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// listGrants sends the newest standing answers that a person may undo.
func (v *visit) listGrants(ctx context.Context, m *message, say func(string)) error {
	all, _, err := v.grantsOf(ctx, m.From.ID)
	if err != nil {
		return v.refuseGrant(err, say)
	}
	list := v.grantList(all, m.From.ID)
	list.ChatID = m.Chat.ID
	v.send(ctx, list)
	return nil
}

var errNoRevoker = errors.New("the desk lists no standing answers")

// grantsOf are the standing answers that a person may undo, the newest first, ended
// ones too.
func (v *visit) grantsOf(ctx context.Context, person int64) ([]schemas.StandingAnswer, people.Revoker, error) {
	desk, ok := v.desk.(people.Revoker)
	if !ok {
		return nil, nil, errNoRevoker
	}
	all, err := desk.GrantsFor(ctx, strconv.FormatInt(person, 10))
	people.Newest(all)
	return all, desk, err
}

func (v *visit) refuseGrant(err error, say func(string)) error {
	var e *schemas.Error
	switch {
	case err == errNoRevoker:
		say(noRevoker)
		return nil
	case errors.As(err, &e) && e.Code == schemas.CodeNotFound:
		say(grantUnknown)
		return nil
	}
	return v.refuse(err, say)
}

// grantList is a message about the first of all that hold, as many as fit, with a
// button that ends each, and one for more if there are any.
func (v *visit) grantList(all []schemas.StandingAnswer, person int64) outgoing {
	all = slices.DeleteFunc(slices.Clone(all), func(g schemas.StandingAnswer) bool { return !g.Live(v.now) })
	c, k := &content{}, &keyboard{}
	if len(all) == 0 {
		c.add("", "Nothing is allowed or denied beyond one call.")
		return outgoing{Text: c.text.String()}
	}
	c.add("bold", "Standing answers, the newest first. What you end is asked about again.")
	shown := 0
	for i := range all[:min(len(all), grantsListed)] {
		g := &all[i]
		words, next := people.StandingOf(g, v.now), &content{}
		if next.grant(i+1, words); i > 0 && c.units+next.units > maxText-margin {
			break
		}
		c.newline()
		c.grant(i+1, words)
		k.Rows = append(k.Rows, []button{{fmt.Sprintf("%s %d", undoLabel(words), i+1), actRevoke + grantToken(g, person)}})
		shown++
	}
	if left := len(all) - shown; left > 0 {
		k.Rows = append(k.Rows, []button{{fmt.Sprintf("More (%d)", left), actNextPage + grantToken(&all[shown-1], person)}})
	}
	return outgoing{Text: c.text.String(), Entities: c.entities, Markup: k}
}

func undoLabel(words people.Standing) string {
	if words.Undo == "forget" {
		return "Forget"
	}
	return "Revoke"
}

// grant lays a standing answer out. What may be an agent's words is code.
func (c *content) grant(n int, s people.Standing) {
	c.newline()
	c.add("bold", fmt.Sprintf("%d · %s", n, s.Effect))
	c.newline()
	c.add("pre", "│ "+cutRunes(s.Covers, maxCovered))
	for _, line := range []string{s.Where, s.Uses, s.Until, "by " + s.By + ", " + s.When, s.From, s.Message} {
		if line != "" {
			c.newline()
			c.add("code", line)
		}
	}
}

// cutRunes is a text of at most n runes.
func cutRunes(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// tappedGrant handles a press under a list of standing answers. It reports false for
// the button of another message.
func (v *visit) tappedGrant(ctx context.Context, t *tap, say func(string)) (ours bool, err error) {
	token, revokes := strings.CutPrefix(t.Data, actRevoke)
	if !revokes {
		if token, ours = strings.CutPrefix(t.Data, actNextPage); !ours {
			return false, nil
		}
	}
	all, desk, err := v.grantsOf(ctx, t.From.ID)
	if err != nil {
		return true, v.refuseGrant(err, say)
	}
	at := slices.IndexFunc(all, func(g schemas.StandingAnswer) bool { return grantToken(&g, t.From.ID) == token })
	switch {
	case at < 0 || !t.own():
		say(grantUnknown)
	case revokes:
		return true, v.endGrant(ctx, t, desk, &all[at], say)
	default:
		list := v.grantList(all[at+1:], t.From.ID)
		list.ChatID = t.Message.Chat.ID
		say("")
		v.send(ctx, list)
	}
	return true, nil
}

// endGrant ends a standing answer, one that has ended too: what was shared of it may
// not have ended yet. Its button then says that it has ended.
func (v *visit) endGrant(ctx context.Context, t *tap, desk people.Revoker, g *schemas.StandingAnswer, say func(string)) error {
	before := people.StandingOf(g, v.now)
	if err := desk.Revoke(ctx, g, strconv.FormatInt(t.From.ID, 10)); err != nil {
		return v.refuseGrant(err, say)
	}
	switch before.Undo { // without an agent's words: Telegram may show them as links
	case "":
		say("Nothing changed: it has ended already (" + before.Until + ").")
	case "forget":
		say("Forgotten: the same call is asked about again.")
	default:
		say("Revoked: what it allowed is asked about again.")
	}
	if k := t.Message.ReplyMarkup; k != nil {
		v.edit(ctx, t.Message, k.ended(t.Data))
	}
	return nil
}

// ended is the keyboard with the button that sends data saying that it has ended.
func (k *keyboard) ended(data string) *keyboard {
	var now keyboard
	for _, row := range k.Rows {
		row = slices.Clone(row)
		for i := range row {
			if number, found := strings.CutPrefix(row[i].Text, "Revoke "); found && row[i].Data == data {
				row[i].Text = "Revoked " + number
			} else if number, found := strings.CutPrefix(row[i].Text, "Forget "); found && row[i].Data == data {
				row[i].Text = "Forgotten " + number
			}
		}
		now.Rows = append(now.Rows, row)
	}
	return &now
}
