package people

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Part is one piece of a prompt's full text. Channels lay parts out in their
// order and leave none out.
type Part struct {
	// Label is nod's own word for the part or, where Field is set, the name of
	// a field of the tool's input, which the agent chose.
	Label string
	Field bool
	// Quote is set where Lines are the agent's text, whole: each line is set
	// off, so that none can pass for nod's own.
	Quote bool
	// Lines have been through Line or Lines. Where Quote is not set, each
	// starts with nod's own words or is a single value, and agent text in it
	// runs to its end.
	Lines []string
}

// Parts is everything that a person must see of p, in the order of reading:
// which request, who wants what, the risk and why, the exact payload, where it
// would happen, the agent's reason, when it expires and what happens then, and
// the answers on offer. now is the broker's time. Of a decided prompt it shows
// the outcome in place of the deadline and the answers.
func Parts(p *schemas.Prompt, now time.Time) []Part {
	details, cwd := inputOf(&p.Request)
	parts := []Part{
		{Label: "Request", Lines: lines(Line(p.PendingID), claim("task", p.Request.TaskID))},
		{Label: "Session", Lines: lines(Line(p.SessionID), background(p), claim("labelled", p.Request.SessionLabel))},
		{Label: "Agent", Lines: lines(Line(p.Agent), claim("calls itself", p.Request.AgentName))},
		{Label: "Wants", Lines: lines(wants(&p.Request), claim("tool", p.Request.ToolName), claim("titled", p.Request.Title))},
		{Label: "Risk", Lines: risk(p)},
	}
	parts = append(parts, calls(p)...)
	if tags := asked(p); len(tags) > 0 {
		parts = append(parts, Part{Label: "Permissions", Quote: true, Lines: tags})
	}
	parts = append(parts, details...)
	if cwd != "" || p.Request.Kind == schemas.KindToolCall {
		parts = append(parts, Part{Label: "Directory", Lines: lines(orElse(Line(cwd), "(not said)"), claim("project", p.Request.Project))})
	}
	parts = append(parts, Part{Label: "Host", Lines: lines(orElse(Line(p.Request.Host), "(not said)"), claim("user", p.Request.User))})
	if p.Request.Reason != "" {
		parts = append(parts, Part{Label: "Reason, in the agent's own words", Quote: true, Lines: Lines(p.Request.Reason)})
	}
	if p.Decision != nil {
		return append(parts, Part{Label: "Outcome", Lines: lines(Outcome(p.Decision, p), Undoing(p.Decision))})
	}
	return append(parts,
		Part{Label: "Expires", Lines: append(expiry(p, now), waiting(p)...)},
		Part{Label: "Answers", Lines: slices.Concat(answers(&p.Request), remember(p), takes(p))})
}

// Brief is what a channel shows of a prompt that does not fit there whole: a
// bounded text, under 2,000 characters, that tells requests apart and where to
// read all of p. The payload is not in it, so nothing may be allowed from it.
// Of a decided prompt it shows the outcome in place of the deadline.
func Brief(p *schemas.Prompt, now time.Time) []Part {
	const width = 100
	parts := []Part{
		{Label: "Request", Lines: lines(Line(p.PendingID))},
		{Label: "Session", Lines: lines(Line(p.SessionID))},
		{Label: "Agent", Lines: lines(Line(p.Agent), cut(claim("calls itself", p.Request.AgentName), width))},
		{Label: "Wants", Lines: lines(wants(&p.Request), cut(claim("tool", p.Request.ToolName), width))},
		{Label: "Risk", Lines: lines(riskWord(p.Risk))},
	}
	parts = append(append(parts, calls(p)...), Part{Label: "Begins", Lines: lines(Summary(p, width))})
	read := "read it with: nod show " + Line(p.PendingID)
	if p.Decision != nil {
		return append(parts,
			Part{Label: "In full", Lines: lines("it does not fit here", read)},
			Part{Label: "Outcome", Lines: []string{Outcome(p.Decision, p)}})
	}
	return append(parts,
		Part{Label: "Expires", Lines: append(expiry(p, now), waiting(p)...)},
		Part{Label: "In full", Lines: lines("it does not fit here, so it cannot be allowed here", read)})
}

