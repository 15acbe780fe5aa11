package people

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// What a person reads while it is not known yet how an answer ended, and where
// it cannot be known from here. Neither claims that nothing happened.
const (
	Recording    = "Your answer is being recorded. It counts once this message says so."
	NotConfirmed = "Not confirmed: nod could not be reached. Look at the request again before you answer anew."
)

// maxQuoted is how many columns of a message an outcome line quotes.
const maxQuoted = 120

// Outcome is the one line that replaces the buttons of p, which ended with d. Only
// a decision that allowed reads as allowed, and one that was not kept to says so
// first. It names how many calls an answer was about if they are several, and how
// long it took if p says when it was asked.
//
//	✅ Allowed once · 3 calls · Ann · 14:21 UTC · Telegram · after 48 s
//	⛔ Denied · Bob · 14:21 UTC · web · "use make clean"
//	❗ Denied by Bob, but it ran: answered at the terminal · 14:21 UTC · web
//	⌛ Expired: denied automatically
//	🚫 Withdrawn: the agent stopped waiting
func Outcome(d *schemas.Decision, p *schemas.Prompt) string {
	asked := p.Request.CreatedAt
	head, by := ending(d), byline(d)
	if otherwise := aftermath(d, p); otherwise != "" {
		head, by = otherwise, ""
	}
	switch d.Outcome {
	case schemas.Allowed, schemas.Denied, schemas.Cancelled:
	case schemas.TimedOut, schemas.Withdrawn: // who and when are not worth a word
		return join([]string{head, several(p)})
	default:
		return head
	}
	at := d.DecidedAt.UTC()
	items := []string{head, several(p), by, clock(at, asked), channelName(d.By.Connector)}
	if took := at.Sub(asked); d.Outcome == schemas.Allowed && d.By.Kind == schemas.ByHuman && !asked.IsZero() && took >= 0 {
		items = append(items, "after "+short(took))
	}
	return join(append(items, quoted(d.Message)))
}

// Recorded is what a person reads whose answer to p counts: the outcome and, in a
// line of its own, what else it does and how that is undone.
func Recorded(d *schemas.Decision, p *schemas.Prompt) string {
	return strings.Join(lines(Outcome(d, p), Undoing(d)), "\n")
}

// ending is how d ended its request.
func ending(d *schemas.Decision) string {
	switch d.Outcome {
	case schemas.Allowed:
		return "✅ Allowed" + howLong(d) + changed(d)
	case schemas.Denied:
		return "⛔ Denied" + howLong(d)
	case schemas.Cancelled:
		return "🚫 Dismissed"
	case schemas.TimedOut:
		return "⌛ Expired: denied automatically"
	case schemas.Withdrawn:
		return "🚫 Withdrawn: the agent stopped waiting"
	}
	return "⛔ Not allowed: ended in a way that this version of nod does not know"
}

