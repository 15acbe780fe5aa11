package policy

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// gitProgramKeys matches the keys in a git configuration that name a program which a reading git command may
// start, and the sections that may contain such keys. It misses no such key, because git has no escapes for
// the letters of a key.
var gitProgramKeys = lazyregexp.New(`(?im)(?:^|[\]\s])(?:(fsmonitor|hookspath|pager|external|textconv|command|showsignature|diffmerges)\s*(?:[=#;]|$))|\[(pager|include)`)

// gitProgramNames maps each key that gitProgramKeys finds to a name for people.
var gitProgramNames = map[string]string{
	"fsmonitor": "core.fsmonitor", "hookspath": "core.hooksPath", "pager": "the pager", "external": "diff.external", "textconv": "a textconv", "command": "a diff command",
	"showsignature": "log.showSignature", "diffmerges": "log.diffMerges", "include": "included settings",
}

// GitPrograms returns the settings and hooks with which a reading git command may run a program, such as
// "diff.external of /app/.git/config". It looks in the repositories of the call's project and in the user's
// own configuration. A configuration file that it cannot read is part of the result. It does not see
// variables of the call's shell, such as GIT_EXTERNAL_DIFF.
func (ThisDisk) GitPrograms(c Call) []string {
	files := sharedGitConfigs(c.Home)
	var found []string
	for _, top := range c.Tops {
		admin, common := gitStore(top)
		files = append(files, common+"/config", admin+"/config.worktree")
		if hook := common + "/hooks/post-index-change"; exists(hook) {
			found = append(found, "the hook "+hook)
		}
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		text, err := readGitFile(file)
		switch {
		case isMissing(err):
		case err != nil:
			found = append(found, file+", which cannot be read")
		default:
			for _, key := range gitProgramKeys.FindAllStringSubmatch(string(text), -1) {
				if name := gitProgramNames[strings.ToLower(key[1]+key[2])] + " of " + file; !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
	}
	return found
}

// sharedGitConfigs returns the configuration files that git reads in every repository: the machine's file,
// and the files in the user's home directory.
func sharedGitConfigs(home string) []string {
	if home == "" {
		return []string{"/etc/gitconfig"}
	}
	return []string{"/etc/gitconfig", home + "/.gitconfig", home + "/.config/git/config"}
}

// gitStore returns the two directories with git's files for a work tree. The directory admin belongs to this
// work tree alone. All work trees of the repository share the directory common.
func gitStore(top string) (admin, common string) {
	admin = top + "/.git"
	if own := gitDir(top); own != "" {
		admin = own
	} else if info, err := os.Stat(admin); err != nil || !info.IsDir() {
		admin = top // a bare repository
	}
	common = admin
	if text, err := readGitFile(admin + "/commondir"); err == nil {
		if common = strings.TrimRight(string(text), "\r\n"); !path.IsAbs(common) {
			common = path.Join(admin, common)
		}
	}
	return admin, common
}
