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
				} else if p := spelledOut(s); p != "" && j.pol.secret(p, j.place, true) || k != "pattern" && j.secretGlob(s) {
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

// secretGlob reports whether a search's filter is about files that hold
// secrets, one {a,b} in it written out.
func (j *judge) secretGlob(filter string) bool {
	last := filter[strings.LastIndexByte(filter, '/')+1:]
	before, rest, group := strings.Cut(last, "{")
	inside, after, closed := strings.Cut(rest, "}")
	if !group || !closed {
		inside, before, after = last, "", ""
	}
	for one := range strings.SplitSeq(inside, ",") {
		one = before + one + after
		if strings.Trim(one, "*") != "" && !sourceGlob(one) && j.pol.secret(one, j.place, true) {
			return true
		}
	}
	return false
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
