package people

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// A Part is one section of a prompt's full text. A channel shows all parts, in order.
type Part struct {
	// Label is the heading of the part. Usually it is a word of nod. If Field is set, it is the name
	// of a field in the tool's input, which the agent chose. A quotation may have no label.
	Label string
	Field bool
	// Quote means that Lines contains a complete text of the agent, or a diff with all that the agent
	// changes and lines of the file around it. The channel marks each line as a quotation, so that people
	// cannot mistake the line for a text of nod.
	Quote bool
	// Caption means that Label is the headline, with the risk and its reasons, or the line below the
	// payload, with the agent, the project and the session. The line below the payload begins with
	// captionMark, so that people cannot mistake an agent's name for a text of nod.
	Caption bool
	// Lines contains text that is safe to show. If Quote is false, each line is either a single value
	// or a text of nod, which may end with a text of the agent.
	Lines []string
	// Spans contains the styles of each line, with offsets in bytes. Spans is nil if no line has a style.
	Spans [][]payload.Span
	Group Group
	// Look means that the part says how long the payload is, and repeats the lines of the payload at which a
	// person must look first.
	Look bool
}

// Group says whether a person must see a part. A person must see all parts of the group Essential before
// an allow.
type Group int

// The groups, in reading order.
const (
	Essential Group = iota // headline, payload or agent's question with answers, caption, number of calls
	About                  // the agent's reason, the place, the deadline, the answers
	Rest                   // ids and names, which a channel may hide until the person asks for them
)

const captionMark = "— "

// Parts returns a prompt in reading order: the headline, with the risk and its reasons; the action that
// the agent requests, in the form that fits its input; the caption, with the agent and the project; the
// agent's reason, the place, the deadline and the answers; and finally the ids and names. now is the broker's time, and times of day are in
// its time zone. For a decided prompt, the outcome replaces the deadline and the answers.
func Parts(p *schemas.Prompt, now time.Time) []Part {
	parts, rest := unfolded(p, now)
	return slices.Concat(parts, inGroup(Rest, append(rest, restParts(p)...)))
}

// PrintedParts returns Parts for a terminal that cannot fold anything: the ids and names are one line.
func PrintedParts(p *schemas.Prompt, now time.Time) []Part {
	parts, rest := unfolded(p, now)
	return slices.Concat(parts, inGroup(Rest, append(rest, fromLine(p))))
}

// fromLine returns the ids and names in one line, without the names that the caption has.
func fromLine(p *schemas.Prompt) Part {
	r := &p.Request
	user := captionItem(r.User)
	if r.User != "" && r.Host != "" {
		user += "@"
	}
	item := func(what, text string) string {
		if text == "" {
			return ""
		}
		return what + " " + captionItem(text)
	}
	return Part{Label: "From", Lines: []string{strings.Join(lines(
		item("agent", p.Agent), item("tool", r.ToolName), item("titled", titleBeside(r)), user+captionItem(r.Host), item("task", r.TaskID),
		foregroundNote(p), "session "+Line(p.SessionID), "request "+Line(p.PendingID)), " · ")}}
}

// Unfolded returns the Parts of the groups Essential and About.
func Unfolded(p *schemas.Prompt, now time.Time) []Part {
	parts, _ := unfolded(p, now)
	return parts
}

// unfolded returns the parts that a channel must not fold. For an agent's question that is no plan, the
// result rest contains the parts with the fields of the input; their Group is not set.
func unfolded(p *schemas.Prompt, now time.Time) (parts, rest []Part) {
	essential, cwd := actionParts(&p.Request, p.OnDisk, p.Reasons)
	_, plan := p.Request.Plan()
	if p.Request.Kind == schemas.KindQuestion {
		first := slices.IndexFunc(essential, func(part Part) bool { return part.Field })
		if first >= 0 && !plan { // no answer to an agent's question allows anything, except the approval of a plan, which covers all fields
			essential, rest = essential[:first:first], essential[first:]
		}
		if p.Decision == nil {
			essential = append(essential, Part{Label: "Answers", Lines: answers(&p.Request)})
		}
	}
	if tags := requestedPermissions(p); len(tags) > 0 {
		essential = slices.Insert(essential, 0, Part{Label: "Permissions", Quote: true, Lines: tags})
	}
	essential = slices.Concat(essential, unseenPart(p), []Part{caption(p, cwd)}, callsPart(p), votesPart(p))
	if p.Request.Kind != schemas.KindQuestion || plan {
		essential = slices.Insert(essential, 0, headline(p)) // no headline, because the answer to an agent's question allows nothing
	} else {
		at := slices.IndexFunc(essential, func(part Part) bool { return part.Caption })
		essential = slices.Insert(essential, at, headline(p))
	}
	return append(essential, inGroup(About, aboutParts(p, cwd, now))...), rest
}

func inGroup(g Group, parts []Part) []Part {
	for i := range parts {
		parts[i].Group = g
	}
	return parts
}

