package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// IsSecretFile reports whether a path, relative or absolute, is on the list of secrets.
func (p *Policy) IsSecretFile(path string) bool { return p.shell.Secrets.Listed(path) }

// evaluateFiles checks a tool that reads, searches or writes files.
func (ev *evaluation) evaluateFiles(in tools.Input) {
	if dir, ok := in.Text("cwd"); ok {
		ev.location.Dirs = pathname.Locate(dir, "", "").Dirs
		if ev.location.Project == "" && len(ev.location.Dirs) > 0 {
			ev.location.Project = ev.location.Dirs[0]
		}
		ev.location.LeadsToSecret = ev.pol.shell.Secrets.MayLeadFrom(ev.location)
	}
	paths, known := in.FilePaths(ev.tool)
	ev.verdict = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	writes := ev.tool.Kind == tools.Edit
	if writes {
		ev.verdict = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{writesFile}}
	}
	if ev.tool.Kind == tools.Search {
		var patterned bool
		paths, patterned = ev.searchedPaths(in, paths)
		known = known || patterned
	}
	if kind, ok := in.Text("type"); ev.tool.Name == "Grep" && in["type"] != nil && (!ok || kind != "" && !secrets.SourceType(kind)) {
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, secretsRule, "searches hidden files of a type that may hold secrets"
	}
	if ev.unknownField(in); !known && len(in) > 0 && ev.tool.Kind == tools.File {
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, Default, "its path is not known"
	}
	if len(paths) == 0 && ev.tool.Kind == tools.Search {
		paths = []string{"."}
	}
	ev.noteShown(in)
	for _, p := range paths {
		does := ""
		if writes {
			does = writesFile
		}
		ev.addTarget(does, p)
		ev.checkPath(p, writes)
	}
	if ev.verdict.Effect == Deny {
		return
	}
	if writes && ev.obeyed(paths) {
		ev.verdict.Risk = schemas.RiskHigh
		ev.addReason("changes instructions for agents, editors or build servers")
	}
	if ev.applyRules(&ruleSubject{paths: paths}) {
		return
	}
	if writes && ev.pol.shell.Level >= commands.LevelProject && known && ev.editable(paths) {
		ev.verdict.Effect = Allow
	}
}

// searchedPaths returns the paths that a search reads, including those in its patterns and filters. If such a
// pattern or filter may name a secret, it sets the verdict Ask. patterned reports whether the search has a
// pattern of paths, as in Glob.
func (ev *evaluation) searchedPaths(in tools.Input, paths []string) (all []string, patterned bool) {
	for _, k := range []string{"pattern", "glob", "include", "include_pattern", "includePattern"} {
		s, ok := in.Text(k)
		if in[k] != nil && !ok {
			ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, Default, "its "+k+" cannot be read"
		}
		if ok && (k != "pattern" || ev.tool.Name == "Glob") {
			patterned = patterned || k == "pattern"
			if k == "pattern" && pathname.IsAbs(pathname.Slashes(s)) {
				s, _ = path.Split(pathname.Slashes(s[:strings.IndexAny(s+"*", "*?[")]))
				paths = append(paths, s)
			} else if p := spelledOut(s, k == "pattern"); p != "" && s[0] != '!' && ev.pol.shell.Secrets.MayBe(p, ev.location, true) || k != "pattern" && ev.pol.shell.Secrets.MayPass(s) {
				paths = append(paths, s)
				ev.askAboutSecret(s)
			}
		}
	}
	return paths, patterned
}

// noteShown notes whether a search prints lines of files, and which files its filters exclude.
func (ev *evaluation) noteShown(in tools.Input) {
	// Without an output_mode, Claude Code's Grep prints only file names. Other hosts' tools print lines.
	mode, _ := in.Text("output_mode")
	onlyNames := mode == "files_with_matches" || mode == "count" || ev.call.ToolName == "Grep" && in["output_mode"] == nil
	ev.showsLines = !onlyNames
	for _, k := range []string{"glob", "include", "include_pattern", "includePattern"} {
		s, ok := in.Text(k)
		ev.onlyGlob = ev.onlyGlob || ok && s != "" && s[0] != '!' // a filter that may include secrets already makes nod ask in most cases
	}
	ev.leavesOut = func(file string) bool {
		kind, ok := in.Text("type")
		if ok && kind != "" && !secrets.TypeMayInclude(kind, path.Base(file)) {
			return true
		}
		glob, ok := in.Text("glob", "include", "include_pattern", "includePattern")
		return ok && glob != "" && glob[0] != '!' && !secrets.FilterMayInclude(glob, path.Base(file))
	}
}

// spelledOut returns a search pattern without the path segments that begin with a wildcard. If names is true,
// the search prints only names, and spelledOut also leaves out any other segment with a wildcard that does
// not begin with a dot.
func spelledOut(pattern string, names bool) string {
	var out []string
	for seg := range strings.SplitSeq(pathname.Slashes(pattern), "/") {
		if seg != "" && strings.IndexByte("*?[", seg[0]) < 0 && !(names && seg[0] != '.' && strings.ContainsAny(seg, wildcards)) {
			out = append(out, seg)
		}
	}
	return strings.Join(out, "/")
}

