package pathname

import (
	"slices"
	"strings"
)

// Tracked lists the files with secrets that the repository of a directory tracks, now or in any commit.
type Tracked struct {
	Dir      string        // the directory, without symbolic links
	Top      string        // the top of the work tree, without symbolic links
	Files    []TrackedFile // the files, in the order of their paths
	Contents []string      // the hexadecimal names of the files' contents, sorted, in lower case
	Unread   string        // the reason why commits may hold more of them, or ""

	UnreadIndex string // the reason why the index may hold more of them, or ""
}

// TrackedFile is a file with secrets that a repository tracks, now or in any commit.
type TrackedFile struct {
	Path    string // relative to the top of the work tree
	Indexed bool   // the index contains the file
	Changed bool   // the file may differ from the index
}

// Named reports whether name is the hexadecimal name of one of the contents, or the beginning of
// such a name.
func (t *Tracked) Named(name string) bool {
	i, _ := slices.BinarySearch(t.Contents, name)
	return i < len(t.Contents) && strings.HasPrefix(t.Contents[i], name)
}

// TrackedAt returns the secrets that the repository of a directory tracks. If nod knows nothing
// about the repositories of the call's machine, known is false.
func (loc *Location) TrackedAt(dir string) (t Tracked, known bool) {
	if loc.LookedIn != nil && !slices.Contains(*loc.LookedIn, dir) {
		*loc.LookedIn = append(*loc.LookedIn, dir)
	}
	if loc.Tracked == nil {
		return t, false
	}
	t, found := loc.Tracked[dir]
	if !found {
		t.Unread = "nod has not looked into its repository"
		t.UnreadIndex = t.Unread
	}
	return t, true
}
