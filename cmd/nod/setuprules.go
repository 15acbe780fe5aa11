package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// historyBytes bounds the size of the transcripts that setup reads, the newest first.
const historyBytes = 64 << 20

// rules offers a preset, rules for this project's runners, and rules that the user's own past sessions
// suggest, as one checklist. It reads past sessions only with the user's consent. Without a terminal,
// or with --yes, it asks nothing and changes nothing.
func (c *setupCmd) rules(e *env) error {
	if c.Yes || !e.interactive() {
		return nil
	}
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	state, err := owner.Settings(ctx)
	done()
	if err != nil {
		return err
	}
	past, err := c.past(e)
	if err != nil {
		return err
	}
	list, err := checklist(&state.Settings, past)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := e.printReplay(&state.Settings, past); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "\nFewer questions, by these changes of settings.json:")
	for i, item := range list {
		fmt.Fprintf(e.stdout, "  %d  %s\n", i+1, strings.ReplaceAll(item.text, "\n", "\n     "))
	}
	chosen, err := c.choose(e, list)
	if err != nil || len(chosen) == 0 {
		return err
	}
	return e.addChosen(chosen)
}

// past returns the tool calls of the user's past sessions, or nil if there are none or the user does not
// agree to reading them.
func (c *setupCmd) past(e *env) ([]policy.SessionCall, error) {
	files := transcripts()
	if len(files) == 0 {
		return nil, nil
	}
	fmt.Fprintf(e.stdout, "\nYour past sessions (%d files below %s) show how often nod would ask. nod reads them on this machine and keeps nothing of them.\n", len(files), strings.Join(transcriptDirs(), " and "))
	if ok, err := c.agree(e, "Read them?"); err != nil || !ok {
		return nil, err
	}
	var calls []policy.SessionCall
	unread := 0
	for _, file := range files {
		more, err := readTranscript(file)
		if calls = append(calls, more...); err != nil { // a running session may be writing the file's last line
			unread++
		}
	}
	if unread > 0 {
		fmt.Fprintf(e.stdout, "%d files could not be read whole: nod policy replay FILE says why.\n", unread)
	}
	return calls, nil
}

// transcriptDirs returns the directories in which agent programs keep the transcripts of sessions.
func transcriptDirs() (dirs []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // without a home directory there are no transcripts that nod could find
	}
	for _, dir := range []string{
		filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "projects"),
		filepath.Join(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "sessions"),
	} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// transcripts returns the newest transcripts of the user, up to historyBytes.
func transcripts() (files []string) {
	type transcript struct {
		path string
		fs.FileInfo
	}
	var all []transcript
	for _, dir := range transcriptDirs() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is left out
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				all = append(all, transcript{path, info})
			}
			return nil
		})
	}
	slices.SortFunc(all, func(a, b transcript) int { return b.ModTime().Compare(a.ModTime()) })
	size := int64(0)
	for _, t := range all {
		if size += t.Size(); size > historyBytes {
			break
		}
		files = append(files, t.path)
	}
	return files
}

// printReplay prints how many questions a past session would have had, for each preset.
func (e *env) printReplay(s *schemas.Settings, past []policy.SessionCall) error {
	if len(past) == 0 {
		return nil
	}
	replayed, err := policy.Replay(past, s.Permissions, 0)
	if err != nil {
		return err
	}
	now := cmp.Or(s.Permissions.Preset, policy.PresetReaders)
	fmt.Fprintf(e.stdout, "\nQuestions in each of your %d past sessions, by preset (%s is in force):\n", replayed[0].Sessions, now)
	for _, r := range replayed {
		fmt.Fprintf(e.stdout, "  %-10s half of them up to %d, nine in ten up to %d\n", r.Preset, r.Median, r.P90)
	}
	return nil
}

// An offer is one item of the checklist: a preset, or a rule to add.
type offer struct {
	text   string
	preset string
	rule   *policy.Suggestion
	spared bool // the offered preset makes the rule unnecessary
}

// checklist returns the offers for these settings: a preset if they name none, then rules that this
// project's runners need, then rules that would have spared the most past questions.
func checklist(s *schemas.Settings, past []policy.SessionCall) (list []offer, err error) {
	now, err := policy.New(s.Permissions, s.Policies...)
	if err != nil {
		return nil, err
	}
	calls := make([]policy.Call, len(past))
	for i := range past {
		calls[i] = past[i].Call
	}
	if s.Permissions.Preset == "" && mayAllow(s, schemas.RiskMedium, "") == nil {
		permissions := s.Permissions
		permissions.Preset = bestPreset()
		text := "the preset project: edits of the project's files run without a question"
		if permissions.Preset == policy.PresetContained {
			text = "the preset contained: edits of the project's files, builds and tests run without a question;\ncommand lines are held to the project, without network (nod policy presets explains it)"
		}
		then, err := policy.New(permissions, s.Policies...)
		if err != nil {
			return nil, err
		}
		list = append(list, offer{text: text, preset: permissions.Preset})
		list = withRules(list, s, append(runnerRules(then), then.Suggest(calls, suggestedRules)...), false)
	}
	return withRules(list, s, append(runnerRules(now), now.Suggest(calls, suggestedRules)...), len(list) > 0), nil
}

