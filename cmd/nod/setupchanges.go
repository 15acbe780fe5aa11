package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/cmd/nod/internal/checklist"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// The signs that items show in place of the box if they cannot be chosen.
const (
	markDone  = "✓"
	markFault = "!"
	markWrite = "+"
)

// errChangedMeanwhile is the error of a change that no longer equals the change that the user has seen.
var errChangedMeanwhile = errors.New("it was changed meanwhile: run nod setup again")

// A setupChange is one change that setup can make.
type setupChange struct {
	name     string   // what is set up, such as Claude Code
	paths    string   // the files that are changed
	diff     string   // the change of these files; empty if they need no change
	announce string   // what --yes prints before the change
	effect   string   // what the summary says about the change
	parts    []string // further lines below the change's name
	apply    func() error
	fault    error           // the reason why the change cannot be made
	item     *checklist.Item // the change's entry in a list; nil if the change follows from other items
}

// listed gives the change its item in a list. An item that can be chosen is chosen from the start,
// because the user of setup wants agents to ask nod; the user can still drop it before confirming the
// summary.
func (s *setupChange) listed() *setupChange {
	s.item = &checklist.Item{Text: s.name, Detail: s.diff, Notes: append([]string{countLines(s.paths, s.diff)}, s.parts...)}
	switch {
	case s.fault != nil:
		s.item.Mark, s.item.Notes = markFault, []string{s.fault.Error()}
	case s.diff == "":
		s.item.Mark, s.item.Notes = markDone, []string{"set up already, by " + s.paths}
	default:
		s.item.On = true
	}
	return s
}

// countLines returns the line that names the changed files and counts the changed lines.
func countLines(paths, diff string) string {
	added, removed := 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	lines := schemas.Count(added, "line") + " added"
	if removed > 0 {
		lines += fmt.Sprintf(", %d removed", removed)
	}
	return fmt.Sprintf("changes %s (%s)", paths, lines)
}

// tilde shortens the user's home directory in a path to ~.
func tilde(path string) string {
	if home, err := os.UserHomeDir(); err == nil {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~/" + rest
		}
	}
	return path
}

type setupChanges struct {
	agents   []*setupChange
	service  *setupChange  // nil if the service is not wanted
	settings *setupChange  // nil until the user has chosen settings
	choice   settingsOffer // empty with --yes, which changes no settings
}

// changes finds the changes that setup can make, but makes none.
func (c *setupCmd) changes(e *env) *setupChanges {
	all := &setupChanges{}
	for _, host := range hook.Hosts() {
		if host.Present() && host.Name != hook.VSCode().Name { // VS Code's hook asks about every call, and Copilot CLI would run the hook too
			all.agents = append(all.agents, c.agent(e, host).listed())
		}
	}
	if !c.NoService {
		all.service = c.service(e).listed()
	}
	return all
}

// agent returns the installation of one agent program's hook.
func (c *setupCmd) agent(e *env, host hook.Host) *setupChange {
	plan := func() (installed, error) {
		install := installCmd{Agent: host.Name, DryRun: true, OnUnavailable: string(hook.UnavailableAsk)}
		return install.install(e)
	}
	planned, err := plan()
	s := &setupChange{
		name: host.Agent, paths: tilde(planned.Path), diff: planned.Diff(), fault: err,
		effect: host.Agent + " asks nod",
	}
	if planned.Warning != "" {
		s.parts = []string{"Warning: " + planned.Warning}
	}
	if planned.trust.Changed() {
		s.paths += " and " + tilde(planned.trust.Path)
	}
	if s.diff != "" {
		s.announce = host.Agent + " is here. It will ask nod, by this change:\n\n" + s.diff
	}
	s.apply = func() error {
		if now, err := plan(); err != nil || now.Diff() != s.diff {
			return cmp.Or(err, errChangedMeanwhile)
		}
		install := installCmd{Agent: host.Name, Unasked: true, unimported: !c.Yes, OnUnavailable: string(hook.UnavailableAsk)}
		return install.Run(e)
	}
	return s
}

