package people

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// FromLog makes a prompt, for lists, from what the log has of a request. If the log does not have the
// request itself, known is false, and the prompt's Request has only ids, the tool and the time. Decision
// is nil if the log has no decision. The decision has no id, message or grant.
func FromLog(l *schemas.LoggedRequest) (p schemas.Prompt, known bool) {
	p = schemas.Prompt{Type: schemas.TypePrompt, SessionID: l.SessionID, PendingID: l.PendingID, Agent: l.Agent, Digest: l.Digest, Aftermath: l.Aftermath}
	r, err := schemas.ReadRequest(l.Request)
	if known = len(l.Request) > 0 && err == nil && r.Title != ""; !known {
		r = schemas.Request{}
	}
	r.SessionID, r.PendingID, r.ToolName, r.CreatedAt = l.SessionID, l.PendingID, orElse(r.ToolName, l.ToolName), l.AskedAt
	p.Request = r
	if d := l.Decided; d != nil {
		p.Decision = &schemas.Decision{
			Type: schemas.TypeDecision, SessionID: l.SessionID, PendingID: l.PendingID, Outcome: d.Outcome, By: d.By, Digest: l.Digest, DecidedAt: d.At,
		}
	}
	if l.Run != nil {
		p.Run = &schemas.ContainedRun{RunID: l.PendingID, Report: l.Run} // the log does not have the id of the run
	}
	return p, known
}

// LoggedSummary is Summary for a request of the log. Without the request itself, it names the tool.
func LoggedSummary(l *schemas.LoggedRequest, width int) string {
	if p, known := FromLog(l); known {
		return Summary(&p, width)
	}
	return cut(unknownText(l), width)
}

// unknownText describes a request that the log does not have, or whose entry was not found.
func unknownText(l *schemas.LoggedRequest) string {
	what, content := "a question or a permission", "text"
	if l.ToolName != "" {
		what, content = Line(l.ToolName), "input"
	}
	if l.QuestionNotFound {
		return fmt.Sprintf("%s (nod did not find its %s in the log)", what, content)
	}
	return fmt.Sprintf("%s (its %s was not logged)", what, content)
}

// LoggedOutcome is Outcome for a request of the log, which may have no decision. Times are in the
// time zone of l.AskedAt.
func LoggedOutcome(l *schemas.LoggedRequest) string {
	if p, _ := FromLog(l); p.Decision != nil {
		return Outcome(p.Decision, &p)
	}
	if !l.ReadTo.IsZero() {
		return "No decision in the log up to " + l.ReadTo.In(l.AskedAt.Location()).Format("2 Jan 2006 15:04 MST")
	}
	return "No decision in the log"
}

// LoggedParts is Parts for a request of the log. It begins with the outcome, and says what the log does
// not have. If the log does not have the request itself, the first part names the tool.
func LoggedParts(l *schemas.LoggedRequest) []Part {
	p, known := FromLog(l)
	parts := []Part{
		{Label: "Outcome", Lines: []string{LoggedOutcome(l)}},
		{Label: "From the log", Lines: lines(askedText(l), loggedNote(l, known), "nothing can be decided or undone here")},
	}
	if !known {
		parts = slices.Insert(parts, 0, Part{Label: "Wants", Lines: []string{unknownText(l)}})
		return append(parts, inGroup(Rest, slices.DeleteFunc(restParts(&p), func(part Part) bool { return part.Label == "Host" || part.Label == "Wants" }))...)
	}
	action, cwd := actionParts(&p.Request, nil, nil)
	if tags := requestedPermissions(&p); len(tags) > 0 {
		action = slices.Insert(action, 0, Part{Label: "Permissions", Quote: true, Lines: tags})
	}
	action = append(action, caption(&p, cwd))
	about := slices.DeleteFunc(aboutParts(&p, cwd, p.Request.CreatedAt), func(part Part) bool {
		return !part.Quote && slices.Contains([]string{"Outcome", "Expires", "Answers"}, part.Label)
	})
	return slices.Concat(parts, action, inGroup(About, about), inGroup(Rest, restParts(&p)))
}

func askedText(l *schemas.LoggedRequest) string {
	if l.AskedAt.IsZero() {
		return ""
	}
	return "asked on " + l.AskedAt.Format("2 Jan 2006 15:04 MST")
}

func loggedNote(l *schemas.LoggedRequest, known bool) string {
	switch {
	case !known && l.QuestionNotFound:
		return "nod read a bounded part of it for the input, which nod log search may find; it has no message of an answer"
	case !known:
		return "it has neither the input nor the message of an answer; the setting log.payloads keeps later inputs"
	case l.Redacted > 0:
		return "it has no message of an answer, and [redacted] stands for secrets"
	}
	return "it has no message of an answer"
}

// Search is a filter of past requests.
type Search struct {
	Outcome schemas.Outcome // if empty, the search finds requests with any outcome
	Words   []string        // in lower case; a request matches if its text, together with the decision's, contains all of them
}

// NewSearch returns the search for the words of a text.
func NewSearch(text string, outcome schemas.Outcome) Search {
	return Search{outcome, strings.Fields(strings.ToLower(text))}
}

// Finds reports whether a decided request matches.
func (s Search) Finds(p *schemas.Prompt) bool {
	return (s.Outcome == "" || p.Decision.Outcome == s.Outcome) &&
		(len(s.Words) == 0 || s.inText(p, Summary(p, searchWidth), Outcome(p.Decision, p)))
}

// FindsLogged reports whether a request of the log matches. It searches only what the log has of the
// request.
func (s Search) FindsLogged(l *schemas.LoggedRequest) bool {
	if s.Outcome != "" && (l.Decided == nil || l.Decided.Outcome != s.Outcome) {
		return false
	}
	if len(s.Words) == 0 {
		return true
	}
	p, known := FromLog(l)
	summary := ""
	if known {
		summary = Summary(&p, searchWidth)
	}
	return s.inText(&p, summary, LoggedOutcome(l))
}

// searchWidth is the width, in columns, of the summary in which a search looks for words. The
// search also looks in the whole input.
const searchWidth = 1000

func (s Search) inText(p *schemas.Prompt, summary, outcome string) bool {
	r := &p.Request
	text := strings.ToLower(strings.Join([]string{
		summary, outcome, p.Agent, r.AgentName, p.SessionID, r.SessionLabel,
		r.Project, r.Host, r.ToolName, r.Title, p.PendingID, string(r.ActionDetails),
	}, "\n"))
	return !slices.ContainsFunc(s.Words, func(w string) bool { return !strings.Contains(text, w) })
}
