package telegram

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// extent is the scope and the duration of a standing answer.
type extent struct {
	scope   schemas.Scope
	seconds int // 0 means until a person revokes the standing answer
}

// extents lists the scopes and durations that a person can choose, narrowest first.
var extents = []extent{
	{schemas.ScopeSession, 60 * 60},
	{schemas.ScopeSession, 0},
	{schemas.ScopeAgent, 24 * 60 * 60},
	{schemas.ScopeAgent, 0},
}

// String describes the extent, such as "in this session, until you revoke it".
func (e extent) String() string {
	where := "in this session"
	if e.scope == schemas.ScopeAgent {
		where = "for this agent, in any session"
	}
	if e.seconds == 0 {
		return where + ", until you revoke it"
	}
	return where + ", for " + schemas.FormatDuration(time.Duration(e.seconds)*time.Second)
}

// reachAction returns the action of the button for reach i. A reach is a rule that the prompt offers to
// store. The button shows the scopes and durations for that rule.
func reachAction(i int) string { return "r" + strconv.Itoa(i) }

// action returns the action of the button that chooses reach i with this extent. The action contains
// the scope and the seconds, so that the button has the same meaning for another version of nod.
func (e extent) action(i int) string {
	return fmt.Sprintf("k%d%c%d", i, e.scope[0], e.seconds)
}

// offeredReaches returns the rules that a person can choose after the button "from now on". It
// returns none if the message shows p only in part, because that part may lack the rules.
func offeredReaches(p *schemas.Prompt) []schemas.Reach {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	switch {
	case !once, p.Request.Kind == schemas.KindQuestion, len(p.Remember) == 0, !fitsWhole(p):
		return nil
	case p.Request.Kind == schemas.KindPermission:
		return p.Remember[:1]
	}
	return p.Remember
}

// ruleHead is the first words of a button or a text about a lasting rule.
const ruleHead = "From now on"

func ruleText(i int, r *schemas.Reach) string {
	return fmt.Sprintf("%s, %d: %s", ruleHead, i+1, people.Line(r.String()))
}

// reachRows makes a button for each rule that an answer may store. A press shows the extents for the
// rule. If the rule is too long for a label, the label contains the rule's number in the message.
func reachRows(p *schemas.Prompt) (rows [][]button) {
	for i, r := range offeredReaches(p) {
		text := ruleText(i, &r)
		if people.UTF16(text) > maxLabel {
			text = fmt.Sprintf("%s, %d …", ruleHead, i+1)
		}
		rows = append(rows, []button{{text, callback(p, reachAction(i))}})
	}
	return rows
}

// extentButtons makes the buttons of the last step for rule i. A press on one of them creates the
// standing answer.
func extentButtons(p *schemas.Prompt, i int) *keyboard {
	var k keyboard
	for _, e := range extents {
		k.Rows = append(k.Rows, []button{{fmt.Sprintf("✅ %d, %s", i+1, e), callback(p, e.action(i))}})
	}
	k.Rows = append(k.Rows, back(p))
	return &k
}

// reachChosen returns the index and the text of the rule whose button has this action. ok is false if
// there is none.
func reachChosen(p *schemas.Prompt, action string) (i int, exact string, ok bool) {
	for i, r := range offeredReaches(p) {
		if reachAction(i) == action {
			return i, ruleText(i, &r), true
		}
	}
	return 0, "", false
}

// standingAnswer returns the answer for a press on an extent's button. The answer stores a rule with
// the scope and the duration of the extent. ok is false for any other action.
func standingAnswer(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	for i := range offeredReaches(p) {
		for _, e := range extents {
			if e.action(i) == action {
				a, ok = people.Utterance{Word: people.Yes}.Answer(p, from)
				a.Scope, a.Reach, a.ForSeconds = e.scope, i, e.seconds
				return a, ok
			}
		}
	}
	return a, false
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
