package contain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
	"github.com/nodbus/nod/connectors/agents/exec"
	"github.com/nodbus/nod/connectors/agents/readable"
)

// Each constant is the first version of Landlock's ABI with that restriction.
const (
	abiTruncate = 3
	abiIoctl    = 5
	abiScopes   = 6
	abiUnix     = 9 // restricts connections to Unix sockets in the file system
)

// Access rights of Landlock. A rule for a file may contain only the rights in onFile.
const (
	toRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	toWrite = 1<<15 - 1 // all rights up to version 3 of the ABI
	onFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockABI returns the version of the kernel's Landlock ABI, or 0 if the kernel has no Landlock.
func landlockABI() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// abstractSocketScope returns the Landlock scope that forbids connections to abstract Unix
// sockets outside the container. It returns 0 if the kernel does not have this scope.
func abstractSocketScope() uint64 {
	if landlockABI() < abiScopes {
		return 0
	}
	return unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
}

// landlockRules collects rules of Landlock. A rule for a directory covers everything below the
// directory, without exceptions. If there is an exception below a directory, landlockRules therefore
// makes rules for the directory's entries instead.
type landlockRules struct {
	rules  []inner.Rule
	except map[string]uint64 // the largest rights on each excepted path
	above  map[string]bool   // directories with an exception below them
}

func (l *landlockRules) exclude(p string, rights uint64) {
	if most, ok := l.except[p]; ok {
		rights &= most
	}
	l.except[p] = rights
	for dir := filepath.Dir(p); !l.above[dir] && dir != "/"; dir = filepath.Dir(dir) {
		l.above[dir] = true
	}
}

// give grants rights on p and everything below p, except for the excepted paths. It skips p if p
// does not exist.
func (l *landlockRules) give(p string, rights uint64) error {
	if most, ok := l.except[p]; ok {
		rights &= most
	}
	f, err := inspect(p, plain)
	if err != nil || f.target != "" || rights == 0 {
		return nil
	}
	if !f.dir {
		l.rules = append(l.rules, inner.Rule{Path: p, Access: rights & onFile, Dev: f.dev, Ino: f.ino})
		return nil
	}
	if !l.above[p] {
		l.rules = append(l.rules, inner.Rule{Path: p, Access: rights, Dev: f.dev, Ino: f.ino})
		return nil
	}
	l.rules = append(l.rules, inner.Rule{Path: p, Access: unix.LANDLOCK_ACCESS_FS_READ_DIR, Dev: f.dev, Ino: f.ino})
	entries, err := os.ReadDir(p)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := l.give(filepath.Join(p, e.Name()), rights); err != nil {
			return err
		}
	}
	return nil
}

