package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
	"github.com/nodbus/nod/connectors/agents/exec"
	"github.com/nodbus/nod/connectors/agents/readable"
)

// layout is the list of steps that build the file system of a command. The step for a directory
// comes before the steps for its entries.
type layout struct {
	spec    *Spec
	home    string // the command's home directory; "" if the project contains it
	scratch string // the directory, on disk or in memory, for changes to caches
	steps   []inner.Step
	made    map[string]bool // the mount points, and the directories that the steps create
	shown   []string        // paths of the host that the command sees
}

// In its own network namespace, a command can ask only the proxy for the address of a name. The
// proxy notes the name and replies with a failure.
const (
	resolverFile = "/etc/resolv.conf"
	resolver     = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
)

const harmless = inner.NoSuid | inner.NoDev

// maxCopied is the largest size, in bytes, of a file that nod copies into the command's file system.
const maxCopied = 1 << 20

func (l *layout) step(s inner.Step) { l.steps = append(l.steps, s) }

// visible reports whether the command sees the host's file at p.
func (l *layout) visible(p string) bool {
	return slices.ContainsFunc(l.shown, func(s string) bool { return within(p, s) })
}

// parents creates the missing directories above p. Visible directories of the host are not missing.
func (l *layout) parents(p string) {
	dir := filepath.Dir(p)
	if dir == "/" || l.made[dir] || l.visible(dir) {
		return
	}
	l.parents(dir)
	l.made[dir] = true
	l.step(inner.Step{Kind: inner.StepDir, Path: dir, Attr: 0o755})
}

// place creates an empty file or directory as a mount point.
func (l *layout) place(p string, dir bool) {
	l.parents(p)
	if l.made[p] || l.visible(p) {
		return
	}
	l.made[p] = true
	if dir {
		l.step(inner.Step{Kind: inner.StepDir, Path: p, Attr: 0o755})
	} else {
		l.step(inner.Step{Kind: inner.StepFile, Path: p})
	}
}

func (l *layout) memory(p, options string) {
	l.place(p, true)
	l.step(inner.Step{Kind: inner.StepTmpfs, Path: p, Data: options})
}

func (l *layout) file(p, content string) {
	l.parents(p)
	l.made[p] = true
	l.step(inner.Step{Kind: inner.StepFile, Path: p, Data: content})
}

// show makes a path of the host visible to the command at the same path. It does nothing if the
// path does not exist.
func (l *layout) show(p string, attr uint64) error {
	info, err := os.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return l.showLink(p, attr)
	}
	l.place(p, info.IsDir())
	l.shown = append(l.shown, p)
	l.step(inner.Step{Kind: inner.StepBind, Source: p, Path: p, Attr: attr})
	return nil
}

// showLink creates the symbolic link p as on the host. If the link leads to a directory, showLink
// makes that directory visible. If the link leads to a small file that is not visible, as
// /etc/resolv.conf often does, showLink instead creates a copy of the file at p.
func (l *layout) showLink(p string, attr uint64) error {
	target, err := os.Readlink(p)
	real, realErr := filepath.EvalSymlinks(p)
	if err != nil || realErr != nil || l.made[p] || l.visible(p) {
		return nil // the link leads nowhere, or the path exists already
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil
	}
	switch {
	case info.IsDir():
		if !l.visible(real) {
			if err := l.show(real, attr); err != nil {
				return err
			}
		}
	case !l.visible(real):
		content, err := os.ReadFile(real)
		if err != nil || len(content) > maxCopied {
			return nil
		}
		l.file(p, string(content))
		return nil
	}
	l.parents(p)
	l.made[p] = true
	l.step(inner.Step{Kind: inner.StepLink, Path: p, Data: target})
	return nil
}

