package contain

import (
	"path/filepath"
	"slices"
)

// unmovable returns the directories of a tree that a command must not rename or move, with parents
// before their children. If the command could rename them, a later command would see a secret:
//
//   - A name on the list of secrets may have several segments, such as .docker/config.json. If the command
//     renames the directory .docker, the name of the file in it is not on the list.
//   - A link with a secret name, such as .env, makes the file to which it leads secret. If the command moves
//     the link or the file, the link leads nowhere.
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

// above returns the directories between the top of the tree and a path in it.
func (t *tree) above(p string) (dirs []string) {
	for dir := filepath.Dir(p); dir != t.top && within(dir, t.top); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}