// landlockPlan returns the plan for a command without namespaces. Landlock restricts the command's files.
// The command has no network. A private directory replaces /tmp and the caches.
func (v *view) landlockPlan() (*inner.Plan, error) {
	s, abi := v.spec, landlockABI()
	if abi < abiTruncate {
		return nil, fmt.Errorf("the kernel allows no namespaces, and has version %d of Landlock (3 is needed)", abi)
	}
	if len(s.Network) > 0 {
		return nil, fmt.Errorf("without namespaces the kernel cannot let a command reach single hosts")
	}
	l, env, err := v.landlockRules()
	if err != nil {
		return nil, err
	}
	p := v.finish(&inner.Plan{Rules: l.rules, Handled: toWrite, ShareNet: s.AnyNetwork})
	p.Env = cleanEnvironment(p.Env, env)
	if abi >= abiIoctl {
		p.Handled |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	for i := range p.Rules {
		p.Rules[i].Access &= p.Handled
	}
	if abi >= abiScopes {
		p.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	var families []uint32
	if s.AnyNetwork {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	if abi >= abiUnix {
		families = append(families, unix.AF_UNIX)
		p.Handled |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	p.Filter = filter(families...)
	return p, nil
}

// landlockRules returns Landlock's rules for files, and the environment variables that make
// programs use the command's private directory.
func (v *view) landlockRules() (*landlockRules, []string, error) {
	l := &landlockRules{except: map[string]uint64{}, above: map[string]bool{}}
	for _, t := range v.trees {
		for _, f := range t.found {
			v.exclude(l, f)
		}
	}
	for _, f := range v.extra {
		v.exclude(l, f)
	}
	temp, env, err := v.privateDir()
	if err != nil {
		return nil, nil, err
	}
	err = l.give(temp, toWrite)
	for _, p := range v.readable() {
		if err == nil {
			err = l.give(p, toRead)
		}
	}
	for _, t := range v.trees {
		rights := uint64(toWrite)
		if v.readOnly(t.top) {
			rights = toRead
		}
		if err == nil {
			err = l.give(t.top, rights)
		}
	}
	for _, p := range slices.Concat(v.spec.Read, v.spec.Write) { // the loop above has covered the directories, so only files are left
		rights := uint64(toRead)
		if slices.Contains(v.spec.Write, p) {
			rights = toWrite
		}
		if info, statErr := os.Lstat(p); err == nil && statErr == nil && info.Mode().IsRegular() {
			err = l.give(p, rights)
		}
	}
	for _, device := range exec.SystemDevices() {
		if err == nil {
			err = l.give(device, toRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
		}
	}
	return l, env, err
}

func (v *view) exclude(l *landlockRules, f finding) {
	switch {
	case f.target != "":
	case f.kind == secret || f.kind == socket:
		l.exclude(f.path, 0)
	case f.kind == gitDir && f.dir:
		l.exclude(f.path, toRead)
		for _, p := range configuredPaths(filepath.Dir(f.path), f.path, variable(v.spec.Env, "HOME")) {
			l.exclude(p, toRead)
		}
		config := filepath.Join(f.path, "config")
		if data, err := os.ReadFile(config); err == nil && withoutLogins(string(data)) != string(data) {
			l.exclude(config, 0)
		}
	default:
		l.exclude(f.path, toRead)
	}
}

// readable returns the paths of the system and the toolchains. It resolves symbolic links.
func (v *view) readable() []string {
	env := v.spec.Env
	paths := slices.Concat(readable.System(), readable.ContainedSystem(), strings.Split(variable(env, "PATH"), ":"))
	for _, name := range slices.Concat(toolVariables, cacheVariables) {
		paths = append(paths, variable(env, name))
	}
	home := filepath.Clean(variable(env, "HOME"))
	if filepath.IsAbs(home) {
		for _, dir := range slices.Concat(readable.Toolchains(), readable.Caches()) {
			paths = append(paths, filepath.Join(home, dir))
		}
	}
	var all []string
	for _, p := range paths {
		real, err := realPath(p)
		if err != nil || !filepath.IsAbs(p) || real == "/" || real == "/tmp" || real == "/home" || within(home, real) ||
			within(v.spec.Project, real) || within(real, v.spec.Project) || v.spec.Secret != nil && !within(real, "/proc") && !within(real, "/dev") && v.spec.Secret(real) {
			continue
		}
		all = append(all, real)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// privateDir creates the command's private directory. It returns the environment variables that make
// programs use that directory.
func (v *view) privateDir() (string, []string, error) {
	dir := v.spec.Scratch
	if dir == "" {
		made, err := os.MkdirTemp("", "nod-contained-")
		if err != nil {
			return "", nil, err
		}
		if dir, err = realPath(made); err != nil {
			return "", nil, err
		}
		v.temporary = dir
	}
	dir = filepath.Join(dir, "tmp")
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o700); err != nil {
		return "", nil, err
	}
	config, _ := os.ReadFile(filepath.Join(variable(v.spec.Env, "HOME"), ".gitconfig"))
	settings := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(settings, []byte(withoutLogins(string(config))), 0o600); err != nil {
		return "", nil, err
	}
	return dir, []string{
		"TMPDIR=" + dir, "XDG_CACHE_HOME=" + dir + "/cache", "GOCACHE=" + dir + "/cache/go-build", "npm_config_cache=" + dir + "/cache/npm",
		"PIP_CACHE_DIR=" + dir + "/cache/pip", "GIT_CONFIG_GLOBAL=" + settings,
	}, nil
}
