package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ErrOtherTool says that permissions are not about this tool: the rules decide.
var ErrOtherTool = errors.New("permissions are not about this tool")

// webTools need the network, besides those that rules know as well.
var webTools = []string{
	"web_search", "anthropic_search", "openai_search", "gemini_search", "perplexity_search", "exa_search",
	"anthropic_fetch", "firecrawl_fetch", "web_fetch",
}

// DefaultNeeds is the access that each tool needs which permissions are about:
// the tools that read, search and write files, and those that use the web. It
// is the caller's own, to add to.
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

// ToolNeeds are the permissions that a tool's call needs, one or more, their
// links not resolved; details are its input, with the host's cwd. A tool that is
// not in needs is ErrOtherTool. Every other error says why it cannot be told
// what the call needs, and then a person must be asked.
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
		if err := in.openWeb(); err != nil {
			return nil, err
		}
		return []Permission{{Access: AccessNetwork}}, nil
	}
	paths, err := in.needed(canonical(name), access)
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

// openWeb refuses an address that is a file's.
func (in input) openWeb() error {
	raw, ok := in["url"]
	if !ok {
		return nil
	}
	s, _ := unquote(raw)
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("its address is none of the web")
	}
	return nil
}

// readKeys are the fields of reading and searching tools that name no file. A
// field that is not known may name one.
var readKeys = map[string]bool{
	"cwd": true, "file_path": true, "filePath": true, "path": true, "notebook_path": true, "absolute_path": true, "dir_path": true,
	"offset": true, "limit": true, "pages": true, "view_range": true, "start_line": true, "end_line": true, "pattern": true, "query": true,
	"glob": true, "include": true, "type": true, "output_mode": true, "-A": true, "-B": true, "-C": true, "-i": true, "-n": true, "-o": true,
	"context": true, "head_limit": true, "multiline": true, "case_sensitive": true, "ignore": true, "depth": true, "description": true, "explanation": true,
}

// needed are the paths that a file tool's call is about, as it names them.
func (in input) needed(t tool, access Access) ([]string, error) {
	known := func(k string) bool { return readKeys[k] || access == AccessWrite && editKeys[k] }
	for k := range in {
		if !known(k) {
			return nil, fmt.Errorf("its input has a field that nod does not know, %q", k)
		}
	}
	paths, ok := in.filePaths(t)
	if t.kind != kindSearch {
		if !ok {
			return nil, errors.New("its path cannot be told")
		}
		return paths, nil
	}
	if !ok && len(paths) == 0 && !in.hasAny("file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path") {
		paths = []string{"."}
	} else if !ok {
		return nil, errors.New("its path cannot be told")
	}
	if t.name != "Glob" {
		return paths, nil
	}
	pattern, ok := in.text("pattern")
	if !ok && in["pattern"] != nil {
		return nil, errors.New("its pattern cannot be told")
	}
	return globPaths(paths, pattern)
}

func (in input) hasAny(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return in[k] != nil })
}

// globPaths are the directories that a search for pattern begins in: dirs, or
// where the pattern leads out of them. (A wildcard may yet tell the names, not
// what is in them, of files that a link in there leads to.)
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
		dirs[i] += "/" + fixed // as it is written: what .. means depends on links
	}
	return dirs, nil
}

// absolute is p from where the call is made. It keeps "..", which a Resolver
// understands.
func (in input) absolute(p string) (string, error) {
	switch {
	case p == "" || strings.HasPrefix(p, "~") || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("its path %q cannot be told", p)
	case path.IsAbs(p):
		return p, nil
	}
	cwd, _ := in.text("cwd")
	if !path.IsAbs(cwd) {
		return "", errors.New("its path is relative, and where the call is made is not said")
	}
	return cwd + "/" + p, nil
}
