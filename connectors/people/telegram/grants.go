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
	// grantsListed is the largest number of standing answers in one message. maxCovered is the number
	// of characters after which the rules of a standing answer are cut. Cutting them is safe, because
	// a person can only revoke the answer here.
	grantsListed = 5
	maxCovered   = 300
)

// A button in a list of standing answers sends an action and a grantToken. With actRevoke, the token
// identifies the standing answer to end. With actNextPage, it identifies the last standing answer in
// the message, after which the next page starts.
const (
	actRevoke    = "g1:r:"
	actNextPage  = "g1:n:"
	grantUnknown = "Nothing changed: nod knows no such standing answer that you may end. /grants lists those in force."
	noRevoker    = "Nothing changed: this channel lists no standing answers."
)

// grantToken returns 43 bytes that identify a standing answer in a button for one person. If another
// person presses the button, no standing answer has that token.
func grantToken(g *schemas.StandingAnswer, person int64) string {
	key := strings.Join([]string{string(g.Scope), g.SessionID, g.Agent, g.GrantID, strconv.FormatInt(person, 10)}, "\x00")
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// listGrants sends the first page of the standing answers that a person may end.
func (h *handler) listGrants(ctx context.Context, m *message, tell teller) error {
	all, _, err := h.grantsOf(ctx, m.From.ID)
	if err != nil {
		return h.refuseGrant(err, tell)
	}
	list := h.grantList(all, m.From.ID)
	list.ChatID = m.Chat.ID
	h.send(ctx, list)
	return nil
}

var errNoRevoker = errors.New("the desk lists no standing answers")

// grantsOf returns the standing answers that a person may end, newest first. Some of them may have
// ended.
func (h *handler) grantsOf(ctx context.Context, person int64) ([]schemas.StandingAnswer, people.Revoker, error) {
	desk, ok := h.desk.(people.Revoker)
	if !ok {
		return nil, nil, errNoRevoker
	}
	all, err := desk.GrantsFor(ctx, strconv.FormatInt(person, 10))
	people.SortNewestFirst(all)
	return all, desk, err
}

func (h *handler) refuseGrant(err error, tell teller) error {
	var e *schemas.Error
	switch {
	case err == errNoRevoker:
		tell.alert(noRevoker)
		return nil
	case errors.As(err, &e) && e.Code == schemas.CodeNotFound:
		tell.alert(grantUnknown)
		return nil
	}
	return h.refuse(err, tell)
}

// grantList makes a message with as many standing answers in force as fit. The message has a button to
// end each of them and, if there are more, a button for the next page.
func (h *handler) grantList(all []schemas.StandingAnswer, person int64) outgoing {
	all = slices.DeleteFunc(slices.Clone(all), func(g schemas.StandingAnswer) bool { return !g.Live(h.now) })
	c, k := &content{}, &keyboard{}
	if len(all) == 0 {
		c.add("", "Nothing is allowed or denied beyond one call.")
		return outgoing{Text: c.text.String()}
	}
	c.add("bold", "Standing answers, newest first. If you end one, nod asks about its calls again.")
	shown := 0
	for i := range all[:min(len(all), grantsListed)] {
		g := &all[i]
		words, next := people.DescribeStanding(g, h.now), &content{}
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

func undoLabel(words people.StandingText) string {
	if words.Undo == "forget" {
		return "Forget"
	}
	return "Revoke"
}

// grant appends standing answer n. It formats lines that may contain text of the agent as code.
func (c *content) grant(n int, s people.StandingText) {
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

// cutRunes returns the first n characters of text, followed by "…" if there are more.
func cutRunes(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// handleGrantPress handles a press under a list of standing answers. The result ours is false if the
// button belongs to another kind of message.
func (h *handler) handleGrantPress(ctx context.Context, t *callbackQuery, tell teller) (ours bool, err error) {
	token, revokes := strings.CutPrefix(t.Data, actRevoke)
	if !revokes {
		if token, ours = strings.CutPrefix(t.Data, actNextPage); !ours {
			return false, nil
		}
	}
	all, desk, err := h.grantsOf(ctx, t.From.ID)
	if err != nil {
		return true, h.refuseGrant(err, tell)
	}
	at := slices.IndexFunc(all, func(g schemas.StandingAnswer) bool { return grantToken(&g, t.From.ID) == token })
	switch {
	case at < 0 || !t.inOwnChat():
		tell.alert(grantUnknown)
	case revokes:
		return true, h.endGrant(ctx, t, desk, &all[at], tell)
	default:
		list := h.grantList(all[at+1:], t.From.ID)
		list.ChatID = t.Message.Chat.ID
		tell.say("")
		h.send(ctx, list)
	}
	return true, nil
}

// endGrant revokes a standing answer and changes the button's label to Revoked or Forgotten. It
// also revokes a grant that has ended, because grants that the session has shared with other
// sessions may still be in force.
func (h *handler) endGrant(ctx context.Context, t *callbackQuery, desk people.Revoker, g *schemas.StandingAnswer, tell teller) error {
	before := people.DescribeStanding(g, h.now)
	if err := desk.Revoke(ctx, g, strconv.FormatInt(t.From.ID, 10)); err != nil {
		return h.refuseGrant(err, tell)
	}
	switch before.Undo { // the reply contains no text of the agent, which Telegram could turn into links
	case "":
		tell.alert("It had already ended (" + before.Until + "). If it was shared with other sessions, that has ended now too.")
	case "forget":
		tell.say("Forgotten: nod asks about the same call again.")
	default:
		tell.say("Revoked: nod asks about such calls again.")
	}
	if k := t.Message.ReplyMarkup; k != nil {
		h.edit(ctx, t.Message, k.ended(t.Data))
	}
	return nil
}

// ended returns the keyboard with the label "Revoked" or "Forgotten" on the button with this data.
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
