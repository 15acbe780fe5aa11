package policy

import (
	"path"
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// maxSearches is the largest number of searched paths that are walked one by one.
const maxSearches = 8

// Searches returns the full, clean paths at which Check looks for files with secrets that a call
// would show: the directories and files that the call's searches read. walk lists the paths in
// which to find these files: as much of the searched paths as lies in the directories of the
// call. If the call searches many paths, walk lists these directories instead, and paths is nil.
func (p *Policy) Searches(c Call) (paths, walk []string) {
	dirs := p.Dirs(c)
	paths = []string{}
	c.Exposed, c.Unsearched, c.Searched, c.looked = nil, nil, nil, &paths
	p.Check(c)
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) > maxSearches {
		return nil, dirs
	}
	for _, at := range paths {
		for _, dir := range dirs {
			switch dir = path.Clean(dir); {
			case pathname.Within(at, dir):
				walk = append(walk, at)
			case pathname.Within(dir, at):
				walk = append(walk, dir)
			}
		}
	}
	return paths, walk
}
