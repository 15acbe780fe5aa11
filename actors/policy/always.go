package policy

import (
	"slices"
	"strings"
)

// Always is a remembered "yes" with its exact reach: a parsed command, whole
// or as a prefix of whole words, a path, or a tool, in one project.
type Always struct {
	Tool    string   `json:"tool"`
	Argv    []string `json:"argv,omitempty"`
	Prefix  bool     `json:"prefix,omitempty"` // more words may follow
	Path    string   `json:"path,omitempty"`   // one file, or a directory with / at its end
	Project string   `json:"project,omitempty"`
	// Dirs are where a command may stand that was shown whole: elsewhere the same
	// words are about other files. A runner's may stand anywhere in the project.
	Dirs []string `json:"dirs,omitempty"`
}

// String is the reach as a person is shown it.
func (a *Always) String() string {
	var b strings.Builder
	b.WriteString(a.Tool)
	switch {
	case len(a.Argv) > 0:
		b.WriteString("(" + quoteArgv(a.Argv))
		if a.Prefix {
			b.WriteString(":*")
		}
		b.WriteString(")")
	case a.Path != "":
		b.WriteString("(" + a.Path + ")")
	}
	if a.Project != "" {
		b.WriteString(" in " + a.Project)
	}
	if len(a.Dirs) > 0 && !slices.Equal(a.Dirs, []string{a.Project}) {
		b.WriteString(" at " + strings.Join(a.Dirs, " or "))
	}
	return b.String()
}

// With is p with remembered answers. They allow what asks and nothing else:
// rules that deny or ask, secrets and nod's own commands stand above them.
func (p *Policy) With(grants ...Always) *Policy {
	out := *p
	out.grants = append(p.grants[:len(p.grants):len(p.grants)], grants...)
	return &out
}

// inScope reports whether the call happens in the grant's project.
func (a *Always) inScope(pl *place) bool {
	if a.Project == "" {
		return true
	}
	project := cleanAbs(a.Project)
	if project == "" || len(pl.dirs) == 0 {
		return false
	}
	return !slices.ContainsFunc(pl.dirs, func(d string) bool { return !within(d, project) })
}

// coversArgv reports whether the grant holds exactly this command.
func (a *Always) coversArgv(j *judge, argv []string) bool {
	if canonical(a.Tool).name != j.tool.name || len(a.Argv) == 0 || !a.inScope(&j.line.place) {
		return false
	}
	if len(a.Dirs) > 0 && slices.ContainsFunc(j.line.dirs, func(d string) bool { return !slices.Contains(a.Dirs, d) }) {
		return false
	}
	if a.Prefix && len(argv) > len(a.Argv) {
		return slices.Equal(a.Argv, argv[:len(a.Argv)]) && a.further(&j.line.place, argv[len(a.Argv):])
	}
	return slices.Equal(a.Argv, argv)
}

// coversTool reports whether the grant holds a call that is no command.
func (a *Always) coversTool(j *judge, t *target) bool {
	// What of the web asks does so for its address, which no grant holds.
	if canonical(a.Tool).name != j.tool.name || len(a.Argv) > 0 || j.tool.kind == kindShell || j.tool.kind == kindWeb || !a.inScope(j.place) {
		return false
	}
	if a.Path == "" {
		return j.tool.kind != kindEdit
	}
	for _, p := range t.paths {
		for _, full := range j.place.resolve(p) {
			if dir, ok := strings.CutSuffix(a.Path, "/"); ok && (!within(full, dir) || len(unusual(full[len(dir):])) > 0) || !ok && full != a.Path {
				return false
			}
		}
		if len(j.place.resolve(p)) == 0 {
			return false
		}
	}
	return len(t.paths) > 0
}

// quoteArgv writes words so that a shell reads them back.
func quoteArgv(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		if out[i] = a; !plain(a) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
