package people

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Wakeup is a notification that tells a person that a request waits or has ended. It takes no answer, and
// may pass through other people's servers. Therefore it contains nothing of the request's payload; see
// the function Payload.
type Wakeup struct {
	ID, Session string
	Project     string // the name of the project's directory; may be empty
	Risk        schemas.Risk
	Title       string // the title, in one line
	Text        string // one or two lines that add details to the title
	Link        string // the address of the session's page in the web inbox
	Outcome     schemas.Outcome
	Deadline    time.Time
}

// NewWakeup returns the notification about p, with a link to the web inbox. The parameter web is the
// address of the inbox.
func NewWakeup(p *schemas.Prompt, web string) Wakeup {
	w := Wakeup{
		ID: p.PendingID, Session: p.SessionID, Risk: p.Risk, Link: SessionLink(web, p.SessionID),
		Title: "nod: a request waits", Deadline: p.Deadline,
	}
	if p.Request.Project != "" {
		w.Project = captionItem(path.Base(p.Request.Project))
	}
	if p.Decision != nil {
		w.Outcome, w.Title = p.Decision.Outcome, "nod: "+ending(p.Decision.Outcome)
	}
	needed := ""
	if p.VotesNeeded > 1 && p.Decision == nil {
		needed = fmt.Sprintf("%d people must allow it", p.VotesNeeded)
	}
	w.Text = join([]string{w.Project, riskWord(p.Risk) + " risk", needed, "request " + p.PendingID})
	if p.Repeat {
		w.Text += "\nThis message may be here twice: it was sent again."
	}
	return w
}

// ending describes an outcome in one line. It omits the words of the person who decided, and the rule of
// a lasting answer, because these words and this rule can quote the payload.
func ending(o schemas.Outcome) string {
	switch o {
	case schemas.Allowed:
		return "the request was allowed"
	case schemas.Denied:
		return "the request was denied"
	case schemas.Cancelled:
		return "the request was dismissed"
	case schemas.TimedOut:
		return "the request expired: denied automatically"
	case schemas.Withdrawn:
		return "the agent stopped waiting"
	}
	return "the request ended without an allow"
}

// Payload returns the whole text of p, for a channel whose settings permit the payload. If the
// text is longer than limit bytes, it returns a line that says so instead, and no part of the
// payload.
func Payload(p *schemas.Prompt, now time.Time, limit int) string {
	text := Text(p, now, 0)
	if len(text) > limit {
		return "The request is too long to be shown here: read it in the web inbox, or with nod show " + p.PendingID
	}
	return strings.TrimSpace(text)
}
