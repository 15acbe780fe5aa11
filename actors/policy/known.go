package policy

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
)

// Known reports whether nod knows everything that a call names. This is possible only for a shell, a tool
// that writes files, a web tool, and a tool for the agent's own notes. In a shell or file call, nod must be
// able to read every word, and no word or file may lead outside the project. A leave allows only known calls,
// because any other call may use a secret.
func (p *Policy) Known(c Call) bool {
	loc := p.locate(&c)
	in, err := tools.ReadInput(c.Input)
	if err != nil || loc.Project == "" {
		return false
	}
	switch t := tools.Named(c.ToolName); t.Kind {
	case tools.Shell:
		return p.knownLine(&c, in, loc)
	case tools.Edit:
		paths, ok := in.FilePaths(t)
		for _, path := range paths {
			all := loc.Resolve(path)
			ok = ok && path != "" && len(all) == 1 && !pathname.IsGlob(path) && loc.InTree(all[0]) && !pathname.NeverRemembered.Has(loc.Relative(all[0]), true)
		}
		return ok && len(paths) > 0
	case tools.Web:
		return t.Name != "WebFetch" || len(weburl.OfFetch(in.URL())) == 0
	case tools.Notes:
		return true
	}
	return false
}

func (p *Policy) knownLine(c *Call, in tools.Input, loc pathname.Location) bool {
	src, why := p.commandAt(c, in, &loc)
	line, _ := p.shell.Read(src, loc)
	if why != "" || line.Why != "" || line.Untracked || len(line.Parts) == 0 {
		return false
	}
	for i := range line.Parts {
		argv, ok := line.Parts[i].Argv()
		if !ok || line.Parts[i].Secret {
			return false
		}
		for _, w := range argv {
			if leadsOut(&line.Location, w) {
				return false
			}
		}
	}
	return true
}

// leadsOut reports whether a word may name a path outside the project. It splits the word at =, : and commas,
// and checks each part.
func leadsOut(loc *pathname.Location, w string) bool {
	for _, part := range strings.FieldsFunc(w, func(r rune) bool { return r == '=' || r == ':' || r == ',' }) {
		i := strings.IndexAny(part, "/~")
		if i < 0 && part != ".." {
			continue
		}
		if i > 0 && strings.HasPrefix(part, "-") {
			part = part[i:] // the part is a flag with an attached value, such as -I/usr/include
		}
		all := loc.Resolve(part)
		if len(all) == 0 {
			return true
		}
		for _, p := range all {
			if !loc.InTree(p) {
				return true
			}
		}
	}
	return false
}
