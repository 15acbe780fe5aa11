package people

import (
	"fmt"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Extent is the scope and the duration of a standing answer, for a channel with buttons.
type Extent struct {
	Scope   schemas.Scope
	Seconds int // 0 means until a person revokes the standing answer
}

// ExtentsOf returns the scopes and durations that a person can choose for a reach, narrowest first.
func ExtentsOf(r *schemas.Reach) []Extent {
	if r.SessionOnly() {
		return []Extent{{schemas.ScopeSession, 60 * 60}, {schemas.ScopeSession, int(schemas.MaxSessionOnly / time.Second)}}
	}
	return []Extent{
		{schemas.ScopeSession, 60 * 60},
		{schemas.ScopeSession, 0},
		{schemas.ScopeAgent, 24 * 60 * 60},
		{schemas.ScopeAgent, 0},
	}
}

// String describes the extent, such as "in this session, until you revoke it".
func (e Extent) String() string {
	where := "in this session"
	if e.Scope == schemas.ScopeAgent {
		where = "for this agent, in any session"
	}
	if e.Seconds == 0 {
		return where + ", until you revoke it"
	}
	return where + ", for " + schemas.FormatDuration(time.Duration(e.Seconds)*time.Second)
}

// Action returns the action of the button that chooses rule i with this extent. The action contains the
// scope and the seconds themselves, so that the button keeps its meaning if another version of nod offers
// other extents.
func (e Extent) Action(i int) string {
	return fmt.Sprintf("k%d%c%d", i, e.Scope[0], e.Seconds)
}

// OfferedReaches returns the rules (reaches) that a lasting answer to p can store. whole says whether the
// channel shows p completely. If whole is false, the result is empty, because the channel must not show
// the rules.
func OfferedReaches(p *schemas.Prompt, whole bool) []schemas.Reach {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	switch {
	case !once, p.Request.Kind == schemas.KindQuestion, len(p.Remember) == 0, !whole:
		return nil
	case p.Request.Kind == schemas.KindPermission:
		return p.Remember[:1]
	}
	return p.Remember
}

// RuleHead returns the beginning of the texts and buttons about the rule r.
func RuleHead(r *schemas.Reach) string {
	if r.SessionOnly() {
		return "In this session"
	}
	return "From now on"
}

// RuleText returns the complete text of the rule r, whose index is i, in one line.
func RuleText(i int, r *schemas.Reach) string {
	return fmt.Sprintf("%s, %d: %s", RuleHead(r), i+1, Line(r.String()))
}

// StandingAnswer returns the answer for a button of an extent. The answer allows p and makes nod
// store a rule with this scope and duration. ok is false if action is not the action of such a
// button.
func StandingAnswer(p *schemas.Prompt, whole bool, action string, from schemas.From) (a schemas.Answer, ok bool) {
	for i, r := range OfferedReaches(p, whole) {
		for _, e := range ExtentsOf(&r) {
			if e.Action(i) == action {
				a, ok = Utterance{Word: Yes}.Answer(p, from)
				a.Scope, a.Reach, a.ForSeconds = e.Scope, i, e.Seconds
				return a, ok
			}
		}
	}
	return a, false
}

// AllowLabel returns the label of the button that allows once or, for a permission, for the
// session.
func AllowLabel(p *schemas.Prompt) string {
	switch {
	case p.Request.Kind == schemas.KindPermission: // the message says how long the permission lasts
		return "Allow in this session"
	case Times(p) != "":
		return "Allow once " + Times(p)
	}
	return "Allow once"
}