func lines(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// claim is what the agent says of itself; it proves nothing.
func claim(what, text string) string {
	if text == "" {
		return ""
	}
	return what + ": " + Line(text)
}

func background(p *schemas.Prompt) string {
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

func risk(p *schemas.Prompt) []string {
	all := []string{riskWord(p.Risk)}
	for _, reason := range p.Reasons {
		all = append(all, "because: "+Line(reason))
	}
	return all
}

// riskWord is the risk; one that is not known is not called low.
func riskWord(r schemas.Risk) string {
	switch r {
	case schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh:
		return string(r)
	}
	return "unknown"
}

func expiry(p *schemas.Prompt, now time.Time) []string {
	then := "unanswered, it is denied automatically"
	switch p.Request.Kind {
	case schemas.KindPermission:
		then = "unanswered, nothing is granted"
	case schemas.KindQuestion:
		then = "unanswered, the agent is told that nobody answered"
	}
	if p.Deadline.IsZero() {
		return []string{"(not said)", then}
	}
	at := p.Deadline.UTC().Format("2006-01-02 15:04:05 UTC")
	if left := p.Deadline.Sub(now); left > 0 {
		return []string{at + ", in " + schemas.Roughly(left), then}
	}
	return []string{at + ", which has passed", then}
}

// waiting says where an answer may find nobody who waits for it.
func waiting(p *schemas.Prompt) []string {
	switch {
	case p.Detached:
		return []string{"nobody is waiting: used if the agent asks again"}
	case p.Request.HostAsks:
		return []string{"may have been answered at the terminal"}
	}
	return nil
}

// calls says how many identical calls wait for the one answer, if several do.
func calls(p *schemas.Prompt) []Part {
	n := p.Waiting
	if n < 2 || p.Decision != nil {
		return nil
	}
	text := fmt.Sprintf("%s · %d identical calls wait: allow once lets these %d run", Times(p), n, n)
	if p.Request.Kind != schemas.KindToolCall {
		text = fmt.Sprintf("%s · %d identical requests wait: one answer is for these %d", Times(p), n, n)
	}
	return []Part{{Label: "Calls", Lines: []string{text}}}
}

// AsShown is p as a person saw it who answers now, and who was told of so many
// calls: of those that came later neither the answer nor its outcome says anything.
func AsShown(p schemas.Prompt, waiters int) schemas.Prompt {
	p.Waiters = max(1, waiters)
	if p.Decision == nil {
		p.Waiting = min(p.Waiting, p.Waiters)
	}
	return p
}

// Times is "×3" if three identical calls wait for the one answer, and empty if one
// does.
func Times(p *schemas.Prompt) string {
	if p.Waiting < 2 {
		return ""
	}
	return fmt.Sprintf("×%d", p.Waiting)
}

// Choice is an option of a question as a person chooses it.
func Choice(o schemas.Option) string {
	switch {
	case o.Text:
		return Line(o.Name) + " (in your own words)"
	case o.Kind.Remembered():
		return Line(o.Name) + " (and the agent remembers it)"
	case !o.Kind.Allows():
		return Line(o.Name) + " (gives no answer)"
	}
	return Line(o.Name)
}

// answers says what each option does before it says how the agent calls it.
func answers(r *schemas.Request) []string {
	options := r.Offered()
	var all []string
	if r.Kind == schemas.KindQuestion {
		for i, o := range options {
			all = append(all, fmt.Sprintf("%d: %s", i+1, Choice(o)))
		}
		return all
	}
	for i, o := range options {
		what := orElse(OptionWords(r, o), "of a kind that nod does not know, allows nothing")
		if o.Kind.Remembered() { // by its number, where a button cannot name it whole
			what += fmt.Sprintf(", %d", i+1)
		}
		all = append(all, fmt.Sprintf("%s: %s", what, Line(o.Name)))
	}
	if slices.ContainsFunc(options, func(o schemas.Option) bool { return o.Kind.Remembered() }) {
		all = append(all, AgentRemembers)
	}
	return all
}

// remember says what an answer beyond once would allow, by the number that
// chooses it.
func remember(p *schemas.Prompt) []string {
	if p.Request.Kind == schemas.KindPermission {
		return nil // every allow of it is from now on
	}
	var all []string
	for i := range p.Remember {
		all = append(all, fmt.Sprintf("from now on, %d: %s", i+1, Line(p.Remember[i].String())))
	}
	return all
}

func takes(p *schemas.Prompt) []string {
	var all []string
	for _, t := range p.Takes {
		all = append(all, "to allow takes: "+Line(t))
	}
	return all
}

// asked are the permissions that would be granted: of those that were asked
// for the ones that are not held yet.
func asked(p *schemas.Prompt) []string {
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

// fieldName shows a plain name as it is and any other quoted.
func fieldName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(Line(name), `"`, `\"`) + `"`
}