// service returns the installation of the service.
func (c *setupCmd) service(e *env) *setupChange {
	s := &setupChange{name: "the service", effect: "nod runs now, and from every log-in on"}
	manager, spec, err := (&serviceInstallCmd{}).plan(e)
	if err != nil {
		s.fault = err
		return s
	}
	change, err := manager.Plan(spec)
	s.paths, s.fault = tilde(change.Path), err
	if change.Changed() {
		s.diff = hook.Change{Path: change.Path, Before: []byte(change.Before), After: []byte(change.After)}.Diff()
		s.announce = fmt.Sprintf("nod can run from log-in on, by this file (%s):\n\n%s", change.Path, change.After)
	}
	s.apply = func() error {
		if now, err := manager.Plan(spec); err != nil || now != change {
			return cmp.Or(err, errChangedMeanwhile)
		}
		started, err := e.installService(manager, spec)
		c.unserved = !started
		if err == nil && started {
			_ = c.awaitService(e, spec.DataDir) // an error is ignored, because setup reports at its end that nod does not run
		}
		return err
	}
	return s
}

// chosen returns the changes to make, in their order. It includes installations that need no change of the
// user's files, so that they are brought up to date. If the parameter all is true, chosen returns all
// changes.
func (s *setupChanges) chosen(all bool) (made []*setupChange) {
	for _, change := range slices.Concat([]*setupChange{s.settings, s.service}, s.agents) {
		if change != nil && (all || !isOpen(change) || change.item == nil || change.item.On) {
			made = append(made, change)
		}
	}
	return made
}

// isOpen reports whether a change is possible and not made yet, so that the user can choose it.
func isOpen(s *setupChange) bool { return s.fault == nil && s.diff != "" }

func (s *setupChanges) lists(offer settingsOffer) *checklist.Lists {
	s.choice = offer
	var agents, service []*checklist.Item
	for _, change := range s.agents {
		agents = append(agents, change.item)
	}
	if s.service != nil {
		service = append(service, s.service.item)
		if isOpen(s.service) {
			s.service.item.Text = "Start nod now and at every log-in"
		}
	}
	fixed := func(items []*checklist.Item) func() []*checklist.Item {
		return func() []*checklist.Item { return items }
	}
	return &checklist.Lists{
		Title: "nod setup",
		Pages: []checklist.Page{
			{Title: "Agents", Intro: "Which of the agents on this machine will ask nod?", Items: fixed(agents)},
			{Title: "Preset", Intro: strings.TrimSpace("Which calls run without a question? " + offer.past), One: true, Items: fixed(offer.presets)},
			{Title: "Rules", Intro: "Which of these calls will run without a question too? Each is one rule in settings.json.", Items: offer.rules},
			{Title: "Service", Intro: "Agents reach nod only while it runs.", Items: fixed(service)},
		},
		Summarize: s.summarize,
	}
}

// summarize plans the change of settings.json, and returns the summary of all changes to make.
func (s *setupChanges) summarize() (sum checklist.Summary) {
	s.settings = s.choice.change()
	for _, change := range s.chosen(false) {
		item := &checklist.Item{Text: change.effect, Notes: []string{countLines(change.paths, change.diff)}, Detail: change.diff, Mark: markWrite, Group: "Will be written:"}
		switch {
		case change.fault != nil:
			item.Text, item.Notes, item.Mark, item.Group = change.name, []string{change.fault.Error()}, markFault, "Left out, by an error:"
		case change.diff == "":
			item.Text, item.Notes, item.Mark, item.Group = change.name, nil, markDone, "Set up already:"
		default:
			sum.Changes = true
			item.Notes = append(item.Notes, change.parts...)
		}
		sum.Items = append(sum.Items, item)
	}
	slices.SortStableFunc(sum.Items, func(a, b *checklist.Item) int {
		return strings.Index(markWrite+markFault+markDone, a.Mark) - strings.Index(markWrite+markFault+markDone, b.Mark)
	})
	if len(sum.Items) == 0 {
		sum.Items = []*checklist.Item{{Text: "Nothing is ticked, so nothing will change.", Mark: markDone}}
	}
	return sum
}
