package policy

import (
	"os"
	"path"
	"slices"
	"strings"
)

// Tops returns the directories in which git uses the project's own repository: the project, the
// top of the repository that contains it, and the repository's work trees, as git worktree list
// shows them. A directory that only looks like a work tree is left out. Without a repository
// there are none. The result is nil if the project does not exist.
func (ThisDisk) Tops(project string) []string {
	if !path.IsAbs(project) || !exists(project) {
		return nil
	}
	project = path.Clean(project)
	top := project
	for !exists(top + "/.git") {
		if top == "/" {
			return []string{}
		}
		top = path.Dir(top)
	}
	tops := []string{top}
	if project != top && !exists(project+"/HEAD") {
		tops = append(tops, project)
	}
	store := top + "/.git"
	if own := gitDir(top); own != "" { // top is a work tree of a repository elsewhere
		common, err := os.ReadFile(own + "/commondir")
		if err != nil {
			return tops
		}
		if store = strings.TrimSpace(string(common)); !path.IsAbs(store) {
			store = path.Join(own, store)
		}
		if !listsTree(own, top) {
			return []string{} // the repository does not know this work tree, so a stranger may have made it
		}
		if path.Base(store) == ".git" {
			tops = append(tops, path.Dir(store))
		}
	}
	entries, _ := os.ReadDir(store + "/worktrees") // if unreadable, no further work tree is known
	for _, e := range entries {
		admin := store + "/worktrees/" + e.Name()
		file, err := os.ReadFile(admin + "/gitdir")
		tree := path.Dir(strings.TrimSpace(string(file)))
		if err == nil && path.IsAbs(tree) && sameFile(gitDir(tree), admin) && !slices.Contains(tops, tree) {
			tops = append(tops, tree)
		}
	}
	return tops
}

// gitDir returns the directory to which the file .git of a work tree points, or "".
func gitDir(tree string) string {
	text, err := os.ReadFile(tree + "/.git")
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !path.IsAbs(dir) {
		dir = path.Join(tree, dir)
	}
	return dir
}

// listsTree reports whether the work tree's directory in its repository names the work tree.
func listsTree(admin, tree string) bool {
	file, err := os.ReadFile(admin + "/gitdir")
	return err == nil && sameFile(path.Dir(strings.TrimSpace(string(file))), tree)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
