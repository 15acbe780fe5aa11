package people

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Part is one piece of a prompt's full text. A channel shows all parts, in order.
type Part struct {
	// Label is nod's own word for the part. If Field is set, Label is instead the name of
	// a field of the tool's input, which the agent chose.
	Label string
	Field bool
	// Quote means that Lines holds a complete text of the agent. The channel marks each of
	// these lines as a quotation, so that no line can pass for nod's own words.
	Quote bool
	// Lines holds text that Line or Lines has sanitised. If Quote is not set, each line is
	// either a single value, or nod's own words, which a text of the agent may follow.
	Lines []string
}

// Parts returns everything that a person must see of p, in reading order: the request,
// the agent and its requested action, the risk with its reasons, the exact payload, the
// directory and host, the agent's reason, the deadline and its effect, and the possible
// answers. now is the broker's time. For a decided prompt, the outcome replaces the
// deadline and the answers.
func Parts(p *schemas.Prompt, now time.Time) []Part {
	details, cwd := inputOf(&p.Request)
	parts := []Part{
		{Label: "Request", Lines: lines(Line(p.PendingID), labelled("task", p.Request.TaskID))},
		{Label: "Session", Lines: lines(Line(p.SessionID), foregroundNote(p), labelled("labelled", p.Request.SessionLabel))},
		{Label: "Agent", Lines: lines(Line(p.Agent), labelled("calls itself", p.Request.AgentName))},
		{Label: "Wants", Lines: lines(wants(&p.Request), labelled("tool", p.Request.ToolName), labelled("titled", p.Request.Title))},
		{Label: "Risk", Lines: risk(p)},
	}
	parts = append(parts, callsPart(p)...)
	if tags := requestedPermissions(p); len(tags) > 0 {
		parts = append(parts, Part{Label: "Permissions", Quote: true, Lines: tags})
	}
	parts = append(parts, details...)
	if cwd != "" || p.Request.Kind == schemas.KindToolCall {
		parts = append(parts, Part{Label: "Directory", Lines: lines(orElse(Line(cwd), "(not said)"), labelled("project", p.Request.Project))})
	}
	parts = append(parts, Part{Label: "Host", Lines: lines(orElse(Line(p.Request.Host), "(not said)"), labelled("user", p.Request.User))})
	if p.Request.Reason != "" {
		parts = append(parts, Part{Label: "Reason, in the agent's own words", Quote: true, Lines: Lines(p.Request.Reason)})
	}
	if p.Decision != nil {
		return append(parts, Part{Label: "Outcome", Lines: lines(Outcome(p.Decision, p), UndoHint(p.Decision))})
	}
	return append(parts,
		Part{Label: "Expires", Lines: append(expiry(p, now), waiterNote(p)...)},
		Part{Label: "Answers", Lines: slices.Concat(answers(&p.Request), standingRules(p), allowRequirements(p))})
}

// Brief returns a short form of p, for a channel on which the full text does not fit. It
// has less than 2,000 characters, enough to tell p from other requests, and names the
// command that shows all of p. It lacks most of the payload, so a channel that shows it
// must not offer to allow. For a decided prompt, the outcome replaces the deadline.
func Brief(p *schemas.Prompt, now time.Time) []Part {
	const width = 100
	parts := []Part{
		{Label: "Request", Lines: lines(Line(p.PendingID))},
		{Label: "Session", Lines: lines(Line(p.SessionID))},
		{Label: "Agent", Lines: lines(Line(p.Agent), cut(labelled("calls itself", p.Request.AgentName), width))},
		{Label: "Wants", Lines: lines(wants(&p.Request), cut(labelled("tool", p.Request.ToolName), width))},
		{Label: "Risk", Lines: lines(riskWord(p.Risk))},
	}
	parts = append(append(parts, callsPart(p)...), Part{Label: "Begins", Lines: lines(Summary(p, width))})
	read := "read it with: nod show " + Line(p.PendingID)
	if p.Decision != nil {
		return append(parts,
			Part{Label: "In full", Lines: lines("it does not fit here", read)},
			Part{Label: "Outcome", Lines: []string{Outcome(p.Decision, p)}})
	}
	return append(parts,
		Part{Label: "Expires", Lines: append(expiry(p, now), waiterNote(p)...)},
		Part{Label: "In full", Lines: lines("it does not fit here, so it cannot be allowed here", read)})
}

func lines(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// labelled formats a text that the agent supplied and that nod cannot verify.
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

// riskWord returns the risk as a word. A risk that this version does not know is never
// shown as low.
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
		return []string{at + ", in " + schemas.FormatRoughly(left), then}
	}
	return []string{at + ", which has passed", then}
}

// waiterNote returns a warning if perhaps no call waits for the answer any more.
func waiterNote(p *schemas.Prompt) []string {
	switch {
	case p.Detached:
		return []string{"the agent has stopped waiting; an answer counts if it asks again"}
	case p.Request.HostAsks:
		return []string{"may have been answered at the terminal"}
	}
	return nil
}

// callsPart returns a part with the number of identical calls that wait for the answer to
// p, or no part if p is decided or a single call waits.
func callsPart(p *schemas.Prompt) []Part {
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

// AsShown returns p with waiters, the number of calls that its message showed. An answer
// made from the result is then for these calls alone, not for calls that joined later.
func AsShown(p schemas.Prompt, waiters int) schemas.Prompt {
	p.Waiters = max(1, waiters)
	if p.Decision == nil {
		p.Waiting = min(p.Waiting, p.Waiters)
	}
	return p
}

// Times returns "×3" if three identical calls wait for the answer. It is empty for one
// call.
func Times(p *schemas.Prompt) string {
	if p.Waiting < 2 {
		return ""
	}
	return fmt.Sprintf("×%d", p.Waiting)
}

// Choice returns the label of an option of a question.
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

// answers returns a line for each option: its effect, then the agent's name for it.
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
		if o.Kind.Remembered() { // a button that is too narrow for the option's name shows the option's number instead
			what += fmt.Sprintf(", %d", i+1)
		}
		all = append(all, fmt.Sprintf("%s: %s", what, Line(o.Name)))
	}
	if slices.ContainsFunc(options, func(o schemas.Option) bool { return o.Kind.Remembered() }) {
		all = append(all, AgentRemembers)
	}
	return all
}

// standingRules returns a line for each rule that a lasting allow can store. Each line has
// the number by which a person chooses the rule.
func standingRules(p *schemas.Prompt) []string {
	if p.Request.Kind == schemas.KindPermission {
		return nil // there is no rule to list, because every allow of a permission lasts
	}
	var all []string
	for i := range p.Remember {
		all = append(all, fmt.Sprintf("from now on, %d: %s", i+1, Line(p.Remember[i].String())))
	}
	return all
}

func allowRequirements(p *schemas.Prompt) []string {
	var all []string
	for _, t := range p.Conditions {
		all = append(all, "needed to allow: "+Line(t))
	}
	return all
}

// requestedPermissions returns the permissions that an allow would grant: the requested
// ones that the session does not have yet.
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

// fieldName returns a field's name, in quotation marks if it is empty, longer than 40
// characters or contains a character other than ASCII letters, digits, _, . and -.
func fieldName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(Line(name), `"`, `\"`) + `"`
}
