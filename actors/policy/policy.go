// Package policy decides tool calls by rules. Check takes a call and returns a verdict: to
// allow the call, to deny it or to ask a person. (In the comments of this package, a call or a
// flag "makes nod ask" if the verdict on it is Ask.) The same call always gets the same
// verdict: the package keeps no state, and only ThisDisk and OnDisk read the file system. It
// also computes what the permissions of a session cover.
//
// Deny rules are tried first, then ask rules, then allow rules, over all layers that match
// the call; the preset decides only a call that no rule covers. A call in a form that the
// package does not know makes nod ask. Paths are compared as they are written: symbolic links
// are not followed. (Permissions are about true paths: see OnDisk.)
package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Effect is the outcome of a verdict.
type Effect string

// The effects. The zero Effect is invalid and must be treated as Ask.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
	// Contain runs the call without a question, but only in the Verdict's Containment. If that
	// is not possible, Contain must be treated as Ask.
	Contain Effect = "contain"
)

// Call is a tool call to check. An empty field means that the value is unknown; if the verdict
// depends on an unknown value, it is Ask.
type Call struct {
	ToolName   string
	ActionType schemas.ActionType
	Input      json.RawMessage // the tool's input, a JSON object
	Cwd        string

	Agent   string // the agent's name, with which layers are matched; it comes from the NATS subject of the request, never from the payload
	Host    string
	Project string // the project's root; if empty, Cwd is used
	Home    string // the directory that ~ stands for
	// Tops are the directories of the project in which git uses the project's own repository:
	// the top of the project and of its work trees. If nil, they are judged by their names.
	Tops []string
	// Exposed are files with secrets in the project that a search of their directory would show,
	// as Exposure finds them. nil means that none is known.
	Exposed []string
}

// CallOf returns the call that an agent's request is about.
func CallOf(agent string, r *schemas.Request) Call {
	var where struct {
		Cwd string `json:"cwd"`
	}
	_ = json.Unmarshal(r.ActionDetails, &where) // the schema guarantees that this is an object; if it has no cwd, the directory is unknown
	return Call{
		ToolName: r.ToolName, ActionType: r.ActionType, Input: r.ActionDetails, Cwd: where.Cwd,
		Agent: agent, Host: r.Host, Project: r.Project,
	}
}

// location returns the directories that give the call's paths a meaning.
func (c *Call) location() pathname.Location {
	loc := pathname.Locate(c.Cwd, c.Project, c.Home)
	loc.SetTops(c.Tops)
	for _, file := range c.Exposed {
		loc.Exposed = append(loc.Exposed, pathname.Clean(file))
	}
	return loc
}

// Default is the Rule of a verdict that comes neither from a rule of the user nor from a
// built-in rule.
const Default = "default"

// Built-in rules, which outrank every allow rule of the user.
const (
	secretsRule = "default secrets" // access to secrets makes nod ask
	ownRule     = "default nod"     // denies agents to write nod's own files, and to run those nod commands that decide, grant or configure
)

// Verdict is the result of checking a call.
type Verdict struct {
	Effect  Effect
	Rule    string // the rule that decided, with its list, such as "deny Bash(rm:*)"; Default if the preset decided
	Risk    schemas.Risk
	Reasons []string // the reasons for the risk
	Why     string   // the reason why the call is not allowed, for a person; "" if the call is allowed
	// Containment is set if the effect is Contain. If the effect is Ask, the call could run in it
	// if permissions were granted; if it is Allow, the call may run in it as well.
	Containment *Containment
	// Remembered identifies the remembered answers that allowed the call.
	Remembered []RememberedRef
}

// RememberedRef identifies a remembered answer. List is the index of the answer's list, in the
// order in which With and WithLists added the lists. Index is the answer's index in this list.
type RememberedRef struct{ List, Index int }

// Policy is a compiled set of rules. It is immutable and safe for concurrent use.
type Policy struct {
	shell     shell.Reader // the reader of command lines; its fields also hold the preset and the names of secrets
	layers    []rules.Layer
	contained *contained.Judge // nil if no call runs contained
	answers   []*Answers       // lists of remembered answers, in the order in which they were added
}

