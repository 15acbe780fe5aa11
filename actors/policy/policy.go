// Package policy decides tool calls by rules. Check returns a verdict on a call: to allow it,
// to deny it or to ask a person. (In this package's comments, a call or a flag "makes nod ask"
// if the verdict on it is Ask.) The same call, with the same Seen, always gets the same verdict: the
// package keeps no state, and only ThisDisk, Repositories and OnDisk read the file system. The package also computes what
// the permissions of a session cover.
//
// Deny rules are tried first, then ask rules, then allow rules, over all layers that match the
// call. The preset decides a call that no rule covers. nod asks about a call in an unknown
// form. A path that leads through symbolic links is compared as it is written and, as far as Seen
// tells, as the path to which it leads.
package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Effect is the outcome of a verdict.
type Effect string

// The effects. The zero Effect is invalid and counts as Ask.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
	// Contain runs the call without a question, but only in the Verdict's Containment. A caller
	// that cannot do that must treat Contain as Ask.
	Contain Effect = "contain"
)

// Call is a tool call to check. An empty field means that the value is unknown. If the verdict
// depends on an unknown value, the verdict is Ask.
type Call struct {
	ToolName   string
	ActionType schemas.ActionType
	Input      json.RawMessage // the tool's input, a JSON object
	Cwd        string

	Agent   string // the agent's name, for matching layers; from the subject of the request, never from the payload
	Host    string
	Project string // the project's root; if empty, Cwd is used
	Home    string // the home directory, for ~
	// Tops are the directories of the project in which git uses the project's own repository:
	// the top of the project and of its work trees. nil means that nod recognises work trees by
	// their names.
	Tops []string
	Seen Seen // the facts about the disk that the verdict depends on

	// Changeable means that the caller runs a harmless line only as HardenInput changes it, if the
	// verdict has LeavesOut.
	Changeable bool

	looked *pathname.Looks // collects the places for Looks
}

// CallOf returns the call of an agent's request.
func CallOf(agent string, r *schemas.Request) Call {
	var where struct {
		Cwd string `json:"cwd"`
	}
	_ = json.Unmarshal(r.ActionDetails, &where) // the schema guarantees an object; without a cwd in it, the directory is unknown
	return Call{
		ToolName: r.ToolName, ActionType: r.ActionType, Input: r.ActionDetails, Cwd: where.Cwd,
		Agent: agent, Host: r.Host, Project: r.Project,
	}
}

// location returns the directories that relative paths and ~ of the call refer to.
func (c *Call) location() pathname.Location {
	loc := pathname.Locate(c.Cwd, c.Project, c.Home)
	loc.SetTops(c.Tops)
	for _, file := range c.Seen.Exposed {
		loc.Exposed = append(loc.Exposed, pathname.Clean(file))
	}
	for _, dir := range c.Seen.Unsearched {
		loc.Unsearched = append(loc.Unsearched, pathname.Clean(dir))
	}
	loc.Searched, loc.Links, loc.Looked = c.Seen.Searched, c.Seen.Links, c.looked
	loc.Tracked, loc.Changeable, loc.Remotes = c.Seen.Tracked, c.Changeable, c.Seen.Remotes
	if c.looked != nil {
		loc.LookedIn = &c.looked.Repositories
	}
	return loc
}

// Default is the Rule of a verdict without a rule of the user and without a built-in rule.
const Default = "default"

// Built-in rules, which outrank every allow rule of the user.
const (
	secretsRule = "default secrets" // access to secrets makes nod ask
	ownRule     = "default nod"     // denies agents to write nod's own files, and to run the nod commands that decide, grant or configure
)

// Verdict is the result of checking a call.
type Verdict struct {
	Effect  Effect
	Rule    string // the rule that decided, with its list, such as "deny Bash(rm:*)"; Default if no rule did
	Risk    schemas.Risk
	Reasons []string         // the reasons for the verdict's risk
	Targets []schemas.Target // the objects of the reasons, if nod knows them
	Unseen  []string         // code that the call runs and does not contain, for people
	Why     string           // the reason why the call is not allowed, for people; "" if it is allowed
	// Containment is set if the effect is Contain. If the effect is Ask, the call could run
	// contained if permissions were granted. If the effect is Allow, the call may also run
	// contained.
	Containment *Containment
	// LeavesOut are files with secrets, relative to the top of the repository, that the call would
	// print. It is allowed only as HardenInput changes it, which leaves them out.
	LeavesOut []string
	// Remembered identifies the remembered rules that allowed the call.
	Remembered []RememberedRef
}

// RememberedRef identifies a remembered rule. List is the index of its list, in the order in
// which With and WithLists added the lists. Index is the rule's index in the list.
type RememberedRef struct{ List, Index int }

// Policy is a compiled set of rules. It is immutable and safe for concurrent use.
type Policy struct {
	shell     shell.Reader // the reader of command lines, with the preset and the names of secrets
	layers    []rules.Layer
	contained *contained.Judge // tells which lines may run contained; nil if the preset runs no line contained
	protected *secrets.Protected
	answers   []*Answers // lists of remembered rules, in the order of their addition
}

// New compiles permissions and further layers of rules. It fails if it cannot parse a rule, and
// the error contains the rule: without that rule, calls that it forbids would be allowed.
func New(p schemas.Permissions, layers ...schemas.PolicyLayer) (*Policy, error) {
	pol := &Policy{shell: shell.Reader{Secrets: secrets.Compile()}, protected: secrets.CompileProtected()}
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

// Tighten returns a copy of p with the rules of the project at dir, for calls of that project
// only. A project's settings may only forbid more: Tighten leaves out its allow rules and its
// preset, and returns these as ignored.
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

// Dirs returns the directories whose project settings apply to a call: its project, its working
// directory, and the directories to which its command line changes. It leaves out unknown
// directories.
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

// directoryChange matches the input of a shell tool that may run in another directory: such an
// input contains the letters cd, as in the command cd, or the letters dir, as in the name of a
// field, or an escape that may hide these letters.
var directoryChange = lazyregexp.New(`cd|dir|\\u`)

// Guard returns a copy of p that protects further paths as nod's own: full paths of files or
// directories, such as an unusual data directory. A relative path is an error, because it would
// protect nothing.
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
func (p *Policy) Check(c Call) Verdict { return p.evaluate(c).verdict }

func (p *Policy) evaluate(c Call) *evaluation {
	loc := c.location()
	t := tools.Named(c.ToolName)
	ev := &evaluation{pol: p, call: &c, location: &loc, tool: t}
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
	return ev
}
