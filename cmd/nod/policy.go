package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

type policyCmd struct {
	Check   policyCheckCmd   `cmd:"" help:"Read tool calls as NDJSON, and write one verdict per line."`
	Explain policyExplainCmd `cmd:"" help:"Explain the verdict that the rules give a command."`
	Test    policyTestCmd    `cmd:"" help:"Check the rules against a file of your own cases."`
	Suggest policySuggestCmd `cmd:"" help:"Suggest rules that would have saved the most questions."`
	Import  policyImportCmd  `cmd:"" help:"Print the rules of claude-code, codex or gemini as a settings.json."`
	Replay  policyReplayCmd  `cmd:"" help:"Count the questions that each preset would have asked in transcripts."`
	Presets policyPresetsCmd `cmd:"" help:"Explain the presets."`
}

// rulesFlag is the flag that names the settings with the rules to use.
type rulesFlag struct {
	Settings string   `placeholder:"FILE" type:"path" help:"Use the rules of this settings.json (DATA/settings.json, if there is one)."`
	tried    []string // further allow rules that are not in the settings
}

func (f rulesFlag) permissions(e *env) (schemas.Settings, error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return schemas.Settings{}, err
	}
	data, err := readSettings(f.Settings, place.DataDir)
	if err != nil || data == nil {
		return schemas.Settings{}, err
	}
	return embed.DecodeSettings(data)
}

func (f rulesFlag) policy(e *env) (*policy.Policy, error) {
	s, err := f.permissions(e)
	if err != nil {
		return nil, err
	}
	var tried []schemas.PolicyLayer
	for _, rule := range f.tried {
		if _, err := rules.Parse(rule); err != nil {
			return nil, fmt.Errorf("--rule %w", err)
		}
		tried = append(tried, schemas.PolicyLayer{Permissions: schemas.Rules{Allow: []string{rule}}})
	}
	p, err := policy.New(s.Permissions, append(tried, s.Policies...)...)
	if err != nil {
		return nil, err
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(place.DataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	return p.Guard(data)
}

// policyHere returns the policy for the project in the current directory.
func (f rulesFlag) policyHere(e *env) (*policy.Policy, error) {
	p, err := f.policy(e)
	if err != nil {
		return nil, err
	}
	files := engine.ProjectFiles{Channels: embed.ChannelSettings()}
	return files.Tighten(p, here().Cwd, here().Project)
}

// triedRules are the flags of a command that can also try rules that are not in the settings.
type triedRules struct {
	rulesFlag
	Rules []string `name:"rule" sep:"none" placeholder:"RULE" help:"Also use this allow rule, which the settings do not have; can be repeated."`
}

// policyHere returns the policy for the project in the current directory, extended by the tried rules.
func (t triedRules) policyHere(e *env) (*policy.Policy, error) {
	t.rulesFlag.tried = t.Rules
	return t.rulesFlag.policyHere(e)
}

// here returns a policy.Call without a tool. The call's agent is "local", and its directory and host
// are those of this process.
func here() policy.Call {
	cwd, _ := os.Getwd()        // if the directory is unknown, allow rules that depend on it do not apply
	home, _ := os.UserHomeDir() // if the home directory is unknown, allow rules that depend on it do not apply
	host, _ := os.Hostname()
	c := policy.Call{Cwd: cwd, Home: home, Host: host, Agent: "local"}
	locate(&c)
	return c
}

// locate sets the project of a call from the call's directory, in the same way as a hook.
func locate(c *policy.Call) {
	c.Project = agents.ProjectOf(c.Cwd)
	c.Tops = policy.ThisDisk{}.Tops(c.Project)
}

type policyCheckCmd struct{ triedRules }

// Run writes one verdict per line, in the order of the calls.
func (c *policyCheckCmd) Run(e *env) error {
	p, err := c.policyHere(e)
	if err != nil {
		return err
	}
	return p.CheckStream(e.stdin, e.stdout, here(), locate)
}

type policyExplainCmd struct {
	triedRules
	Command []string `arg:"" passthrough:"" help:"The command, as one argument or several."`
}

func (c *policyExplainCmd) Run(e *env) error {
	p, err := c.policyHere(e)
	if err != nil {
		return err
	}
	call := here()
	call.ToolName, call.ActionType = "Bash", schemas.ActionCommand
	words, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	if call.Input, err = schemas.Encode(map[string]string{"command": strings.Join(words, " ")}); err != nil {
		return err
	}
	disk := policy.ThisDisk{}
	call.Seen = disk.Look(p, call, func(s policy.Search) ([]string, bool) { return disk.Exposed(p, s) })
	_, err = fmt.Fprint(e.stdout, p.Explain(call).String())
	return err
}

type policyTestCmd struct {
	rulesFlag
	File string `arg:"" type:"existingfile" help:"File of cases, one per line, such as: allow git status"`
}

// Run fails if the verdict for a case differs from the verdict in the test file.
func (c *policyTestCmd) Run(e *env) error {
	p, err := c.policyHere(e)
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("read the cases: %w", err)
	}
	defer f.Close()
	cases, failed, err := p.TestFile(f, here(), locate)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	for _, m := range failed {
		fmt.Fprintf(e.stdout, "%s:%d: %s: want %s, got %s by %s: %s\n", c.File, m.Line, m.Case, m.Want, m.Got, m.Rule, m.Why)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d cases did not get the expected verdict", len(failed), cases)
	}
	fmt.Fprintf(e.stdout, "%d cases pass\n", cases)
	return nil
}

type policySuggestCmd struct {
	rulesFlag
	Paths []string `arg:"" optional:"" type:"existingpath" help:"Transcripts, or directories of them; without any, the log of the running nod."`
	Most  int      `default:"5" help:"The most rules to suggest."`
	JSON  bool     `name:"json" xor:"form" help:"Print a JSON array."`
	Apply bool     `xor:"form" help:"Show the change of settings.json that adds the rules, ask, and put it in force."`
	Yes   bool     `short:"y" help:"With --apply: do not ask."`
}

// Run prints rules that would have spared questions. With --apply it adds to settings.json those rules that
// this user has the right to add.
func (c *policySuggestCmd) Run(e *env) error {
	if c.Yes && !c.Apply {
		return errors.New("--yes is for --apply")
	}
	p, err := c.policy(e)
	if err != nil {
		return err
	}
	flat, err := c.calls(e)
	if err != nil {
		return err
	}
	suggestions := p.Suggest(flat, c.Most)
	if c.JSON {
		return e.printJSON(append([]policy.Suggestion{}, suggestions...))
	}
	for _, s := range suggestions {
		fmt.Fprint(e.stdout, s.String())
	}
	if !c.Apply {
		return nil
	}
	if len(suggestions) == 0 {
		fmt.Fprintln(e.stdout, "There is no rule to add.")
		return nil
	}
	return e.addPolicy(c.Settings, suggestions, c.Yes)
}

// calls returns the tool calls of the named transcripts. If no transcript is named, it returns those
// of nod's log.
func (c *policySuggestCmd) calls(e *env) (flat []policy.Call, err error) {
	if len(c.Paths) == 0 {
		return e.loggedCalls()
	}
	calls, err := readTranscripts(c.Paths)
	for _, one := range calls {
		flat = append(flat, one.Call)
	}
	return flat, err
}

// loggedCalls returns the tool calls about which nod asked people, from the log of the running nod. The
// log contains their inputs only if the setting log.payloads is on.
func (e *env) loggedCalls() ([]policy.Call, error) {
	ctx, conn, done, err := e.join(roles.ID{Role: roles.OwnerStore})
	if err != nil {
		return nil, err
	}
	defer done()
	var calls []policy.Call
	asked := 0
	err = conn.EachLogged(ctx, func(entry schemas.LogEntry) error {
		if entry.Kind != schemas.LogAsked {
			return nil
		}
		asked++
		if entry.Request == nil || entry.Redacted > 0 { // a redacted command contains a mark in place of a secret, so a rule for it would fit no real command
			return nil
		}
		var r schemas.Request
		if err := json.Unmarshal(entry.Request, &r); err != nil {
			return fmt.Errorf("read a request in the log: %w", err)
		}
		if r.Kind == schemas.KindToolCall {
			calls = append(calls, policy.CallOf(entry.Actor, &r))
		}
		return nil
	})
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("the log has requests (%d), but not their commands: set log.payloads in settings.json to keep them in the log, or name transcripts of agents, such as ~/.claude/projects", asked)
	}
	return calls, err
}

