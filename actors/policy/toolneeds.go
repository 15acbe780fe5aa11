package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ErrOtherTool means that permissions do not govern this tool: the rules decide.
var ErrOtherTool = errors.New("permissions are not about this tool")

// webTools need the network, besides the web tools that rules know.
var webTools = []string{
	"web_search", "anthropic_search", "openai_search", "gemini_search", "perplexity_search", "exa_search",
	"anthropic_fetch", "firecrawl_fetch", "web_fetch",
}

// DefaultNeeds returns the access that each tool governed by permissions needs: tools
// that read, search and write files, and tools that use the web. The caller may add to
// the map.
func DefaultNeeds() map[string]Access {
	needs := make(map[string]Access)
	for name, t := range toolTable {
		switch t.kind {
		case kindFile, kindSearch:
			needs[name] = AccessRead
		case kindEdit:
			needs[name] = AccessWrite
		case kindWeb:
			needs[name] = AccessNetwork
		}
	}
	for _, name := range webTools {
		needs[name] = AccessNetwork
	}
	return needs
}

// ToolNeeds returns the permissions that a tool's call needs, one or more, with their
// links not resolved; details are its input, with the host's cwd. It returns
// ErrOtherTool for a tool that is not in needs. Any other error tells why the needs of
// the call are unknown, and then a person must be asked.
func ToolNeeds(needs map[string]Access, name string, details json.RawMessage) ([]Permission, error) {
	access, ok := needs[name]
	if !ok {
		return nil, ErrOtherTool
	}
	in, err := readInput(details)
	if err != nil {
		return nil, err
	}
	if access == AccessNetwork {
		if err := in.checkWebAddress(); err != nil {
			return nil, err
		}
		return []Permission{{Access: AccessNetwork}}, nil
	}
	t := canonicalTool(name)
	if t.kind == kindUnknown { // a tool that the caller added, which reads or writes files
		if t.kind = kindFile; access == AccessWrite {
			t.kind = kindEdit
		}
	}
	paths, err := in.neededPaths(t)
	if err != nil {
		return nil, err
	}
	perms := make([]Permission, len(paths))
	for i, p := range paths {
		if perms[i].Path, err = in.absolute(p); err != nil {
			return nil, err
		}
		perms[i].Access = access
	}
	return perms, nil
}

// Covered returns the remembered answers that stand for permissions: they allow this
// tool on the files of perms, as ToolNeeds returned them, if set includes perms. Deny
// and ask rules outrank them, as they do every remembered answer. Files that decide
// which programs run (.git, agents' settings) are covered only if set names them.
func Covered(name string, set *schemas.SessionPermissions, perms []Permission, resolve Resolver) []Always {
	if canonicalTool(name).kind != kindEdit {
		return []Always{{Tool: name}}
	}
	var rules []Always
	for _, p := range perms {
		at, err := p.resolved(resolve)
		if err != nil {
			return nil
		}
		plain := func(dir string) bool { return within(at.Path, dir) && len(unusual(at.Path[len(dir):])) == 0 }
		if !plain(set.WorkingDir) && !slices.ContainsFunc(set.WriteDirs, plain) {
			return nil
		}
		rules = append(rules, Always{Tool: name, Path: path.Clean(p.Path)})
	}
	return rules
}

// checkWebAddress refuses addresses of files.
func (in input) checkWebAddress() error {
	raw, ok := in["url"]
	if !ok {
		return nil
	}
	s, _ := unquote(raw)
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("its address is not a web address")
	}
	return nil
}

// neededPaths returns the paths that a file tool's call is about, as it names them.
func (in input) neededPaths(t tool) ([]string, error) {
	if k := in.unknown(t.kind); k != "" {
		return nil, fmt.Errorf("its input has a field that nod does not know, %q", k)
	}
	paths, ok := in.filePaths(t)
	if t.kind != kindSearch {
		if !ok {
			return nil, errors.New("its path is not known")
		}
		return paths, nil
	}
	if !ok && len(paths) == 0 && !in.hasAny("file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path") {
		paths = []string{"."}
	} else if !ok {
		return nil, errors.New("its path is not known")
	}
	if t.name != "Glob" {
		return paths, nil
	}
	pattern, ok := in.text("pattern")
	if !ok && in["pattern"] != nil {
		return nil, errors.New("its pattern cannot be read")
	}
	return globPaths(paths, pattern)
}

func (in input) hasAny(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return in[k] != nil })
}

// globPaths returns the directories in which a search for pattern begins: dirs, or the
// directory that the pattern leads to. (A wildcard may still reveal the names, not the
// content, of files behind a link in there.)
func globPaths(dirs []string, pattern string) ([]string, error) {
	dirs = slices.Clone(dirs)
	fixed := pattern[:strings.IndexAny(pattern+"*", `*?[{\`)]
	fixed = fixed[:strings.LastIndexByte(fixed, '/')+1]
	open := pattern[len(fixed):]
	switch {
	case strings.Contains(open, "..") || strings.ContainsAny(open, `{\`) && strings.Contains(open, "/"):
		return nil, errors.New("its pattern may lead anywhere")
	case strings.HasPrefix(fixed, "/"):
		return append(dirs, fixed), nil
	case fixed == "":
		return dirs, nil
	}
	for i := range dirs {
		dirs[i] += "/" + fixed // as written, because the meaning of .. depends on links
	}
	return dirs, nil
}

// absolute joins p to the call's working directory. It keeps "..", which a Resolver
// understands.
func (in input) absolute(p string) (string, error) {
	switch {
	case p == "" || strings.HasPrefix(p, "~") || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("its path %q is not known", p)
	case path.IsAbs(p):
		return p, nil
	}
	cwd, _ := in.text("cwd")
	if !path.IsAbs(cwd) {
		return "", errors.New("its path is relative, and its directory is not known")
	}
	return cwd + "/" + p, nil
}
