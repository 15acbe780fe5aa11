package policy

import (
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// Follow follows the symbolic links in the paths that Looks has returned for a call. In the result, which is
// for Seen.Links, a path that leads elsewhere has its true paths, and a pattern has the matching files on the
// list of secrets. If nod cannot follow a path, or if a pattern matches too many paths, the value is a place
// outside every project, so that nod asks.
func (ThisDisk) Follow(p *Policy, c Call, paths []string) map[string][]string {
	f := linkFollower{listed: p.shell.Secrets.Listed, listing: newListing(maxWalked)}
	for _, dir := range append([]string{c.Project, c.Cwd, c.Home}, c.Tops...) {
		f.addRoot(pathname.Clean(dir))
	}
	out := map[string][]string{}
	for _, at := range paths {
		if !path.IsAbs(at) {
			continue // a Windows path
		}
		if to := f.follow(at); len(to) > 0 {
			out[at] = to
		}
	}
	return out
}

// linkFollower follows the links in the paths of one call.
type linkFollower struct {
	listing
	listed func(file string) bool // reports whether a file is on the list of secrets
	roots  [][2]string            // pairs of a directory as the call writes it and the directory's true path; the longest true path is first
}

// addRoot notes the directory dir if dir is, or is below, a symbolic link. A path below dir then counts as a
// path without links unless it contains a further link.
func (f *linkFollower) addRoot(dir string) {
	if !path.IsAbs(dir) || slices.ContainsFunc(f.roots, func(r [2]string) bool { return r[0] == dir }) {
		return
	}
	if real, err := OnDisk(dir); err == nil && real != dir {
		f.roots = append(f.roots, [2]string{dir, real})
		slices.SortFunc(f.roots, func(a, b [2]string) int { return len(b[1]) - len(a[1]) })
	}
}

// follow returns the paths, other than p itself, to which p leads through links.
func (f *linkFollower) follow(p string) (places []string) {
	all := []match{{p, true}}
	if strings.ContainsAny(p, wildcards) {
		matches, whole := f.expand(p)
		if !whole {
			return []string{pathname.Unfollowed}
		}
		all = append(all, matches...)
	}
	for _, one := range all {
		if !one.linked {
			if f.listed(one.path) { // the pattern, such as *.ts, does not show by itself that it matches a secret, such as credentials.ts
				places = append(places, one.path)
			}
			continue
		}
		if first, _, below := strings.Cut(strings.TrimLeft(one.path, "/"), "/"); below {
			f.addRoot("/" + first) // a link at the top of the file system, such as /tmp on macOS, does not count, because only root can make it
		}
		at := path.Clean(one.path)
		switch real, err := OnDisk(one.path); {
		case isMissing(err), errors.Is(err, syscall.ENAMETOOLONG):
		case err != nil:
			return []string{pathname.Unfollowed}
		case real != at && f.spelled(real) != at && !slices.Contains(places, f.spelled(real)):
			places = append(places, f.spelled(real))
		}
	}
	return places
}

// spelled returns a true path in the form in which the call would write it.
func (f *linkFollower) spelled(real string) string {
	for _, r := range f.roots {
		if pathname.Within(real, r[1]) {
			return path.Join(r[0], real[len(r[1]):])
		}
	}
	return real
}