func aboutParts(p *schemas.Prompt, cwd string, now time.Time) (parts []Part) {
	if p.Decision != nil {
		parts = append(parts, Part{Label: "Outcome", Lines: lines(Outcome(p.Decision, p), UndoHint(p.Decision))})
	}
	if p.Request.Reason != "" {
		reason, spans := quotation(p.Request.Reason, nil)
		parts = append(parts, Part{Label: "Reason, in the agent's own words", Quote: true, Lines: reason, Spans: spans})
	}
	if where := whereLines(p, cwd); len(where) > 0 {
		parts = append(parts, Part{Label: "Where", Lines: where})
	}
	if p.Decision != nil {
		return parts
	}
	parts = append(parts, Part{Label: "Expires", Lines: append(expiry(p, now), waiterNote(p)...)})
	if p.Request.Kind == schemas.KindQuestion {
		return parts
	}
	if all := slices.Concat(answers(&p.Request), standingRules(p), allowRequirements(p)); len(all) > 0 {
		parts = append(parts, Part{Label: "Answers", Lines: all})
	}
	return parts
}

// restParts returns the ids and names. The request and its session come last, so the last lines with
// these two labels in a message come from nod, not from the agent.
func restParts(p *schemas.Prompt) []Part {
	r := &p.Request
	return []Part{
		{Label: "Agent", Lines: lines(Line(p.Agent), labelled("calls itself", r.AgentName))},
		{Label: "Wants", Lines: lines(wants(r), labelled("tool", r.ToolName), labelled("titled", r.Title))},
		{Label: "Host", Lines: lines(orElse(Line(r.Host), "(not said)"), labelled("user", r.User))},
		{Label: "Session", Lines: lines(Line(p.SessionID), foregroundNote(p), labelled("labelled", r.SessionLabel))},
		{Label: "Request", Lines: lines(Line(p.PendingID), labelled("task", r.TaskID))},
	}
}

// Brief returns a short form of p, for a channel that cannot show the full text. The short form has less
// than 2,000 characters, distinguishes p from other requests, and contains the command that shows all of
// p. It lacks most of the payload, so the channel must not offer to allow the request. For a decided
// prompt, the outcome replaces the deadline.
func Brief(p *schemas.Prompt, now time.Time) []Part {
	const width = 100
	action, cwd := actionParts(&p.Request, p.OnDisk, p.Reasons)
	look := slices.DeleteFunc(action, func(part Part) bool { return !part.Look })
	parts := slices.Concat([]Part{headline(p)}, look, []Part{{Label: "Begins", Lines: lines(Summary(p, width))}}, unseenPart(p), []Part{caption(p, cwd)}, callsPart(p), votesPart(p))
	read := "read it with: nod show " + Line(p.PendingID)
	if p.Decision != nil {
		parts = append(parts,
			Part{Label: "Outcome", Lines: []string{Outcome(p.Decision, p)}},
			Part{Label: "In full", Lines: lines("it does not fit here", read)})
	} else {
		parts = append(parts,
			Part{Label: "In full", Lines: lines("it does not fit here, so it cannot be allowed here", read)},
			Part{Label: "Expires", Lines: append(expiry(p, now), waiterNote(p)...)})
	}
	return append(parts, inGroup(Rest, []Part{
		{Label: "Agent", Lines: lines(Line(p.Agent))},
		{Label: "Wants", Lines: lines(wants(&p.Request), cut(labelled("tool", p.Request.ToolName), width))},
		{Label: "Session", Lines: lines(Line(p.SessionID))},
		{Label: "Request", Lines: lines(Line(p.PendingID))},
	})...)
}

func lines(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// labelled formats a text from the agent that nod cannot verify.
func labelled(what, text string) string {
	if text == "" {
		return ""
	}
	return what + ": " + Line(text)
}

func foregroundNote(p *schemas.Prompt) string {
	if p.Foreground == "" {
		return ""
	}
	return "in the background of: " + Line(p.Foreground)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func wants(r *schemas.Request) string {
	switch r.Kind {
	case schemas.KindPermission:
		return "to hold permissions in this session"
	case schemas.KindQuestion:
		if _, plan := r.Plan(); plan {
			return "to carry out its plan"
		}
		return "an answer; it grants nothing"
	}
	switch r.ActionType {
	case schemas.ActionCommand:
		return "to run a command"
	case schemas.ActionFileWrite:
		return "to write a file"
	case schemas.ActionFileRead:
		return "to read a file"
	case schemas.ActionNetwork:
		return "to reach the network"
	case schemas.ActionMCPTool:
		return "to call an MCP tool"
	}
	return "to use a tool"
}

// riskWord returns a word for the risk. For a risk that this version does not know, the word is not
// "low".
func riskWord(r schemas.Risk) string {
	switch r {
	case schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh:
		return string(r)
	}
	return "unknown"
}

// requestedPermissions returns the permissions that an allow would grant: the requested permissions that
// the session does not have.
func requestedPermissions(p *schemas.Prompt) []string {
	all := p.Request.Permissions
	if p.Request.Kind == schemas.KindPermission && len(p.Remember) > 0 {
		all = p.Remember[0].Permissions
	}
	var shown []string
	for _, tag := range all {
		shown = append(shown, Line(tag))
	}
	return shown
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// fieldName returns a field's name. It adds quotation marks if the name is empty, longer than 40
// characters, or contains other characters than ASCII letters, digits, _, . and -.
func fieldName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(Line(name), `"`, `\"`) + `"`
}

// titleBeside returns a request's title if the title says more than the tool's name.
func titleBeside(r *schemas.Request) string {
	if r.Title == r.ToolName {
		return ""
	}
	return r.Title
}
