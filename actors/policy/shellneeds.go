package policy

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// ShellNeeds are the permissions without which a command line that only reads
// does not do what it says: to read where it may stand, and all that its words
// may name as paths, which is more than it reads. A tool that is no shell is
// ErrOtherTool; every other error says why it cannot be told what the line
// reads, and then a person must be asked.
func (p *Policy) ShellNeeds(c Call) ([]Permission, error) {
	if canonical(c.ToolName).kind != kindShell {
		return nil, ErrOtherTool
	}
	in, err := readInput(c.Input)
	if err != nil {
		return nil, err
	}
	src, dir, why := in.command()
	pl := p.at(&c)
	if dir != "" {
		pl.dirs = newPlace(&Call{Cwd: dir}).dirs
	}
	line, _ := p.read(src, pl)
	if why != "" || !line.harmless() || len(line.dirs) == 0 {
		return nil, errors.New("what it reads cannot be told")
	}
	var paths []string
	for _, d := range line.dirs {
		paths = append(paths, d)
		for i := range line.parts {
			for n, w := range line.parts[i].words {
				if n > 0 { // the first names the program
					paths = append(paths, pathsIn(w, d)...)
				}
			}
		}
	}
	slices.Sort(paths)
	var perms []Permission
	for _, at := range slices.Compact(paths) {
		if !path.IsAbs(at) {
			return nil, errors.New("what it reads cannot be told")
		}
		perms = append(perms, Permission{AccessRead, at})
	}
	return perms, nil
}

// pathsIn are the paths that a word may name from a directory: the word, and
// what follows = or the letters of a flag. Of a pattern it is the directory that
// it begins in. It keeps "..", which a Resolver understands.
func pathsIn(w word, dir string) []string {
	texts := []string{w.text}
	if _, value, ok := strings.Cut(w.text, "="); ok {
		texts = append(texts, value)
	}
	if i := strings.IndexAny(w.text, "/~."); strings.HasPrefix(w.text, "-") && i > 0 {
		texts = append(texts, w.text[i:])
	}
	var paths []string
	for _, t := range texts {
		if i := strings.IndexAny(t, "*?["); w.glob && i >= 0 {
			t = t[:strings.LastIndexByte(t[:i], '/')+1]
		}
		switch {
		case t == "" || strings.HasPrefix(t, "-"):
		case strings.HasPrefix(t, "~"):
			paths = append(paths, t) // which is not absolute, and so cannot be told
		case path.IsAbs(t):
			paths = append(paths, t)
		default:
			paths = append(paths, dir+"/"+t)
		}
	}
	return paths
}
