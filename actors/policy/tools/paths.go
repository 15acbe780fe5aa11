package tools

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// CheckWebAddress returns an error if the input has a url that is not a web address.
func (in Input) CheckWebAddress() error {
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

// NeededPaths returns the paths of a file tool's call, as the call writes them. The error means
// that the paths are unknown.
func (in Input) NeededPaths(t Tool) ([]string, error) {
	if k := in.UnknownField(t.Kind); k != "" {
		return nil, fmt.Errorf("its input has a field that nod does not know, %q", k)
	}
	paths, ok := in.FilePaths(t)
	if t.Kind != Search {
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
	if t.Name != "Glob" {
		return paths, nil
	}
	pattern, ok := in.Text("pattern")
	if !ok && in["pattern"] != nil {
		return nil, errors.New("its pattern cannot be read")
	}
	return globPaths(paths, pattern)
}

func (in Input) hasAny(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return in[k] != nil })
}

// globPaths returns the directories in which a search for a pattern begins. It joins each of dirs
// with the part of the pattern before the first wildcard. If this part is absolute, the result is
// dirs and this part. Below such a directory, a wildcard may follow a symbolic link. The search may
// then show names of files elsewhere, but not their content.
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
		dirs[i] += "/" + fixed // fixed is not cleaned, because the meaning of ".." depends on symbolic links
	}
	return dirs, nil
}

// Absolute joins p to the call's working directory. It keeps "..", because its meaning depends on
// symbolic links. The error means that the result is unknown.
func (in Input) Absolute(p string) (string, error) {
	switch {
	case p == "" || strings.HasPrefix(p, "~") || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("its path %q is not known", p)
	case path.IsAbs(p):
		return p, nil
	}
	cwd, _ := in.Text("cwd")
	if !path.IsAbs(cwd) {
		return "", errors.New("its path is relative, and its directory is not known")
	}
	return cwd + "/" + p, nil
}
