package agents

import (
	"os"
	"path/filepath"
)

// ProjectOf returns the project of a call that runs in dir, for hosts that do not name the project. The
// project is the outermost git repository that contains dir, or dir itself if there is none. An inner
// repository is not the project, because an agent can change its directory, and a directory of the
// project may contain a stranger's repository. The home directory, the directories above it, and
// directories that every user may write are never a project.
func ProjectOf(dir string) string {
	if !filepath.IsAbs(dir) {
		return dir
	}
	home, _ := os.UserHomeDir() // if the home directory is unknown, the project may be the home directory
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