// aftermath says that calls ended otherwise than d has it: some ran that d did not
// allow, or none ran that d allowed. It is empty if nothing of the kind is known.
func aftermath(d *schemas.Decision, p *schemas.Prompt) string {
	kind, mark := schemas.AftermathRan, "❗ "
	if d.Outcome == schemas.Allowed {
		kind, mark = schemas.AftermathNeverRan, "🚫 "
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
	_, ended, _ := strings.Cut(ending(d), " ")
	if who := byline(d); d.By.Kind == schemas.ByHuman || d.By.Kind == schemas.ByPolicy {
		ended += " by " + who
	}
	them := "it"
	if p.Waiting > 1 {
		them = fmt.Sprintf("%d of %d", n, p.Waiting)
	}
	verb := " ran"
	if kind == schemas.AftermathNeverRan {
		verb = " never ran"
	}
	text := mark + ended + ", but " + them + verb
	if reason != "" {
		text += ": " + cut(Line(reason), maxQuoted)
	}
	return text
}

// several says how many calls an answer is about if they are more than one.
func several(p *schemas.Prompt) string {
	if p.Waiting < 2 {
		return ""
	}
	return count(p.Waiting, "call")
}

func howLong(d *schemas.Decision) string {
	switch {
	case d.OptionKind.Remembered():
		return ", and the agent remembers it" + lasting(d)
	case d.Outcome == schemas.Allowed && d.Grant != nil && forOneCall(d.Grant):
		return " once, if the agent asks again"
	case lasting(d) != "":
		return lasting(d)
	case d.OptionKind == schemas.AllowOnce:
		return " once"
	}
	return ""
}

// lasting is what nod allows from now on because of d.
func lasting(d *schemas.Decision) string {
	if d.Outcome != schemas.Allowed || d.Grant == nil || forOneCall(d.Grant) {
		return ""
	}
	return ", and from now on " + cut(Line(d.Grant.Reach()), maxQuoted) + Lasting(d.Grant)
}

func changed(d *schemas.Decision) string {
	if len(d.UpdatedInput) > 0 {
		return ", with changes"
	}
	return ""
}

// byline is who, fit to be shown.
func byline(d *schemas.Decision) string { return cut(Line(who(d.By)), maxQuoted) }

// who decided: a person's name, or the rule.
func who(by schemas.By) string {
	switch {
	case by.Kind == schemas.ByPolicy && (by.Name == "" || by.Name == "default"):
		return "the built-in rules"
	case by.Kind == schemas.ByPolicy:
		return "the rule " + by.Name
	case by.Name != "":
		return by.Name
	case by.Kind == schemas.ByHuman:
		return "somebody"
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

// clock is a time of day, with the day where that is not the one of asking.
func clock(at, asked time.Time) string {
	if asked.IsZero() || sameDay(at, asked) {
		return at.Format("15:04 UTC")
	}
	return at.Format("2 Jan 15:04 UTC")
}

func sameDay(a, b time.Time) bool {
	return a.UTC().Truncate(24 * time.Hour).Equal(b.UTC().Truncate(24 * time.Hour))
}

var channels = map[string]struct{ name, where string }{
	"telegram": {"Telegram", "on Telegram"},
	"whatsapp": {"WhatsApp", "on WhatsApp"},
	"slack":    {"Slack", "on Slack"},
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

// where is how a sentence says it: "on the web".
func where(connector string) string {
	if c, ok := channels[connector]; ok {
		return " " + c.where
	}
	if connector == "" {
		return ""
	}
	return " through " + Line(connector)
}

// Already is what a person reads whose answer said what was decided before:
// who really decided, and when. now is the broker's time.
func Already(d *schemas.Decision, now time.Time) string {
	return "Nothing left to do: " + happened(d, now)
}

// Refusal is what a person reads whose answer did not count: what really
// happened, from the decision that stands where err carries one. An unknown
// request and somebody else's read the same. now is the broker's time.
func Refusal(err *schemas.Error, now time.Time) string {
	if d := err.Decision(); d != nil {
		return "Nothing changed: " + happened(d, now)
	}
	switch err.Code {
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

// happened says in a sentence how a request ended.
func happened(d *schemas.Decision, now time.Time) string {
	at := when(d.DecidedAt, now)
	if d.By.Kind == schemas.ByHuman {
		verb := map[schemas.Outcome]string{
			schemas.Allowed:   "allowed",
			schemas.Denied:    "denied",
			schemas.Cancelled: "dismissed",
		}[d.Outcome]
		if verb != "" {
			how, besides := howLong(d), ""
			if strings.HasPrefix(how, ",") {
				how, besides = "", how
			}
			return fmt.Sprintf("%s %s this%s%s%s%s.", byline(d), verb, how, where(d.By.Connector), at, besides)
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

// when is " at 14:20", with the day where that is not today.
func when(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case sameDay(at, now):
		return at.UTC().Format(" at 15:04")
	}
	return at.UTC().Format(" on 2 Jan at 15:04")
}
