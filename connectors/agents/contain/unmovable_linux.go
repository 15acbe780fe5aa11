package contain

import (
	"path/filepath"
	"slices"
)

// unmovable returns the directories of a tree that a command must not rename or move, parents before
// children. A renamed directory could show a later command a secret, for two reasons:
//
//   - The list of secrets contains paths such as .docker/config.json. If the directory .docker has another name,
//     the path of the file is not on the list.
//   - A link with a secret name, such as .env, makes the file to which it leads secret. If the link or the file
//     moves, the link no longer leads to the file.
func (t *tree) unmovable(secretName func(full string) bool) []string {
	var dirs []string
	for _, f := range t.found {
		if f.kind != secret {
			continue
		}
		for _, dir := range t.above(f.path) {
			if f.leads != "" || f.target == "" && !secretName("/elsewhere/"+f.path[len(dir)+1:]) {
				dirs = append(dirs, dir)
			}
		}
		if f.leads != "" {
			dirs = append(dirs, t.above(f.leads)...)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// above returns the directories that contain the path p, up to but without the top of the tree.
func (t *tree) above(p string) (dirs []string) {
	for dir := filepath.Dir(p); dir != t.top && within(dir, t.top); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}
