package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Explanation says how nod came to a verdict.
type Explanation struct {
	Verdict Verdict
	Parts   []ExplainedPart          // the simple commands of the call's command line, in order
	Line    string                   // the reason to ask about the whole line, or ""
	Allows  []schemas.RememberedRule // rules that would allow the call, the narrowest first; empty if nod cannot limit the effect of such rules
	Session []schemas.Reach          // the reaches that an answer can allow for one session only
	Bound   string                   // the reason why no rule allows a tool that nod does not know, or none for longer than a session; may be ""
	Harden  string                   // the line with changes by which git runs no configured programs; "" without changes
}

// ExplainedPart is one simple command of a command line.
type ExplainedPart struct {
	Command  string
	Harmless bool
	Why      string // the reason to ask about the command; "" if it is harmless
}

// Explain checks a call as Check does, and explains the verdict.
func (p *Policy) Explain(c Call) Explanation {
	e := Explanation{Verdict: p.Check(c), Allows: p.Propose(c)}
	for _, r := range p.Remember(c) {
		if r.SessionOnly() {
			e.Session = append(e.Session, r)
		}
	}
	if tools.Named(c.ToolName).Kind == tools.Unknown && e.Verdict.Effect == Ask && e.Verdict.Rule == Default && len(e.Allows) == 0 {
		if _, e.Bound = p.evaluate(c).changedFile(); e.Bound == "" {
			e.Bound = "its name does not say that the tool only reads"
		}
	}
	if tools.Named(c.ToolName).Kind != tools.Shell {
		return e
	}
	line, _ := p.callLine(&c)
	if line == nil {
		return e
	}
	e.Line = line.Why
	for _, part := range line.Parts {
		argv := make([]string, len(part.Words))
		for i, w := range part.Words {
			argv[i] = w.Text
			if w.Text == "" {
				argv[i] = "?"
			}
		}
		e.Parts = append(e.Parts, ExplainedPart{strings.Join(argv, " "), part.Why == "", part.Why})
	}
	if hard, changed := p.Harden(c); changed {
		e.Harden = hard
	}
	return e
}

// String formats the explanation for a person.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  by %s, risk %s\n", e.Verdict.Effect, e.Verdict.Rule, e.Verdict.Risk)
	if e.Verdict.Why != "" {
		fmt.Fprintf(&b, "  because: %s\n", e.Verdict.Why)
	}
	if len(e.Verdict.Reasons) > 0 {
		fmt.Fprintf(&b, "  risk:    %s\n", strings.Join(e.Verdict.Reasons, ", "))
	}
	if e.Line != "" {
		fmt.Fprintf(&b, "  the line %s\n", e.Line)
	}
	for _, p := range e.Parts {
		mark, why := "ok ", ""
		if !p.Harmless {
			mark, why = "ask", "  ("+p.Why+")"
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", mark, p.Command, why)
	}
	if c := e.Verdict.Containment; c != nil && len(c.needs) == 0 {
		fmt.Fprintf(&b, "  contained in %s: %s\n", c.Project, map[bool]string{true: "reads only", false: "writes only the project"}[c.ReadOnly])
	}
	for _, a := range e.Allows {
		fmt.Fprintf(&b, "  a rule that would allow it: %s\n", a.Quoted())
	}
	for _, r := range e.Session {
		fmt.Fprintf(&b, "  for one session only, an answer can allow: %s\n", r.String())
	}
	if e.Verdict.Effect == Ask && len(e.Allows) == 0 {
		why := "no rule that nod can bound would allow it"
		if len(e.Session) > 0 {
			why = "no rule that lasts longer would allow it"
		}
		if e.Bound != "" {
			why += ", because " + e.Bound
		}
		fmt.Fprintf(&b, "  %s\n", why)
	}
	if e.Harden != "" {
		fmt.Fprintf(&b, "  hardened: %s\n", e.Harden)
	}
	return b.String()
}

// locate returns the location of a call, which says to which directories relative paths and ~ refer.
func (p *Policy) locate(c *Call) pathname.Location {
	loc := c.location()
	loc.LeadsToSecret = p.shell.Secrets.MayLeadFrom(&loc)
	return loc
}

// Harden rewrites a harmless command line so that git runs no program from the repository's configuration and
// prints no file of LeavesOut. The new line is also harmless. Harden returns false if the line needs no
// change, or if even the new line would print a file of LeavesOut.
func (p *Policy) Harden(c Call) (string, bool) {
	if tools.Named(c.ToolName).Kind != tools.Shell {
		return "", false
	}
	line, at, why := p.callLineAt(&c)
	if line == nil || why != "" {
		return "", false
	}
	hard, changed := line.Harden()
	if changed && len(line.LeftOut()) > 0 {
		loc := *at
		loc.Changeable = false
		if again, _ := p.shell.Read(hard, loc); !again.Harmless() {
			return "", false
		}
	}
	return hard, changed
}

// HardenInput returns a tool's input with the command line as Harden changes it, for a host that accepts a
// changed input. If Harden changes nothing, HardenInput returns false.
func (p *Policy) HardenInput(c Call) (json.RawMessage, bool) {
	hard, changed := p.Harden(c)
	if !changed {
		return nil, false
	}
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return nil, false
	}
	for _, key := range []string{"command", "cmd"} {
		var s string
		if json.Unmarshal(in[key], &s) == nil && in[key] != nil {
			if in[key], err = json.Marshal(hard); err != nil {
				return nil, false
			}
			raw, err := json.Marshal(in)
			return raw, err == nil
		}
	}
	return nil, false
}
