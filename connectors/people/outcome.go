package people

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Texts for an answer without a known result. A channel shows Recording while nod may still reply, and
// NotConfirmed if no reply came. In both cases nod may have stored the answer.
const (
	Recording    = "Your answer is being recorded. It counts once this message says so."
	NotConfirmed = "Not confirmed: nod could not be reached. Look at the request again before you answer anew."
)

// maxQuoted is the largest width, in columns, of a name or a text in an outcome line.
const maxQuoted = 120

// Outcome returns the line that replaces the choices of p after decision d. Only the line of an
// allowed request says that it was allowed. If a call ended differently at its host, the line begins
// with that end. Times are in the time zone of the request's time. If there are several calls, the
// line contains their number. If a person allowed the request, the line also contains the time from
// the request to the decision, unless p lacks the time of the request.
//
//	✅ Allowed once · 3 calls · Ann · 14:21 UTC · Telegram · after 48 s
//	⛔ Denied · Bob · 14:21 UTC · web · "use make clean"
//	❗ Denied by Bob, but it ran: answered at the terminal · 14:21 UTC · web
//	✅ Answered · Ann · 14:21 UTC · Telegram · after 48 s · "the second one"
//	⌛ Expired: denied automatically
//	🚫 Withdrawn: the agent stopped waiting
func Outcome(d *schemas.Decision, p *schemas.Prompt) string {
	asked := p.Request.CreatedAt
	head, by := outcomeHead(d, p), byline(d)
	if p.Run != nil {
		head = strings.TrimSuffix(head, changesText(d)) // running contained is not mentioned as a change
	}
	if otherwise := aftermath(d, p); otherwise != "" {
		head, by = otherwise, ""
	}
	switch d.Outcome {
	case schemas.Allowed, schemas.Denied, schemas.Cancelled:
	case schemas.TimedOut, schemas.Withdrawn: // the outcome line names neither the decider nor the time
		return join([]string{head, callsText(p)})
	default:
		return head
	}
	at := d.DecidedAt.In(asked.Location())
	items := []string{head, callsText(p), RunText(p), by, clock(at, asked), channelName(d.By.Connector)}
	if took := at.Sub(asked); d.Outcome == schemas.Allowed && d.By.Kind == schemas.ByHuman && !asked.IsZero() && took >= 0 {
		items = append(items, "after "+shortDuration(took))
	}
	return join(append(items, quoted(d.Message)))
}

// Recorded returns the reply to an answer to p that made decision d or agrees with it. The reply is
// the outcome line. If d created a standing answer, a second line contains the command that ends it.
func Recorded(d *schemas.Decision, p *schemas.Prompt) string {
	return strings.Join(lines(Outcome(d, p), UndoHint(d)), "\n")
}

// outcomeHead returns the first item of the outcome line.
func outcomeHead(d *schemas.Decision, p *schemas.Prompt) string {
	if _, plan := p.Request.Plan(); p.Request.Kind == schemas.KindQuestion && !plan {
		switch {
		case d.Outcome == schemas.Allowed:
			return "✅ Answered"
		case d.Outcome == schemas.Denied && d.By.Kind == schemas.ByHuman:
			return "⛔ Not answered"
		case d.Outcome == schemas.TimedOut:
			return "⌛ Expired without an answer"
		}
	}
	switch d.Outcome {
	case schemas.Allowed:
		return "✅ Allowed" + scopeText(d) + changesText(d)
	case schemas.Denied:
		return "⛔ Denied" + scopeText(d)
	case schemas.Cancelled:
		return "🚫 Dismissed"
	case schemas.TimedOut:
		return "⌛ Expired: denied automatically"
	case schemas.Withdrawn:
		return "🚫 Withdrawn: the agent stopped waiting"
	}
	return "⛔ Not allowed: ended in a way that this version of nod does not know"
}

