package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Resolver says where an absolute path leads: the same place without symbolic
// links, "." or "..". An error means that this cannot be told.
type Resolver func(path string) (string, error)

// linksMax is how many symbolic links a path may go through, the kernel's own
// limit.
const linksMax = 40

// OnDisk is the Resolver of this machine and the only thing in this package
// that looks at files. It follows links as the kernel does that opens or
// creates p, so a link that leads nowhere stands for its target, and what is
// not there yet for itself in the directory that is. It is right about this
// process's own file system alone, and only for as long as nobody moves things.
func OnDisk(p string) (string, error) {
	if !path.IsAbs(p) {
		return "", fmt.Errorf("find where %q leads: it is not absolute", p)
	}
	at, rest, links, missing := "/", p, 0, false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := path.Join(at, name)
		if missing && name == ".." {
			return "", fmt.Errorf("find where %q leads: %s is not there to go back from", p, at)
		}
		if missing || next == at || name == ".." {
			at = next
			continue
		}
		target, err := readLink(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at, missing = next, true
		case err != nil:
			return "", fmt.Errorf("find where %q leads: %w", p, err)
		case target == "":
			at = next
		case links == linksMax:
			return "", fmt.Errorf("find where %q leads: it goes through more than %d symbolic links", p, linksMax)
		default:
			links++
			rest = target + "/" + rest
			if path.IsAbs(target) {
				at = "/"
			}
		}
	}
	return at, nil
}

// readLink is what the symbolic link p says; "" where p is none.
func readLink(p string) (string, error) {
	info, err := os.Lstat(p)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	if within(p, "/proc") {
		return "", fmt.Errorf("%s is another file for each process", p)
	}
	return os.Readlink(p)
}