// New compiles permissions and further layers of rules. If it cannot parse a rule, it returns
// an error that contains the rule. It does not skip such a rule, because calls that the rule
// forbids would then be allowed.
func New(p schemas.Permissions, layers ...schemas.PolicyLayer) (*Policy, error) {
	pol := &Policy{shell: shell.Reader{Secrets: secrets.Compile()}}
	var err error
	if pol.shell.Level, err = levelOf(p.Preset); err != nil {
		return nil, fmt.Errorf("permissions.preset: %w", err)
	}
	base, err := rules.Compile("permissions", schemas.PolicyLayer{Permissions: schemas.Rules{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny}})
	if err != nil {
		return nil, err
	}
	pol.layers = append(pol.layers, base)
	if p.Preset == PresetContained {
		pol.contained = contained.New(pol.shell.Secrets)
	}
	for i, l := range layers {
		one, err := rules.Compile(fmt.Sprintf("policies[%d].permissions", i), l)
		if err != nil {
			return nil, err
		}
		pol.layers = append(pol.layers, one)
	}
	return pol, nil
}

// Tighten returns a copy of p to which the rules of the project at dir are added. Use it only
// to check calls of that project. A project's settings may only forbid more, so Tighten leaves
// out their allow rules and their preset, and returns these as ignored.
func (p *Policy) Tighten(project schemas.Permissions, dir string) (tight *Policy, ignored []string, err error) {
	for _, r := range project.Allow {
		ignored = append(ignored, "allow "+r)
	}
	if project.Preset != "" {
		ignored = append(ignored, "preset "+project.Preset)
	}
	l, err := rules.Compile("permissions", schemas.PolicyLayer{Permissions: schemas.Rules{Ask: project.Ask, Deny: project.Deny}})
	if err != nil {
		return nil, nil, err
	}
	l.SetDir(dir)
	out := *p
	out.layers = append(p.layers[:len(p.layers):len(p.layers)], l)
	return &out, ignored, nil
}

// Dirs returns the directories whose project settings apply to a call: its project, its
// working directory, and the directories that its command line changes to. Unknown
// directories are left out.
func (p *Policy) Dirs(c Call) []string {
	loc := c.location()
	dirs := loc.Dirs
	if c.Project != "" {
		dirs = append(dirs, c.Project)
	}
	if tools.Named(c.ToolName).Kind == tools.Shell && directoryChange.Match(c.Input) {
		if line, _ := p.callLine(&c); line != nil {
			dirs = append(dirs, line.Dirs...)
		}
	}
	return dirs
}

// directoryChange matches the input of a shell tool if the call may run in another directory:
// it contains cd, as in the command, or dir, as in the name of a field, or an escape that may
// hide these letters.
var directoryChange = regexp.MustCompile(`cd|dir|\\u`)

// Guard returns a copy of p that protects further paths as nod's own: full paths of files or
// directories, such as a data directory in an unusual place. For a relative path it returns an
// error, because such a path would protect nothing.
func (p *Policy) Guard(paths ...string) (*Policy, error) {
	var own []string
	for _, at := range paths {
		clean := pathname.Clean(at)
		if strings.Trim(clean, "/") == "" {
			return nil, fmt.Errorf("%q is not a full path, so it cannot be protected", at)
		}
		own = append(own, strings.ToLower(clean))
	}
	out := *p
	if out.shell.Secrets = secrets.Compile(own...); p.contained != nil {
		out.contained = contained.New(out.shell.Secrets)
	}
	return &out, nil
}

// Check returns the verdict on a call.
func (p *Policy) Check(c Call) Verdict {
	loc := c.location()
	t := tools.Named(c.ToolName)
	ev := evaluation{pol: p, call: &c, location: &loc, tool: t}
	in, err := tools.ReadInput(c.Input)
	if err == nil && !t.HasEffect(c.ActionType) {
		err = fmt.Errorf("its effect, %s, is not one that %s is known to have", c.ActionType, t.Name)
	}
	switch {
	case err != nil:
		ev.verdict = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Why: err.Error(), Reasons: []string{"nod cannot tell what it does"}}
		ev.applyRules(nil)
	case t.Kind == tools.Shell:
		ev.evaluateShell(in)
	case t.Kind == tools.File || t.Kind == tools.Search || t.Kind == tools.Edit:
		loc.LeadsToSecret = p.shell.Secrets.MayLeadFrom(&loc)
		ev.evaluateFiles(in)
	default:
		ev.evaluateOther(in)
	}
	if ev.verdict.Rule == "" {
		ev.verdict.Rule = Default
	}
	if ev.verdict.Effect != Allow && ev.verdict.Effect != Contain && ev.verdict.Why == "" {
		ev.verdict.Why = strings.Join(ev.verdict.Reasons, ", ")
	}
	return ev.verdict
}
