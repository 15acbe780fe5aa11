// Package policy decides tool calls by rules. Check returns the verdict on a call: allow the call, deny it,
// ask a person, or run the call contained. "nod asks" means that the verdict is Ask. The same call with the
// same Seen always gets the same verdict, because Check reads no files and keeps no state. In this package,
// only ThisDisk, Repositories and OnDisk read the file system. The package also compares the permissions that
// a call needs with the permissions of its session.
//
// Check tries deny rules first, then ask rules, then allow rules, in all layers that match the call. The
// preset decides a call that no rule covers. nod asks about a call in a form that it does not know. If a path
// leads through symbolic links and Seen has its true path, Check compares both with the rules.
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

// The effects. The zero Effect is invalid, and callers must treat it as Ask.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
	// Contain means that the call runs without a question, but only in the Containment of the verdict. A
	// caller that cannot run calls contained must treat Contain as Ask.
	Contain Effect = "contain"
)

// Call is a tool call to check. An empty field means that its value is unknown. If the verdict depends on an
// unknown value, the verdict is Ask.
type Call struct {
	ToolName   string
	ActionType schemas.ActionType
	Input      json.RawMessage // the tool's input, a JSON object
	Cwd        string

	Agent   string // the agent's name, which selects layers of rules; it comes from the subject of the request, never from the payload
	Host    string
	Project string // the project's root; if empty, Cwd counts as the project
	Home    string // the home directory, to which ~ refers
	// Tops are the directories in which git uses the project's own repository: the project, the top of its
	// repository, and the repository's work trees. If Tops is nil, nod recognises work trees by their names.
	Tops []string
	Seen Seen // the facts about the disk on which the verdict depends

	// Changeable means that the caller can change the call's command line. If the verdict has LeavesOut, the
	// caller must then run the line only as HardenInput changes it.
	Changeable bool

	looked *pathname.Looks // collects the places that Looks returns
}

// CallOf returns the call of an agent's request.
func CallOf(agent string, r *schemas.Request) Call {
	var where struct {
		Cwd string `json:"cwd"`
	}
	_ = json.Unmarshal(r.ActionDetails, &where) // the schema guarantees an object; if it has no cwd, the directory stays unknown
	return Call{
		ToolName: r.ToolName, ActionType: r.ActionType, Input: r.ActionDetails, Cwd: where.Cwd,
		Agent: agent, Host: r.Host, Project: r.Project,
	}
}

// location returns the directories to which the relative paths and ~ of the call refer.
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

// Default is the Rule of a verdict that neither a rule of the user nor a built-in rule decided.
const Default = "default"

// The built-in rules. They outrank every allow rule of the user.
const (
	secretsRule = "default secrets" // makes nod ask about access to secrets
	ownRule     = "default nod"     // denies an agent to write nod's own files, and to run nod commands that decide, grant or configure
)

// Verdict is the result of checking a call.
type Verdict struct {
	Effect  Effect
	Rule    string // the rule that decided, with its list, such as "deny Bash(rm:*)"; Default if no rule did
	Risk    schemas.Risk
	Reasons []string         // the reasons for Risk
	Targets []schemas.Target // the objects, such as files, that the reasons are about, if nod knows them
	Unseen  []string         // for people: code that the call runs, but that cannot be read in the call
	Why     string           // the reason why the call is not allowed, for people; "" if it is allowed
	// Containment is set if the effect is Contain. If the effect is Ask, it says how the call could run
	// contained after a person grants permissions. If the effect is Allow, the call may run contained, but
	// need not.
	Containment *Containment
	// LeavesOut are files with secrets that the call as written would print, relative to the repository's top.
	// The call is allowed only as HardenInput changes it, because the changed call does not print these files.
	LeavesOut []string
	// Remembered identifies the remembered rules that allowed the call.
	Remembered []RememberedRef
}

// RememberedRef identifies a remembered rule. List is the index of the rule's list, in the order in which
// With and WithLists added the lists. Index is the rule's index in the list.
type RememberedRef struct{ List, Index int }

// Policy is a compiled set of rules. It is immutable and safe for concurrent use.
type Policy struct {
	shell     shell.Reader // reads command lines; it also has the preset and the names of secrets
	layers    []rules.Layer
	contained *contained.Judge // decides which lines may run contained; nil if the preset runs none contained
	protected *secrets.Protected
	answers   []*Answers // lists of remembered rules, in the order of their addition
}

// New compiles permissions and further layers of rules. If New cannot parse a rule, it returns an error that
// names the rule. A policy without this rule could allow calls that the rule forbids.
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

// Tighten returns a copy of p that also has the rules of the project at dir, for calls of this project only.
// A project's settings may only forbid more. Therefore Tighten leaves out the project's allow rules and
// preset, and returns them as ignored.
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

// Dirs returns the directories whose project settings apply to a call: the call's project, its working
// directory, and the directories to which its command line changes. It leaves out unknown directories.
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

// directoryChange matches the input of any shell tool that may run in another directory. Such an input
// contains cd, as in the command cd, or dir, as in a field's name, or an escape that may hide these letters.
var directoryChange = lazyregexp.New(`cd|dir|\\u`)

// Guard returns a copy of p that also protects the given paths as nod's own. Each must be the full path of a
// file or a directory, such as an unusual data directory. A relative path is an error, because it would
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
