package policy

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// gitProgramKeys finds the keys in a git configuration that name programs which a git command that
// only reads may start, and sections that may contain such keys. It may find more keys than git
// does, never fewer, because git has no other spellings (escapes) of a key.
var gitProgramKeys = lazyregexp.New(`(?im)(?:^|[\]\s])(?:(fsmonitor|hookspath|pager|external|textconv|command|showsignature|diffmerges)\s*(?:[=#;]|$))|\[(pager|include)`)

// gitProgramNames maps the short keys that gitProgramKeys finds to the full names of the keys.
var gitProgramNames = map[string]string{
	"fsmonitor": "core.fsmonitor", "hookspath": "core.hooksPath", "pager": "the pager", "external": "diff.external", "textconv": "a textconv", "command": "a diff command",
	"showsignature": "log.showSignature", "diffmerges": "log.diffMerges", "include": "included settings",
}

// GitPrograms returns the settings and hooks by which a git command that only reads may run a
// program, in the repositories of the call's project and in the user's own configuration, such as
// "diff.external of /app/.git/config". A configuration that cannot be read counts as one of them.
// nod cannot see the variables of the call's shell, such as GIT_EXTERNAL_DIFF.
func (ThisDisk) GitPrograms(c Call) []string {
	files := []string{"/etc/gitconfig"}
	if c.Home != "" {
		files = append(files, c.Home+"/.gitconfig", c.Home+"/.config/git/config")
	}
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

// gitStore returns two directories of a work tree's git files: admin has those of the work tree
// alone, and common those that all work trees of the repository share.
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
