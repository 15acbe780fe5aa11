package telegram

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// An end is where, and for how long, an answer may reach beyond the one call.
type end struct {
	scope   schemas.Scope
	seconds int // 0 is until it is revoked
}

// ends are those on offer, the nearest first.
var ends = []end{
	{schemas.ScopeSession, 60 * 60},
	{schemas.ScopeSession, 0},
	{schemas.ScopeAgent, 24 * 60 * 60},
	{schemas.ScopeAgent, 0},
}

// String is the end as a person is shown it.
func (e end) String() string {
	where := "in this session"
	if e.scope == schemas.ScopeAgent {
		where = "for this agent, in any session"
	}
	if e.seconds == 0 {
		return where + ", until you revoke it"
	}
	return where + ", for " + schemas.Words(time.Duration(e.seconds)*time.Second)
}

// What a reach sends that is chosen, and what it sends with an end. The end is
// in it as it is, so that a button means the same to every version of nod.
func reachAction(i int) string { return "r" + strconv.Itoa(i) }
func (e end) action(i int) string {
	return fmt.Sprintf("k%d%c%d", i, e.scope[0], e.seconds)
}

// reaches are those that an answer from here may have: none where the rules
// cannot be read whole, and one tap never chooses any.
func reaches(p *schemas.Prompt) []schemas.Reach {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	switch {
	case !once, p.Request.Kind == schemas.KindQuestion, len(p.Remember) == 0, !whole(p):
		return nil
	case p.Request.Kind == schemas.KindPermission:
		return p.Remember[:1]
	}
	return p.Remember
}

// ruleHead heads the exact rule.
const ruleHead = "From now on"

func rule(i int, r *schemas.Reach) string {
	return fmt.Sprintf("%s, %d: %s", ruleHead, i+1, people.Line(r.String()))
}

// reachRows are the buttons that lead to the ends of each reach, by its number
// in the question's text where a button cannot name it whole.
func reachRows(p *schemas.Prompt) (rows [][]button) {
	for i, r := range reaches(p) {
		text := rule(i, &r)
		if people.UTF16(text) > maxLabel {
			text = fmt.Sprintf("%s, %d …", ruleHead, i+1)
		}
		rows = append(rows, []button{{text, callback(p, reachAction(i))}})
	}
	return rows
}

// endButtons are the last step: a press allows, from now on, until then.
func endButtons(p *schemas.Prompt, i int) *keyboard {
	var k keyboard
	for _, e := range ends {
		k.Rows = append(k.Rows, []button{{fmt.Sprintf("✅ %d, %s", i+1, e), callback(p, e.action(i))}})
	}
	k.Rows = append(k.Rows, back(p))
	return &k
}

// reachChosen is the reach that an action chooses, and its exact rule.
func reachChosen(p *schemas.Prompt, action string) (i int, exact string, ok bool) {
	for i, r := range reaches(p) {
		if reachAction(i) == action {
			return i, rule(i, &r), true
		}
	}
	return 0, "", false
}

// lasting is the answer that an action with a reach and an end stands for.
func lasting(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	for i := range reaches(p) {
		for _, e := range ends {
			if e.action(i) == action {
				a, ok = people.Said{Word: people.Yes}.Answer(p, from)
				a.Scope, a.Reach, a.ForSeconds = e.scope, i, e.seconds
				return a, ok
			}
		}
	}
	return a, false
}

// rule shows the exact rule that is about to be chosen: as the text over the
// chat where it fits, and as a message where not.
func (v *visit) rule(ctx context.Context, about *message, exact string) (toast string) {
	const then = "\n\nThe next tap allows it, until the end that you choose."
	if people.UTF16(exact+then) <= maxToast {
		return exact + then
	}
	var c content
	c.add("code", exact)
	c.add("", then)
	v.send(ctx, outgoing{ChatID: about.Chat.ID, Text: c.text.String(), Entities: c.entities, ReplyTo: &replyTo{MessageID: about.ID, Without: true}})
	return ""
}
