// Package policy decides, without I/O and without state, what needs asking: a
// tool call goes in, a verdict comes out, always the same one. It also says
// what a session's permissions cover.
//
// Rules are tried deny, then ask, then allow, over all layers that match; only
// where none matches does the preset decide. Whatever the package does not
// know, it asks. Paths are compared as they are written: a symbolic link is
// not followed. (Permissions are about true paths: see OnDisk.)
package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/nodbus/nod/schemas"
)

// Effect is what a verdict does with a call.
type Effect string

// The effects. The zero Effect is none of them and must be treated as Ask.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// Call is a tool call to judge. What is empty is unknown, and what depends on
// it asks.
type Call struct {
	ToolName   string
	ActionType schemas.ActionType
	Input      json.RawMessage // the tool's input, an object
	Cwd        string

	Agent   string // who asks, for layers; from the subject, never from the payload
	Host    string
	Project string // the project's root; Cwd where empty
	Home    string // what ~ stands for
}

// CallOf is a request of an agent's as a call to judge.
func CallOf(agent string, r *schemas.Request) Call {
	var where struct {
		Cwd string `json:"cwd"`
	}
	_ = json.Unmarshal(r.ActionDetails, &where) // the schema says that it is an object; no cwd is none
	return Call{
		ToolName: r.ToolName, ActionType: r.ActionType, Input: r.ActionDetails, Cwd: where.Cwd,
		Agent: agent, Host: r.Host, Project: r.Project,
	}
}

// Default is the rule of what no rule of the user's decides.
const Default = "default"

// Verdict is the judgement of a call.
type Verdict struct {
	Effect  Effect
	Rule    string // the rule that decided, as the user would write it; "default" for the preset
	Risk    schemas.Risk
	Reasons []string // why the risk is what it is
	Why     string   // why it was not allowed, in a sentence for a person; "" where it was
	// Remembered are the remembered answers that an allow rests on.
	Remembered []Remembered
}

// Remembered names one of the answers that a policy was given: the list,
// counted from 0 in the order given, and the place in it.
type Remembered struct{ List, Index int }

// Policy is a compiled set of rules. It is immutable and safe for concurrent
// use.
type Policy struct {
	level     level
	layers    []layer
	answers   []*Answers // remembered answers, as With was given them
	commands  commandTable
	secrets   *namePatterns
	own       *namePatterns
	protected bool // own names files that nod was told about
	readable  map[string]bool
	parsers   *sync.Pool // of *syntax.Parser
}

// New compiles rules and the layers over them. A rule that cannot be
// understood is an error that names it: a rule that is silently ignored would
// let something through.
func New(p schemas.Permissions, layers ...schemas.PolicyLayer) (*Policy, error) {
	pol := &Policy{
		commands: commands(),
		secrets:  compileNames(secretNames, ownNames), own: compileNames(ownNames), readable: map[string]bool{},
		parsers: parserPool(),
	}
	for _, n := range openNames {
		pol.readable[n] = true
	}
	var err error
	if pol.level, err = levelOf(p.Preset); err != nil {
		return nil, fmt.Errorf("permissions.preset: %w", err)
	}
	base, err := compileLayer("permissions", schemas.PolicyLayer{Permissions: schemas.Rules{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny}})
	if err != nil {
		return nil, err
	}
	pol.layers = append(pol.layers, base)
	for i, l := range layers {
		one, err := compileLayer(fmt.Sprintf("policies[%d].permissions", i), l)
		if err != nil {
			return nil, err
		}
		pol.layers = append(pol.layers, one)
	}
	return pol, nil
}

// Tighten is p with the own settings of the project at dir on top, for calls of
// that project. Such settings may only tighten: their allow rules and their
// preset are left out, and named in ignored.
func (p *Policy) Tighten(project schemas.Permissions, dir string) (tight *Policy, ignored []string, err error) {
	for _, r := range project.Allow {
		ignored = append(ignored, "allow "+r)
	}
	if project.Preset != "" {
		ignored = append(ignored, "preset "+project.Preset)
	}
	l, err := compileLayer("permissions", schemas.PolicyLayer{Permissions: schemas.Rules{Ask: project.Ask, Deny: project.Deny}})
	if err != nil {
		return nil, nil, err
	}
	for _, rules := range [][]rule{l.ask, l.deny} {
		for i := range rules {
			rules[i].dir = cleanAbs(dir)
		}
	}
	out := *p
	out.layers = append(p.layers[:len(p.layers):len(p.layers)], l)
	return &out, ignored, nil
}

// Dirs are the directories whose own rules a call is under: its project, where it
// is made, and where its command line goes. One that is unknown is left out.
func (p *Policy) Dirs(c Call) []string {
	dirs := newLocation(&c).dirs
	if c.Project != "" {
		dirs = append(dirs, c.Project)
	}
	if canonicalTool(c.ToolName).kind == kindShell && directoryChange.Match(c.Input) {
		if line, _ := p.callLine(&c); line != nil {
			dirs = append(dirs, line.dirs...)
		}
	}
	return dirs
}

// goes finds what may change the directory in a shell tool's input, a command or
// a field, written out or escaped.
var directoryChange = regexp.MustCompile(`cd|dir|\\u`)

// Guard is p with further files or directories of nod's own, by full path, such
// as a data directory that is not where it usually is. A path that is not full
// is an error: it would protect nothing.
func (p *Policy) Guard(paths ...string) (*Policy, error) {
	var own []string
	for _, at := range paths {
		clean := cleanAbs(at)
		if strings.Trim(clean, "/") == "" {
			return nil, fmt.Errorf("%q is no full path that could be guarded", at)
		}
		own = append(own, strings.ToLower(clean))
	}
	out := *p
	out.secrets, out.own, out.protected = compileNames(secretNames, ownNames, own), compileNames(ownNames, own), len(own) > 0
	return &out, nil
}

// Check judges a call.
func (p *Policy) Check(c Call) Verdict {
	loc := newLocation(&c)
	t := canonicalTool(c.ToolName)
	ev := evaluation{pol: p, call: &c, location: &loc, tool: t}
	in, err := readInput(c.Input)
	if err == nil && !t.hasEffect(c.ActionType) {
		err = fmt.Errorf("its effect, %s, is none that %s is known to have", c.ActionType, t.name)
	}
	switch {
	case err != nil:
		ev.verdict = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Why: err.Error(), Reasons: []string{"nod cannot tell what it does"}}
		ev.applyRules(nil)
	case t.kind == kindShell:
		ev.evaluateShell(in)
	case t.kind == kindFile || t.kind == kindSearch || t.kind == kindEdit:
		loc.leadsToSecret = p.secrets.mayLeadFrom(loc.dirs)
		ev.evaluateFiles(in)
	default:
		ev.evaluateOther(in)
	}
	if ev.verdict.Rule == "" {
		ev.verdict.Rule = Default
	}
	if ev.verdict.Effect != Allow && ev.verdict.Why == "" {
		ev.verdict.Why = strings.Join(ev.verdict.Reasons, ", ")
	}
	return ev.verdict
}