// aftermath returns a text about the calls whose end differs from the decision d. Such a call ran
// although it was not allowed, never ran although it was allowed, or ran without its container. If p
// reports no such call, aftermath returns "".
func aftermath(d *schemas.Decision, p *schemas.Prompt) string {
	kind, mark := schemas.AftermathRan, "❗ "
	if d.Outcome == schemas.Allowed {
		kind, mark = schemas.AftermathNeverRan, "🚫 "
	}
	uncontained := slices.ContainsFunc(p.Aftermath, func(a schemas.Aftermath) bool { return a.Kind == schemas.AftermathUncontained })
	if uncontained {
		kind, mark = schemas.AftermathUncontained, "❗ "
	}
	n, reason := 0, ""
	for _, a := range p.Aftermath {
		if a.Kind == kind {
			n, reason = n+1, orElse(reason, a.Reason)
		}
	}
	if n == 0 {
		return ""
	}
	_, ended, _ := strings.Cut(outcomeHead(d, p), " ")
	if uncontained {
		ended = strings.TrimSuffix(ended, changesText(d))
	}
	if who := byline(d); d.By.Kind == schemas.ByHuman || d.By.Kind == schemas.ByPolicy {
		ended += " by " + who
	}
	them := "it"
	if p.Waiting > 1 {
		them = fmt.Sprintf("%d of %d", n, p.Waiting)
	}
	verb := " ran"
	switch kind {
	case schemas.AftermathNeverRan:
		verb = " never ran"
		if p.Request.Kind == schemas.KindQuestion {
			verb = " did not reach the agent"
		}
	case schemas.AftermathUncontained:
		verb = " ran without containment"
	}
	text := mark + ended + ", but " + them + verb
	if reason != "" {
		text += ": " + cut(Line(reason), maxQuoted)
	}
	return text
}

// callsText returns the number of calls that wait for the answer to p, such as "3 calls". For a
// single call it returns "".
func callsText(p *schemas.Prompt) string {
	if p.Waiting < 2 {
		return ""
	}
	return schemas.Count(p.Waiting, "call")
}

func scopeText(d *schemas.Decision) string {
	switch {
	case d.OptionKind.Remembered():
		return ", and the agent remembers it" + grantText(d)
	case d.Outcome == schemas.Allowed && d.Grant != nil && forOneCall(d.Grant):
		return " once, if the agent asks again"
	case grantText(d) != "":
		return grantText(d)
	case d.OptionKind == schemas.AllowOnce:
		return " once"
	}
	return ""
}

// grantText describes the rules or permissions that d allows from now on. It returns "" if d created
// no grant, or a grant for only one call.
func grantText(d *schemas.Decision) string {
	if d.Outcome != schemas.Allowed || d.Grant == nil || forOneCall(d.Grant) {
		return ""
	}
	return ", and from now on " + cut(Line(d.Grant.Reach()), maxQuoted) + ScopeAndTerm(d.Grant)
}

func changesText(d *schemas.Decision) string {
	if len(d.UpdatedInput) > 0 {
		return ", with changes"
	}
	return ""
}

// byline returns the name of the decider in a form that is safe to show.
func byline(d *schemas.Decision) string {
	name := deciderName(d.By)
	if voters := schemas.Voters(d.Votes); len(voters) > 1 {
		name = listNames(voters)
	}
	return cut(Line(name), maxQuoted)
}

// deciderName returns the name of the person or the rule that decided.
func deciderName(by schemas.By) string {
	switch {
	case by.Kind == schemas.ByPolicy:
		return by.DescribeRule()
	case by.Name != "":
		return by.Name
	case by.Kind == schemas.ByHuman:
		return "an approver"
	}
	return "nod"
}

func quoted(message string) string {
	if message == "" {
		return ""
	}
	return `"` + cut(Line(message), maxQuoted) + `"`
}

func join(items []string) string { return strings.Join(lines(items...), " · ") }

// listNames returns names as people write them: "Ann, Bob and Cleo".
func listNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// clock formats the time at as a time of day in its own time zone. If at and other are on different
// days, it adds the date.
func clock(at, other time.Time) string {
	if other.IsZero() || sameDay(at, other) {
		return at.Format("15:04 MST")
	}
	return at.Format("2 Jan 15:04 MST")
}

// sameDay reports whether a and b are on the same day in the time zone of a.
func sameDay(a, b time.Time) bool {
	return a.Format(time.DateOnly) == b.In(a.Location()).Format(time.DateOnly)
}