type policyImportCmd struct {
	Agent string `arg:"" enum:"claude-code,codex,gemini" help:"The agent program: claude-code, codex or gemini."`
	File  string `placeholder:"PATH" type:"path" help:"Read this file alone (by default the user's and this project's files)."`
}

// Run prints a settings.json with the imported rules to standard output. To standard error it prints
// the rules that it could not import.
func (c *policyImportCmd) Run(e *env) (err error) {
	var all []hostRules
	if c.File == "" {
		all, err = readHostRules(c.Agent, "")
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("there are no rules of %s's here: name their file with --file", c.Agent)
		}
	} else {
		all = make([]hostRules, 1)
		all[0], err = readRuleFile(c.Agent, c.File)
	}
	if err != nil {
		return err
	}
	for _, r := range all {
		for _, n := range r.left {
			fmt.Fprintf(e.stderr, "left out: %s %s: %s\n", n.List, n.Rule, n.Why)
		}
	}
	return e.printJSON(settingsWith(all))
}

type policyReplayCmd struct {
	rulesFlag
	Paths []string `arg:"" type:"existingpath" help:"Transcripts, or directories of them."`
	Most  int      `default:"5" help:"The most rules to suggest."`
	JSON  bool     `name:"json" help:"Print a JSON array."`
}

func (c *policyReplayCmd) Run(e *env) error {
	s, err := c.permissions(e)
	if err != nil {
		return err
	}
	calls, err := readTranscripts(c.Paths)
	if err != nil {
		return err
	}
	replayed, err := policy.Replay(calls, s.Permissions, c.Most)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(replayed)
	}
	for _, r := range replayed {
		fmt.Fprintln(e.stdout, r.String())
	}
	return nil
}

type policyPresetsCmd struct{}

func (policyPresetsCmd) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, policy.Presets())
	return err
}

// readTranscripts reads transcripts, which are files of JSON lines. For a directory it reads all .jsonl
// files. It fails if it finds no tool call.
func readTranscripts(paths []string) ([]policy.SessionCall, error) {
	var files []string
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (path == root || strings.HasSuffix(path, ".jsonl")) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for transcripts: %w", err)
		}
	}
	slices.Sort(files)
	var calls []policy.SessionCall
	for _, file := range files {
		more, err := readTranscript(file)
		if err != nil {
			return nil, err
		}
		calls = append(calls, more...)
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("there is no tool call in %s: name a transcript (.jsonl) or a directory of them", cmp.Or(strings.Join(paths, ", "), "nothing"))
	}
	return calls, nil
}

func readTranscript(path string) ([]policy.SessionCall, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a transcript: %w", err)
	}
	defer f.Close()
	return policy.ReadTranscript(f, strings.TrimSuffix(filepath.Base(path), ".jsonl"))
}
