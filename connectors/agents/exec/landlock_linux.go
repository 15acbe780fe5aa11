package exec

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/readable"
	"github.com/nodbus/nod/schemas"
)

// Each constant is the first version of Landlock's ABI with that restriction.
const (
	abiRefer    = 2 // restricts moves of files between directories
	abiTruncate = 3
	abiTCP      = 4
	abiUnix     = 9 // restricts connections to Unix sockets in the file system
	abiUDP      = 10
)

// abi returns the version of the kernel's Landlock ABI, or 0 if the kernel has no Landlock.
func abi() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// unenforced describes the kinds of access that scope forbids but this kernel cannot prevent.
func unenforced(scope schemas.SessionPermissions) []string {
	return enforcementGaps(abi(), canFilter(), scope.Network)
}

func enforcementGaps(abi int, filter, network bool) []string {
	var open []string
	switch {
	case abi == 0:
		open = append(open, "reading and writing other files (its kernel has no Landlock)")
	case abi < abiTruncate:
		open = append(open, "truncating other files")
	}
	if filter {
		return open
	}
	open = append(open, "typing into the terminal that it was started at")
	if abi < abiUnix {
		open = append(open, "using other programs' Unix sockets")
	}
	switch {
	case network:
	case abi < abiTCP:
		open = append(open, "using the network")
	case abi < abiUDP:
		open = append(open, "using UDP and Multipath TCP")
	default:
		open = append(open, "using Multipath TCP")
	}
	return open
}

// confine restricts this process to the permissions in scope, as far as the kernel can. The caller must
// have locked its goroutine to the thread.
func confine(scope schemas.SessionPermissions, stderr io.Writer) error {
	version := abi()
	// The command must not inherit other open files, because Landlock does not restrict a file that is
	// open already.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("close other files: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if version > 0 {
		rules, err := rules(scope, version, stderr)
		if err != nil {
			return err
		}
		config := landlock.V11.BestEffort()
		if scope.Network {
			config.HandledAccessNet = 0
		}
		if err := config.Restrict(rules...); err != nil {
			return err
		}
	}
	return filterCalls(version >= abiUnix, scope.Network)
}

func rules(scope schemas.SessionPermissions, version int, stderr io.Writer) ([]landlock.Rule, error) {
	var all []landlock.Rule
	add := func(p string, flags uint64, rule func(at string, dir bool) landlock.FSRule) error {
		at, dir, err := pin(p, flags)
		if err == nil {
			all = append(all, rule(at, dir))
		}
		return err
	}
	read := func(at string, dir bool) landlock.FSRule {
		if dir {
			return landlock.RODirs(at)
		}
		return landlock.ROFiles(at)
	}
	write := func(at string, dir bool) landlock.FSRule {
		switch {
		case !dir:
			return landlock.RWFiles(at).WithIoctlDev()
		case version < abiRefer: // on an older kernel, the option WithRefer would turn off all restrictions
			return landlock.RWDirs(at).WithIoctlDev()
		}
		return landlock.RWDirs(at).WithRefer().WithIoctlDev().WithResolveUnix()
	}
	for _, p := range readable.System() {
		_ = add(p, 0, read) // skip a path that is missing or unreadable
	}
	for _, p := range SystemDevices() {
		_ = add(p, 0, write)
	}
	if scope.WorkingDir != "" {
		if err := add(scope.WorkingDir, unix.RESOLVE_NO_SYMLINKS, write); err != nil {
			return nil, fmt.Errorf("working directory %w", err)
		}
	}
	dirs := slices.Concat(scope.ReadDirs, scope.WriteDirs)
	slices.Sort(dirs)
	for _, p := range slices.Compact(dirs) {
		rule := read
		if slices.Contains(scope.WriteDirs, p) {
			rule = write
		}
		err := add(p, unix.RESOLVE_NO_SYMLINKS, rule)
		if errors.Is(err, unix.ENOENT) {
			fmt.Fprintf(stderr, "nod: warning: %q does not exist, so the command cannot use it: create it first\n", p)
		} else if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pin opens the path p. It returns another path that always leads to the opened file, even if somebody
// renames or replaces p, and reports whether the file is a directory. With RESOLVE_NO_SYMLINKS, pin
// fails if p contains a symbolic link. nod saw no links in the permitted paths when it checked them, so
// a link may be an attempt to escape.
func pin(p string, resolve uint64) (at string, dir bool, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if errors.Is(err, unix.ELOOP) {
		return "", false, fmt.Errorf("%q has become a symbolic link, or lies below one: set the path again", p)
	}
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", p, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "", false, fmt.Errorf("%q: %w", p, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), stat.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

func replaceProcess(program string, args, env []string) error { return unix.Exec(program, args, env) }
