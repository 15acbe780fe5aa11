package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// files judges a tool that reads, searches or writes files.
func (j *judge) files(in input) {
	paths, known := in.filePaths(j.tool)
	j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	writes := j.tool.kind == kindEdit
	if writes {
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"writes a file"}}
	}
	if j.tool.kind == kindSearch {
		for _, k := range []string{"pattern", "glob", "include"} {
			if s, ok := in.text(k); ok && (k != "pattern" || j.tool.name == "Glob") {
				known = known || k == "pattern"
				if k == "pattern" && isAbs(slashes(s)) {
					s, _ = path.Split(slashes(s[:strings.IndexAny(s+"*", "*?[")]))
					paths = append(paths, s)
				} else if p := spelledOut(s); p != "" && j.pol.secret(p, j.place, true) || k != "pattern" && j.pol.secretFilter(s, false) {
					paths = append(paths, s)
					j.namesSecret(s)
				}
			}
		}
	}
	if !known && len(in) > 0 && j.tool.kind == kindFile {
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default", "its path cannot be told"
	}
	for _, p := range paths {
		j.path(p, writes)
	}
	if j.v.Effect == Deny {
		return
	}
	if j.rules(&target{paths: paths}) {
		return
	}
	if writes && j.pol.level >= levelProject && known && in.knownEdit() && j.editable(paths) {
		j.v.Effect = Allow
	}
}

// spelledOut is what a pattern of a search says about names: its segments but
// for those that start with a wildcard.
func spelledOut(pattern string) string {
	var out []string
	for seg := range strings.SplitSeq(slashes(pattern), "/") {
		if seg != "" && strings.IndexByte("*?[", seg[0]) < 0 {
			out = append(out, seg)
		}
	}
	return strings.Join(out, "/")
}

// secretFilter reports whether a search's filter, which may be several, is
// about files that hold secrets. A filter of files that people write is not,
// and one of every name is where every says so; directories that it spells out
// count all the same.
func (p *Policy) secretFilter(filter string, every bool) bool {
	for one := range strings.FieldsFuncSeq(filter, func(r rune) bool { return r <= ' ' }) {
		all := alternatives(one)
		if len(all) == 0 {
			return true
		}
		for _, alt := range all {
			segs := strings.Split(alt, "/")
			name := segs[len(segs)-1]
			segs = slices.DeleteFunc(segs[:len(segs)-1], func(s string) bool { return strings.Trim(s, "*") == "" })
			if !sourceGlob(name) && (every || strings.Trim(name, "*") != "") {
				segs = append(segs, name)
			}
			if len(segs) > 0 && p.secret(strings.Join(segs, "/"), &place{}, true) {
				return true
			}
		}
	}
	return false
}

// maxAlternatives bounds what a filter with braces is written out to.
const maxAlternatives = 64

// alternatives are what a filter with {a,b} in it stands for, also where the
// commas stand outside braces; none where that is too much.
func alternatives(filter string) []string {
	out, todo := []string(nil), []string{filter}
	for len(todo) > 0 {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		end := strings.IndexByte(one, '}')
		open := strings.LastIndexByte(one[:max(end, 0)], '{')
		switch {
		case len(out)+len(todo) > maxAlternatives:
			return nil
		case open >= 0:
			for inner := range strings.SplitSeq(one[open+1:end], ",") {
				todo = append(todo, one[:open]+inner+one[end+1:])
			}
		default:
			out = append(out, strings.Split(strings.NewReplacer("{", "", "}", "").Replace(one), ",")...)
		}
	}
	return out
}

func (j *judge) namesSecret(p string) {
	j.v.Effect, j.v.Rule, j.v.Risk, j.v.Why = Ask, "default secrets", schemas.RiskHigh, "names a secret or settings, "+p
	j.reason("touches a secret or settings")
}

// path notes what stands against a path: nod's own files and secrets.
func (j *judge) path(p string, writes bool) {
	switch {
	case visible(p) != "":
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default secrets", "its path "+visible(p)
	case writes && j.ownPath(p):
		j.v = Verdict{Effect: Deny, Rule: "default nod", Risk: schemas.RiskHigh, Reasons: []string{"changes nod itself"}, Why: "agents may not write nod's own files"}
		return
	case j.pol.secret(p, j.place, false):
		j.namesSecret(p)
	case j.tool.name == "Grep" && j.place.aboveHome(p):
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default secrets", "searches a home directory"
	}
	if !j.place.inProject(p) && (j.place.project != "" || isAbs(slashes(p))) {
		j.reason("outside the project")
	}
}

func (j *judge) reason(r string) {
	if !slices.Contains(j.v.Reasons, r) {
		j.v.Reasons = append(j.v.Reasons, r)
	}
}

// fixedNames are files of a project that say what may run, or make a directory
// a repository: git reads HEAD, config and hooks wherever it finds them.
var fixedNames = compileNames([]string{
	".git", "head", ".gitmodules", ".gitattributes", ".claude", ".codex", ".cursor", ".gemini", ".qwen", ".copilot", ".opencode", ".augment", ".aider*",
	".github/hooks", ".vscode", ".idea", ".devcontainer", ".husky", ".githooks", ".envrc", ".direnv", ".pre-commit-config.yaml", "lefthook.yml",
	".mise.toml", "mise.toml", ".tool-versions",
})

// editable reports whether every path is one of the project's own files.
func (j *judge) editable(paths []string) bool {
	for _, p := range paths {
		if p == "" || isGlob(p) || !j.place.inProject(p) || fixedNames.has(p, true) {
			return false
		}
		for _, full := range j.place.resolve(p) {
			if rel := strings.TrimPrefix(full, j.place.project); rel == "" || fixedNames.has(rel, true) {
				return false
			}
		}
	}
	return len(paths) > 0
}
