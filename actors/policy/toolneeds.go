package policy

import (
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// ErrOtherTool means that permissions do not apply to this tool, so only rules decide about its calls.
var ErrOtherTool = errors.New("permissions are not about this tool")

// webTools are web tools that package tools does not have.
var webTools = []string{
	"web_search", "anthropic_search", "openai_search", "gemini_search", "perplexity_search", "exa_search",
	"anthropic_fetch", "firecrawl_fetch", "web_fetch",
}

// DefaultNeeds returns the kind of access that each tool needs, by the tool's name. It has only tools to
// which permissions apply: those that read, search or write files or use the web. The caller may add tools.
func DefaultNeeds() map[string]Access {
	needs := make(map[string]Access)
	for name, t := range tools.All() {
		switch t.Kind {
		case tools.File, tools.Search:
			needs[name] = AccessRead
		case tools.Edit:
			needs[name] = AccessWrite
		case tools.Web:
			needs[name] = AccessNetwork
		}
	}
	for _, name := range webTools {
		needs[name] = AccessNetwork
	}
	return needs
}

// ToolNeeds returns the permissions that a tool's call needs, at least one. It does not resolve the symbolic
// links in their paths. The map needs has the kind of access by the tool's name. details is the call's input,
// to which the host has added cwd. If the map does not have the tool, the error is ErrOtherTool. After any
// other error the needs are unknown, and a person must be asked.
func ToolNeeds(needs map[string]Access, name string, details json.RawMessage) ([]Permission, error) {
	access, ok := needs[name]
	if !ok {
		return nil, ErrOtherTool
	}
	in, err := tools.ReadInput(details)
	if err != nil {
		return nil, err
	}
	if access == AccessNetwork {
		if err := in.CheckWebAddress(); err != nil {
			return nil, err
		}
		return []Permission{{Access: AccessNetwork}}, nil
	}
	t := tools.Named(name)
	if t.Kind == tools.Unknown { // only the caller's map has this tool
		if t.Kind = tools.File; access == AccessWrite {
			t.Kind = tools.Edit
		}
	}
	paths, err := in.NeededPaths(t)
	if err != nil {
		return nil, err
	}
	perms := make([]Permission, len(paths))
	for i, p := range paths {
		if perms[i].Path, err = in.Absolute(p); err != nil {
			return nil, err
		}
		perms[i].Access = access
	}
	return perms, nil
}

// Covered returns remembered rules that allow a tool on the files of the permissions perms, for Policy.With.
// The permissions must come from ToolNeeds, and the permission set must include them. Deny and ask rules
// outrank the rules.
//
// Some files, such as .git or agents' settings, decide which programs run. Covered has a rule for such a file
// only if the permission set names the file itself or its hidden directory. If a file has no rule, a writing
// tool gets no rules at all.
func Covered(name string, set *schemas.SessionPermissions, perms []Permission, resolve Resolver) []schemas.RememberedRule {
	writes := tools.Named(name).Kind == tools.Edit
	var rules []schemas.RememberedRule
	if !writes {
		rules = append(rules, schemas.RememberedRule{Tool: name})
	}
	for _, p := range perms {
		at, err := p.resolved(resolve)
		if err != nil && !writes {
			continue
		} else if err != nil {
			return nil
		}
		plain := func(dir string) bool {
			return pathname.Within(at.Path, dir) && len(pathname.Unusual(at.Path[len(dir):])) == 0
		}
		granted := plain(set.WorkingDir) || slices.ContainsFunc(set.WriteDirs, plain) || !writes && slices.ContainsFunc(set.ReadDirs, plain)
		if !granted && !writes {
			continue
		} else if !granted {
			return nil
		}
		rules = append(rules, schemas.RememberedRule{Tool: name, Path: path.Clean(p.Path)})
	}
	return rules
}