var channels = map[string]struct{ name, where string }{
	"telegram": {"Telegram", "on Telegram"},
	"whatsapp": {"WhatsApp", "on WhatsApp"},
	"slack":    {"Slack", "on Slack"},
	"discord":  {"Discord", "on Discord"},
	"ntfy":     {"ntfy", "through ntfy"},
	"web":      {"web", "on the web"},
	"push":     {"push", "from a push message"},
	"email":    {"email", "by email"},
	"terminal": {"terminal", "in the terminal"},
	"voice":    {"voice", "by voice"},
}

func channelName(connector string) string {
	if c, ok := channels[connector]; ok {
		return c.name
	}
	return Line(connector)
}

// throughChannel returns the channel as the end of a sentence, such as " on the web".
func throughChannel(connector string) string {
	if c, ok := channels[connector]; ok {
		return " " + c.where
	}
	if connector == "" {
		return ""
	}
	return " through " + Line(connector)
}

// AlreadyDecided returns the reply to an answer that agrees with an earlier decision. The reply contains
// the decider and the time. now is the broker's time.
func AlreadyDecided(d *schemas.Decision, now time.Time) string {
	return "Nothing left to do: " + describeEnd(d, now)
}

// Refusal returns the reply to an answer that failed with err, or that made no decision. If err contains the stored decision,
// the reply says how the request ended. If err does not tell whether the answer was stored, the reply
// is NotConfirmed. The reply is the same for an unknown request and for a request of other people, so
// that it reveals nothing. now is the broker's time.
func Refusal(err *schemas.Error, now time.Time) string {
	if d := err.Decision(); d != nil {
		return "Nothing changed: " + describeEnd(d, now)
	}
	switch err.Code {
	case schemas.CodeVoted:
		return upperFirst(Line(err.Message)) + "."
	case schemas.CodeNotFound:
		return "Nothing changed: no such request is waiting for you."
	case schemas.CodeConflict:
		return "Nothing changed: another answer came first."
	case schemas.CodeStale:
		return "Nothing changed: this is no longer the request that you were shown. Look at it again before you answer."
	case schemas.CodeUnauthorized:
		return "Nothing changed: nod does not know who you are. An owner can let you in with nod pair."
	case schemas.CodeForbidden:
		return "Nothing changed: you are not among those who may decide this."
	case schemas.CodeBadRequest, schemas.CodeValidation, schemas.CodeUnknownAction:
		return "Nothing changed: " + Line(err.Message)
	}
	return NotConfirmed
}

func upperFirst(text string) string {
	if text == "" {
		return ""
	}
	return upper(text[:1]) + text[1:]
}

// describeEnd returns a sentence about the end of a request.
func describeEnd(d *schemas.Decision, now time.Time) string {
	at := atTime(d.DecidedAt, now)
	if d.By.Kind == schemas.ByHuman {
		verb := map[schemas.Outcome]string{
			schemas.Allowed:   "allowed",
			schemas.Denied:    "denied",
			schemas.Cancelled: "dismissed",
		}[d.Outcome]
		if verb != "" {
			how, besides := scopeText(d), ""
			if strings.HasPrefix(how, ",") {
				how, besides = "", how
			}
			return fmt.Sprintf("%s %s this%s%s%s%s.", byline(d), verb, how, throughChannel(d.By.Connector), at, besides)
		}
	}
	switch d.Outcome {
	case schemas.Allowed:
		return fmt.Sprintf("%s allowed this%s.", byline(d), at)
	case schemas.Denied:
		return fmt.Sprintf("%s denied this%s.", byline(d), at)
	case schemas.TimedOut:
		return fmt.Sprintf("this expired%s and was denied automatically.", at)
	case schemas.Withdrawn:
		return fmt.Sprintf("the agent stopped waiting%s.", at)
	}
	return fmt.Sprintf("this ended%s and was not allowed.", at)
}

// atTime returns a time such as " at 14:20". If at and now are on different days, it adds the date.
func atTime(at, now time.Time) string {
	zero := at.IsZero()
	at = at.In(now.Location())
	switch {
	case zero:
		return ""
	case sameDay(at, now):
		return at.Format(" at 15:04")
	}
	return at.Format(" on 2 Jan at 15:04")
}
