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

// Outcome is the one line that replaces a prompt's buttons. Only a decision
// that allowed reads as allowed. asked is when the request was made; where that
// is zero or later than the decision, the line leaves out how long it took.
//
//	✅ Allowed once · Ann · 14:21 UTC · Telegram · after 48 s
//	⛔ Denied · Bob · web · "use make clean"
//	⌛ Expired: denied automatically
//	🚫 Withdrawn: the agent stopped waiting
func Outcome(d *schemas.Decision, asked time.Time) string {
	switch d.Outcome {
	case schemas.Allowed:
		at := d.DecidedAt.UTC()
		items := []string{"✅ Allowed" + howLong(d) + changed(d), byline(d), clock(at, asked), channelName(d.By.Connector)}
		if took := at.Sub(asked); !asked.IsZero() && took >= 0 && d.By.Kind == schemas.ByHuman {
			items = append(items, "after "+short(took))
		}
		return join(append(items, quoted(d.Message)))
	case schemas.Denied:
		return join([]string{"⛔ Denied" + howLong(d), byline(d), channelName(d.By.Connector), quoted(d.Message)})
	case schemas.Cancelled:
		return join([]string{"🚫 Dismissed", byline(d), channelName(d.By.Connector), quoted(d.Message)})
	case schemas.TimedOut:
		return "⌛ Expired: denied automatically"
	case schemas.Withdrawn:
		return "🚫 Withdrawn: the agent stopped waiting"
	}
	return "⛔ Not allowed: ended in a way that this version of nod does not know"
}

func howLong(d *schemas.Decision) string {
	switch {
	case d.Grant != nil && d.Grant.Call != nil:
		return " once, if the agent asks again"
	case d.Grant != nil:
		return ", and from now on " + cut(Line(d.Grant.Reach()), maxQuoted) + Lasting(d.Grant)
	case d.OptionKind == schemas.AllowOnce:
		return " once"
	case d.OptionKind == schemas.AllowAlways, d.OptionKind == schemas.RejectAlways:
		return " always"
	}
	return ""
}

// Lasting says where a grant holds and for how long.
func Lasting(g *schemas.StandingAnswer) string {
	where := ", for this agent"
	if g.Scope != schemas.ScopeAgent {
		where = ", in this session"
	}
	if g.ExpiresAt.IsZero() {
		return where
	}
	return where + ", for " + schemas.Words(g.ExpiresAt.Sub(g.CreatedAt))
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
			return fmt.Sprintf("%s %s this%s%s%s.", byline(d), verb, howLong(d), where(d.By.Connector), at)
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
