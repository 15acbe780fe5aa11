package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// hostRules are the rules from one file of an agent program: the rules that nod can import, and the
// rules that nod cannot import.
type hostRules struct {
	file    string
	project string // the project to which the rules apply; empty for all projects
	rules   schemas.Permissions
	left    []rules.NotImported
}

// ruleFiles returns the files with an agent program's rules: the user's own files, and the files of the
// project in the current directory.
func ruleFiles(agent string) (files []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the rules of %s: %w", agent, err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the rules of %s: %w", agent, err)
	}
	add := func(dir string, patterns ...string) {
		for _, pattern := range patterns {
			found, _ := fs.Glob(os.DirFS(dir), pattern) // Glob fails only for malformed patterns; in an unreadable directory it finds no files
			for _, name := range found {
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	switch agent {
	case hook.ClaudeCode().Name:
		add(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "settings.json")
		add(filepath.Join(here, ".claude"), "settings.json", "settings.local.json")
	case hook.Codex().Name:
		add(filepath.Join(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "rules"), "*.rules")
		add(filepath.Join(here, ".codex", "rules"), "*.rules")
	case hook.Gemini().Name: // Gemini ignores a project's policies
		add(filepath.Join(home, ".gemini"), "settings.json", "policies/*.toml")
		add(filepath.Join(here, ".gemini"), "settings.json")
	}
	return files, nil
}

// maxRuleFile is the largest size in bytes of a file with rules.
const maxRuleFile = 1 << 20

// readRules returns the content of a file with rules. A project may contain anything, so the file must
// be an ordinary file of up to maxRuleFile bytes, and readRules never waits for a named pipe.
func readRules(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the file was only read, so an error of Close loses nothing
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no ordinary file", file)
	case info.Size() > maxRuleFile:
		return nil, fmt.Errorf("%s is larger than 1 MiB", file)
	}
	return io.ReadAll(io.LimitReader(f, maxRuleFile))
}

// readHostRules reads an agent program's rules from its usual files, and from one more file if its path is
// given.
func readHostRules(agent, file string) (all []hostRules, err error) {
	files, err := ruleFiles(agent)
	if err != nil {
		return nil, err
	}
	if file != "" {
		files = append([]string{file}, files...)
	}
	var seen []os.FileInfo
	for _, f := range files {
		info, err := os.Stat(f)
		if errors.Is(err, fs.ErrNotExist) || slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			continue
		}
		one, err := readRuleFile(agent, f)
		if err != nil { // after an error in one file, the other files are still read
			one.left = []rules.NotImported{{List: "file", Rule: f, Why: err.Error()}}
		}
		seen, all = append(seen, info), append(all, one)
	}
	return all, nil
}