func (ev *evaluation) askAboutSecret(p string) {
	ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Risk, ev.verdict.Why = Ask, secretsRule, schemas.RiskHigh, "names a secret or settings, "+p
	ev.addReason(touchesSecret)
	ev.addTarget(touchesSecret, p)
}

// checkPath applies the built-in rules about secrets and nod's own files to a path.
func (ev *evaluation) checkPath(p string, writes bool) {
	switch {
	case strings.TrimSpace(p) == "" && ev.tool.Kind != tools.Search:
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, Default, "its path is empty"
	case word.Hidden(p) != "":
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, secretsRule, "its path "+word.Hidden(p)
	case writes && ev.pol.shell.Secrets.Own(p, ev.location):
		ev.verdict = Verdict{Effect: Deny, Rule: ownRule, Risk: schemas.RiskHigh, Reasons: []string{"changes nod itself"}, Why: shell.OwnFilesDenied}
		return
	case slices.ContainsFunc(pieces(p), func(at string) bool { return ev.pol.shell.Secrets.MayBeListed(at, ev.location, false) }):
		ev.askAboutSecret(p)
	case ev.hiddenOutside(p):
		ev.verdict.Effect, ev.verdict.Risk, ev.verdict.Why = Ask, schemas.RiskHigh, "names a hidden file or folder outside the project, "+p
		ev.addReason("touches a hidden place")
		ev.addTarget("touches a hidden place", p)
	case ev.tool.Name == "Grep" && ev.pol.shell.Secrets.MayLieBelow(p, ev.location):
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, secretsRule, "searches a directory in which secrets lie"
	case ev.tool.Name == "Grep" && ev.showsLines:
		switch file, unsearched := ev.location.ExposedBelow([]pathname.Search{{Path: p}}, ev.leavesOut); {
		case unsearched && ev.onlyGlob:
		case unsearched:
			ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, secretsRule, "searches "+file+", which has too many files to know whether some hold secrets"
		case file != "":
			ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, secretsRule, "would show "+file+", which holds secrets"
		}
	}
	if !ev.location.InProject(p) && (ev.location.Project != "" || pathname.IsAbs(pathname.Slashes(p))) {
		ev.addReason(schemas.OutsideProject)
		ev.addTarget(schemas.OutsideProject, p)
	}
}

// maxTargets is the largest number of targets of a verdict. People see only the first targets.
const maxTargets = 24

// addTarget adds the path on which the call acts to the verdict's targets.
func (ev *evaluation) addTarget(does, p string) {
	if len(ev.verdict.Targets) < maxTargets && strings.TrimSpace(p) != "" {
		ev.verdict.Targets = append(ev.verdict.Targets, shell.FileTarget(ev.location, does, p))
	}
}

// touchesSecret is the reason in a verdict on a tool that names a secret.
const touchesSecret = "touches a secret or settings"

// pieces returns the path p, and the parts of p that may be paths. The parts come without the spaces around
// p, because some tools trim them; p itself keeps them, because other tools do not.
func pieces(p string) []string { return append(pathname.Pieces(strings.TrimSpace(p)), p) }

// hiddenOutside reports whether p may be a hidden file or directory outside the project. nod asks about such
// a path, unless an allow rule spells out the hidden part.
func (ev *evaluation) hiddenOutside(p string) bool {
	return slices.ContainsFunc(pieces(p), func(at string) bool { return ev.pol.shell.Secrets.HiddenOutside(at, ev.location) })
}

func (ev *evaluation) addReason(r string) {
	if !slices.Contains(ev.verdict.Reasons, r) {
		ev.verdict.Reasons = append(ev.verdict.Reasons, r)
	}
}

// editable reports whether every path is an ordinary file of the project. If the project is a home directory
// or contains one, editable returns false, because the file may then be one that every login runs.
func (ev *evaluation) editable(paths []string) bool {
	if ev.location.Project != "" && ev.location.HoldsHome(ev.location.Project) {
		return false
	}
	for _, p := range paths {
		if !ev.location.InProject(p) {
			return false
		}
		for _, full := range ev.location.Resolve(p) {
			if rel := ev.location.Relative(full); rel == "" || len(pathname.Unusual(rel)) > 0 {
				return false
			}
		}
	}
	return len(paths) > 0
}

// obeyed reports whether other programs run or obey one of the files, such as a workflow of a build
// server, a hook or an agent's settings.
func (ev *evaluation) obeyed(paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return slices.ContainsFunc(ev.location.Resolve(p), func(full string) bool {
			rel := strings.TrimPrefix(ev.location.Relative(full), "/")
			return rel != "" && ev.pol.protected.Has(rel)
		})
	})
}
