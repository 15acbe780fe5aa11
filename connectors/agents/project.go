package agents

import (
	"os"
	"path/filepath"
)

// ProjectOf returns the project of a call that runs in dir, if the host does not name the
// project: the outermost directory from dir upwards that is the top of a repository. An agent
// can change its directory, and a directory below the project may contain a repository of a
// stranger. The home directory, the directories above it, and directories in which every user
// may write do not count. Without a repository, the project is dir.
func ProjectOf(dir string) string {
	if !filepath.IsAbs(dir) {
		return dir
	}
	home, _ := os.UserHomeDir() // if unknown, no directory is excluded for being the home directory
	project := filepath.Clean(dir)
	for up := project; ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		shared := err == nil && info.Mode().Perm()&0o002 != 0
		if up == filepath.Dir(up) || up == filepath.Clean(home) || shared {
			return project
		}
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			project = up
		}
	}
}