func readRuleFile(agent, file string) (hostRules, error) {
	r := hostRules{file: file, project: projectOf(file)}
	data, err := readRules(file)
	if err != nil {
		return r, fmt.Errorf("read the rules of %s: %w: name the file with --file", agent, err)
	}
	read := rules.ImportClaudeCode
	switch {
	case agent == hook.Codex().Name:
		read = rules.ImportCodex
	case agent == hook.Gemini().Name && filepath.Ext(file) == ".toml":
		read = rules.ImportGeminiPolicy
	case agent == hook.Gemini().Name:
		read = rules.ImportGemini
		if plain, err := hujson.Standardize(data); err == nil { // Gemini's settings file may contain comments, which JSON does not allow
			data = plain
		}
	}
	if r.rules, r.left, err = read(data); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// projectOf returns the directory of the project to which a rule file belongs. It returns "" if the
// file contains the user's own rules.
func projectOf(file string) string {
	dir := filepath.Dir(file)
	if base := filepath.Base(dir); base == "rules" || base == "policies" {
		dir = filepath.Dir(dir)
	}
	project := filepath.Dir(dir)
	if !slices.Contains([]string{".claude", ".codex", ".gemini"}, filepath.Base(dir)) || sameDir(dir, os.Getenv("CLAUDE_CONFIG_DIR")) || sameDir(dir, os.Getenv("CODEX_HOME")) {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && sameDir(project, home) {
		return ""
	}
	return project
}

func sameDir(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// settingsWith returns settings that contain all rules of the given files. The rules of a project apply only
// to that project.
func settingsWith(all []hostRules) (s schemas.Settings) {
	for _, r := range all {
		if r.project == "" {
			p := &s.Permissions
			p.Allow, p.Ask, p.Deny = union(p.Allow, r.rules.Allow), union(p.Ask, r.rules.Ask), union(p.Deny, r.rules.Deny)
			continue
		}
		at := slices.IndexFunc(s.Policies, func(l schemas.PolicyLayer) bool { return l.Match.Projects[0] == r.project })
		if at < 0 {
			at = len(s.Policies)
			s.Policies = append(s.Policies, schemas.PolicyLayer{Match: schemas.PolicyMatch{Projects: []string{r.project}}})
		}
		p := &s.Policies[at].Permissions
		p.Allow, p.Ask, p.Deny = union(p.Allow, r.rules.Allow), union(p.Ask, r.rules.Ask), union(p.Deny, r.rules.Deny)
	}
	return s
}

// offerImport offers to import an agent program's own rules after the installation of its hook. Without the
// import, nod would ask people about calls that these rules already allow, because the hook asks nod about
// every call. The parameter changed is the path of the settings file with the new hook. If the parameter ask
// is false, offerImport only prints the commands for the import.
func (e *env) offerImport(agent, changed string, ask bool) error {
	host, err := hostNamed(agent)
	if err != nil {
		return err
	}
	if agent != hook.ClaudeCode().Name { // only Claude Code keeps hooks and rules in the same file
		changed = ""
	}
	all, err := readHostRules(agent, changed)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r hostRules) bool { return len(r.rules.Allow) == 0 && len(r.left) == 0 })
	if len(all) == 0 {
		fmt.Fprintf(e.stdout, "%s has no permission rules of its own that nod could import; nod asks about every call that settings.json does not allow\n", host.Agent)
		return nil
	}
	offered := false
	for _, r := range all {
		offered = offered || len(r.rules.Allow) > 0
		e.showRules(host.Agent, r)
	}
	if !offered {
		return nil
	}
	if !ask {
		fmt.Fprintf(e.stdout, "To have nod allow them too, add the output of this to settings.json:\n")
		for _, r := range all {
			fmt.Fprintf(e.stdout, "  nod policy import %s --file %s\n", agent, r.file)
		}
		return nil
	}
	if !e.agree("Take these rules over, with those that ask and deny, into nod's settings.json?") {
		return nil
	}
	return e.changeSettings("", func(s *schemas.Settings) ([]member, error) { return additions(s, settingsWith(all)), nil })
}

// showRules prints the allow rules that nod would import from a file. For the rules that nod cannot import,
// it prints their number and the reasons.
func (e *env) showRules(agent string, r hostRules) {
	if len(r.rules.Allow) > 0 {
		where := ""
		if r.project != "" {
			where = ", in " + r.project
		}
		fmt.Fprintf(e.stdout, "%s allows these by itself%s, and nod sees them now as well (%s):\n", agent, where, r.file)
	}
	for _, rule := range r.rules.Allow {
		fmt.Fprintf(e.stdout, "  %s\n", people.Line(rule))
	}
	if n := len(r.left); n > 0 {
		var why []string
		for _, l := range r.left {
			if !slices.Contains(why, l.Why) {
				why = append(why, l.Why)
			}
		}
		fmt.Fprintf(e.stdout, "Not taken over from %s: %d (%s)\n", r.file, n, people.Line(strings.Join(why, "; ")))
	}
}

// additions returns the members to set in settings.json, which has the settings s. They add the rules that
// other settings have and s lacks.
func additions(s *schemas.Settings, more schemas.Settings) (all []member) {
	lists := func(at string, has, more schemas.Rules) {
		for _, list := range []struct {
			name      string
			has, more []string
		}{{"allow", has.Allow, more.Allow}, {"ask", has.Ask, more.Ask}, {"deny", has.Deny, more.Deny}} {
			for _, rule := range lacking(list.has, list.more) {
				all = append(all, member{at + "/" + list.name + "/-", rule})
			}
		}
	}
	rulesOf := func(p *schemas.Permissions) schemas.Rules {
		return schemas.Rules{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny}
	}
	lists("/permissions", rulesOf(&s.Permissions), rulesOf(&more.Permissions))
	layers := slices.Clone(s.Policies)
	for _, layer := range more.Policies {
		at := slices.IndexFunc(layers, func(l schemas.PolicyLayer) bool {
			return slices.Equal(l.Match.Projects, layer.Match.Projects) && len(l.Match.Agents)+len(l.Match.Hosts) == 0
		})
		if at < 0 {
			layers, all = append(layers, layer), append(all, member{"/policies/-", layer})
			continue
		}
		lists(fmt.Sprintf("/policies/%d/permissions", at), layers[at].Permissions, layer.Permissions)
	}
	return all
}