// system makes the system's programs and settings visible, and creates the devices, /proc and /tmp.
func (l *layout) system() error {
	paths := slices.Concat(readable.System(), readable.ContainedSystem())
	slices.Sort(paths)
	usr := func(p string) int { // /usr must come first, because links in other directories lead to it
		if within(p, "/usr") || within(p, "/nix") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(paths, func(a, b string) int { return usr(a) - usr(b) })
	for _, p := range slices.Compact(paths) {
		if within(p, "/proc") || within(p, "/dev") || l.visible(p) {
			continue
		}
		if p == systemGit {
			l.git(p)
			continue
		}
		if p == resolverFile && !l.spec.AnyNetwork {
			l.file(p, resolver)
			continue
		}
		if err := l.show(p, harmless|inner.ReadOnly); err != nil {
			return err
		}
	}
	l.memory("/dev", "mode=0755,size=64k")
	for _, device := range append(exec.SystemDevices(), "/dev/random", "/dev/urandom") {
		l.place(device, false)
		l.step(inner.Step{Kind: inner.StepBind, Source: device, Path: device, Attr: inner.NoSuid})
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		l.step(inner.Step{Kind: inner.StepLink, Path: "/dev/" + name, Data: target})
	}
	l.place("/dev/pts", true)
	l.step(inner.Step{Kind: inner.StepPts, Path: "/dev/pts"})
	l.memory("/dev/shm", "mode=1777")
	l.place("/proc", true)
	l.step(inner.Step{Kind: inner.StepProc, Path: "/proc"})
	l.made["/tmp"] = true
	l.step(inner.Step{Kind: inner.StepDir, Path: "/tmp", Attr: 0o755})
	if l.spec.Scratch == "" {
		l.memory("/tmp", "mode=1777")
	} else {
		l.step(inner.Step{Kind: inner.StepBind, Source: filepath.Join(l.spec.Scratch, "tmp"), Path: "/tmp", Attr: harmless})
	}
	l.memory("/run", "mode=0755,size=1m")
	l.memory("/var/tmp", "mode=1777")
	return nil
}

// homeDir creates a home directory in memory. The directory contains the toolchains, their caches, and
// the user's git settings without passwords and tokens.
func (l *layout) homeDir() error {
	env := l.spec.Env
	if l.home != "" {
		l.memory(l.home, "mode=0700")
	}
	tools := map[string]bool{} // true for the directories that are caches
	for _, name := range toolVariables {
		tools[variable(env, name)] = false
	}
	for dir := range strings.SplitSeq(variable(env, "PATH"), ":") {
		tools[dir] = false
	}
	if gopath := variable(env, "GOPATH"); gopath != "" {
		tools[filepath.Join(gopath, "pkg")], tools[filepath.Join(gopath, "bin")] = true, false
	}
	if cargo := variable(env, "CARGO_HOME"); cargo != "" {
		tools[filepath.Join(cargo, "bin")] = false
		tools[filepath.Join(cargo, "registry")], tools[filepath.Join(cargo, "git")] = true, true
	}
	if l.home != "" {
		for _, dir := range readable.Toolchains() {
			tools[filepath.Join(l.home, dir)] = false
		}
		for _, dir := range readable.Caches() {
			tools[filepath.Join(l.home, dir)] = true
		}
	}
	for _, name := range cacheVariables {
		tools[variable(env, name)] = true
	}
	dirs := make([]string, 0, len(tools))
	for dir := range tools {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := l.tool(dir, tools[dir]); err != nil {
			return err
		}
	}
	return l.userGit()
}

// tool makes the directory of a toolchain visible, unless the directory contains the home directory
// or the project, lies in the project, or has the name of a secret.
func (l *layout) tool(dir string, cache bool) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" || slices.Contains(topDirs, dir) || l.visible(dir) ||
		l.home != "" && within(l.home, dir) || within(l.spec.Project, dir) || within(dir, l.spec.Project) || l.spec.Secret != nil && l.spec.Secret(dir) {
		return nil
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil
	}
	if !info.IsDir() {
		return l.show(dir, harmless|inner.ReadOnly)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return nil // do not show a symbolic link, because it may lead to the home directory
	}
	if !cache || strings.ContainsAny(dir, `,:\`) {
		return l.show(dir, harmless|inner.ReadOnly)
	}
	l.place(dir, true)
	l.shown = append(l.shown, dir)
	name := strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-")
	l.step(inner.Step{Kind: inner.StepOverlay, Source: dir, Path: dir, Data: filepath.Join(l.scratch, name), Attr: harmless})
	return nil
}

// userGit copies the user's git settings, which contain the author of commits. It leaves out
// passwords and tokens.
func (l *layout) userGit() error {
	if l.home == "" {
		return nil
	}
	for _, name := range []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"} {
		l.git(filepath.Join(l.home, name))
	}
	return nil
}

const systemGit = "/etc/gitconfig"

// git copies a file of git settings without passwords and tokens. It does nothing if the file
// is unreadable or too large.
func (l *layout) git(p string) {
	data, err := os.ReadFile(p)
	if err == nil && len(data) <= maxCopied {
		l.file(p, withoutLogins(string(data)))
	}
}

// grants makes the project and the paths in the permissions visible.
func (l *layout) grants() error {
	attrs := map[string]uint64{}
	for _, p := range l.spec.Read {
		attrs[p] = harmless | inner.ReadOnly
	}
	for _, p := range l.spec.Write {
		attrs[p] = harmless
	}
	attrs[l.spec.Project] = harmless
	if l.spec.ReadOnly {
		attrs[l.spec.Project] |= inner.ReadOnly
	}
	paths := make([]string, 0, len(attrs))
	for p := range attrs {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		f, err := inspect(p, plain)
		if err != nil {
			return fmt.Errorf("%s: %w: create it first, or leave it out", p, err)
		}
		l.place(p, f.dir)
		l.shown = append(l.shown, p)
		l.step(inner.Step{Kind: inner.StepBind, Source: p, Path: p, Attr: attrs[p], Dev: f.dev, Ino: f.ino})
	}
	return nil
}