// withRules adds offers of rules that this user may add, unless the list has them.
func withRules(list []offer, s *schemas.Settings, suggestions []policy.Suggestion, spared bool) []offer {
	for _, suggestion := range suggestions {
		rule := suggestion.Rule.String()
		if mayAllow(s, suggestion.Risk, suggestion.Rule.Project) != nil || slices.ContainsFunc(list, func(o offer) bool { return o.rule != nil && o.rule.Rule.String() == rule }) {
			continue
		}
		var notes []string
		if suggestion.Spares > 0 {
			notes = append(notes, fmt.Sprintf("would have spared %d of your questions", suggestion.Spares))
		}
		if spared {
			notes = append(notes, "not needed with 1")
		}
		also := strings.Join(suggestion.Also, "; ")
		list = append(list, offer{text: strings.Join(slices.DeleteFunc([]string{people.Line(rule), strings.Join(notes, "; "), also}, func(line string) bool { return line == "" }), "\n"), rule: &suggestion, spared: spared})
	}
	return list
}

// suggestedRules is the number of rules from past sessions that setup offers at most.
const suggestedRules = 5

// bestPreset returns the preset with the fewest questions that this machine and its agent programs
// support.
func bestPreset() string {
	if level, _ := contain.Support(); level == contain.Namespaces && changesInputHere() {
		return policy.PresetContained
	}
	return policy.PresetProject // nod doctor says why commands cannot be contained
}

// changesInputHere reports whether an agent program on this machine lets a hook change a call before
// the call runs.
func changesInputHere() bool {
	for _, host := range hook.Hosts() {
		if (host.ChangesInput || host.ChangesSince != "") && host.Present() {
			return true
		}
	}
	return false
}

// runnerRules returns the rules for the usual builds and tests of the project in the current directory,
// as far as nod asks about them.
func runnerRules(p *policy.Policy) (all []policy.Suggestion) {
	call := here()
	if home, err := os.UserHomeDir(); err != nil || call.Project == "" || sameDir(call.Project, home) {
		return nil
	}
	call.Cwd, call.ToolName, call.ActionType = call.Project, "Bash", schemas.ActionCommand
	for _, runner := range []struct {
		file  string
		lines []string
	}{
		{"go.mod", []string{"go test ./...", "go build ./...", "go vet ./..."}},
		{"package.json", []string{"npm test", "npm run build"}},
		{"Cargo.toml", []string{"cargo test", "cargo build"}},
		{"Makefile", []string{"make test"}},
		{"pyproject.toml", []string{"pytest"}},
	} {
		if _, err := os.Stat(filepath.Join(call.Project, runner.file)); err != nil {
			continue
		}
		for _, line := range runner.lines {
			input, err := schemas.Encode(map[string]string{"command": line})
			if err != nil {
				continue // a constant always encodes
			}
			call.Input = input
			if suggestion, ok := p.SuggestLike(call); ok {
				all = append(all, suggestion)
			}
		}
	}
	return all
}

// choose reads the numbers of the offers to take. An empty line takes none.
func (c *setupCmd) choose(e *env, list []offer) (chosen []offer, err error) {
	for {
		line := e.typedLine("Which of them (numbers such as 1 3, all, or Enter for none)? ")
		if e.ctx.Err() != nil {
			return nil, errStopped
		}
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
		switch {
		case len(words) == 0:
			fmt.Fprintln(e.stdout, "Left out.")
			return nil, nil
		case len(words) == 1 && strings.EqualFold(words[0], "all"):
			return list, nil
		}
		if chosen, err = numbered(list, words); err == nil {
			return chosen, nil
		}
		fmt.Fprintf(e.stdout, "%v\n", err)
	}
}

func numbered(list []offer, words []string) (chosen []offer, err error) {
	taken := map[int]bool{}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(list) {
			return nil, fmt.Errorf("%s is none of the numbers 1 to %d", people.Line(word), len(list))
		}
		if !taken[n] {
			chosen = append(chosen, list[n-1])
		}
		taken[n] = true
	}
	return chosen, nil
}

// addChosen writes the chosen preset and rules into settings.json after the user has seen the change.
// If the user has chosen a preset, it leaves out the rules that the preset makes unnecessary.
func (e *env) addChosen(chosen []offer) error {
	var preset string
	for _, o := range chosen {
		preset = cmp.Or(preset, o.preset)
	}
	var suggestions []policy.Suggestion
	for _, o := range chosen {
		if o.rule != nil && !(o.spared && preset != "") {
			suggestions = append(suggestions, *o.rule)
		}
	}
	err := e.addPolicy("", preset, suggestions, false)
	switch {
	case errors.Is(err, errUnchanged) && e.ctx.Err() != nil:
		return errStopped
	case errors.Is(err, errUnchanged):
		fmt.Fprintf(e.stdout, "Left out: %v.\n", err)
		return nil
	}
	return err
}
