package telegram

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// reachAction returns the action of the button for reach i. A reach is a rule that the prompt offers to
// store. A press on the button shows the scopes and durations for that rule.
func reachAction(i int) string { return "r" + strconv.Itoa(i) }

// offeredReaches returns the rules among which a person can choose after pressing the button "from now
// on".
func offeredReaches(p *schemas.Prompt) []schemas.Reach { return people.OfferedReaches(p, fitsWhole(p)) }

// reachRows makes a button for each rule that an answer may store. A press shows the extents for the
// rule. If the rule is too long for a label, the label contains the rule's number in the message.
func reachRows(p *schemas.Prompt) (rows [][]button) {
	for i, r := range offeredReaches(p) {
		text := people.RuleText(i, &r)
		if people.UTF16(text) > maxLabel {
			text = fmt.Sprintf("%s, %d …", people.RuleHead(&r), i+1)
		}
		rows = append(rows, []button{{text, callback(p, reachAction(i))}})
	}
	return rows
}

// extentButtons makes the buttons of the last step for rule i. A press on one of them creates the
// standing answer.
func extentButtons(p *schemas.Prompt, i int) *keyboard {
	var k keyboard
	for _, e := range people.ExtentsOf(&offeredReaches(p)[i]) {
		k.Rows = append(k.Rows, []button{{fmt.Sprintf("✅ %d, %s", i+1, e), callback(p, e.Action(i))}})
	}
	k.Rows = append(k.Rows, back(p))
	return &k
}

// reachChosen returns the index and the text of the rule whose button has this action. ok is
// false if no rule has such a button.
func reachChosen(p *schemas.Prompt, action string) (i int, exact string, ok bool) {
	for i, r := range offeredReaches(p) {
		if reachAction(i) == action {
			return i, people.RuleText(i, &r), true
		}
	}
	return 0, "", false
}

// showRule shows the exact rule before a person can choose it. It returns the rule's text for a toast.
// If the text is too long, it sends the rule as a message and returns "".
func (h *handler) showRule(ctx context.Context, about *message, exact string) (toast string) {
	const then = "\n\nThe next tap allows it for as long as you choose."
	if people.UTF16(exact+then) <= maxToast {
		return exact + then
	}
	var c content
	c.add("code", exact)
	c.add("", then)
	h.send(ctx, outgoing{ChatID: about.Chat.ID, Text: c.text.String(), Entities: c.entities, ReplyTo: &replyTo{MessageID: about.ID, Without: true}})
	return ""
}
