package contain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain/egress"
	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// Support returns the strongest level that this machine supports, and the reason why it supports no
// stronger level. Support runs a command to find out.
func Support() (Level, error) {
	dir, err := os.MkdirTemp("", "nod-contain-")
	if err != nil {
		return None, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return None, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return None, err
	}
	defer null.Close()
	s := Spec{Project: dir, Command: []string{"true"}, Env: os.Environ(), Stdin: null, Stdout: null, Stderr: null}
	r, whyNot := Run(context.Background(), s)
	if whyNot == nil && r.ExitCode == 0 {
		return Namespaces, nil
	}
	if whyNot == nil {
		whyNot = fmt.Errorf("a test command failed with exit code %d", r.ExitCode)
	}
	s.AllowLandlockAlone = true
	if r, err := Run(context.Background(), s); err != nil || r.ExitCode != 0 {
		return None, whyNot
	}
	return LandlockAlone, whyNot
}

// Run runs the command of s contained, and waits until it has ended. When ctx ends, Run kills the
// command. If the command did not run, the error is an *agents.ExitError.
func Run(ctx context.Context, s Spec) (Report, error) {
	return run(ctx, s, egress.New(s.Network))
}

func run(ctx context.Context, s Spec, proxy *egress.Proxy) (Report, error) {
	if err := s.check(); err != nil {
		return Report{}, refused("%w", err)
	}
	begun := time.Now()
	v, err := newView(&s)
	if err != nil {
		return Report{}, refused("%w", err)
	}
	defer v.close()
	var report Report
	before := clock()
	over := func() {}
	defer func() { over() }()
	finish := func(*Report) {}
	attempt := func(level Level) (ending, error) {
		report.Level = level
		return launch(ctx, &s, level, func(pid int) (*inner.Plan, error) {
			p, err := v.plan(level)
			if err == nil {
				over() // end the note of an attempt at another level
				over, err = v.note(pid, before)
			}
			if err == nil {
				finish(&Report{})
				finish = v.watch(before)
			}
			return p, err
		}, proxy)
	}
	end, err := attempt(Namespaces)
	if err != nil && s.AllowLandlockAlone && unavailable(err) {
		end, err = attempt(LandlockAlone)
	}
	finish(&report)
	var notRun *agents.ExitError
	if err != nil && !errors.As(err, &notRun) {
		err = refused("this machine cannot contain the command: %w", err)
	}
	if err != nil {
		return Report{}, err
	}
	report.ExitCode, report.TimedOut = end.code, end.timedOut
	report.Refused, report.LookedUp = proxy.Refused(), proxy.LookedUp()
	report.Elapsed = time.Since(begun)
	return report, nil
}

// plan returns what the inner process has to do for containment at a level.
func (v *view) plan(level Level) (*inner.Plan, error) {
	if level == LandlockAlone {
		return v.landlockPlan()
	}
	p, err := v.namespacePlan()
	if err != nil {
		err = refused("%w", err)
	}
	return p, err
}

// clock returns the time that the kernel would now store as the change time of a file.
func clock() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Now().Add(-time.Second)
	}
	return time.Unix(now.Unix())
}

// check sets defaults in s. It returns an error if s describes a command that cannot be contained.
func (s *Spec) check() error {
	if len(s.Command) == 0 || s.Command[0] == "" {
		return errors.New("there is no command to run")
	}
	if s.Dir == "" {
		s.Dir = s.Project
	}
	for _, p := range slices.Concat([]string{s.Project, s.Dir}, s.Read, s.Write) {
		real, err := realPath(p)
		if err != nil {
			return fmt.Errorf("%w: create it first, or leave it out", err)
		}
		if !filepath.IsAbs(p) || real != p {
			return fmt.Errorf("%s leads to %s: name that path itself", p, real)
		}
	}
	home := variable(s.Env, "HOME")
	for _, p := range append([]string{s.Project}, s.Write...) {
		if p == "/" || filepath.IsAbs(home) && within(filepath.Clean(home), p) || slices.Contains(topDirs, p) {
			return fmt.Errorf("%s is a home directory, holds one or belongs to the system, so a contained command cannot have it: name a project below it", p)
		}
	}
	if !within(s.Dir, s.Project) && !slices.ContainsFunc(slices.Concat(s.Read, s.Write), func(p string) bool { return within(s.Dir, p) }) {
		return fmt.Errorf("the working directory %s is outside the project %s", s.Dir, s.Project)
	}
	for _, f := range []**os.File{&s.Stdin, &s.Stdout, &s.Stderr} {
		if *f == nil {
			*f = []*os.File{os.Stdin, os.Stdout, os.Stderr}[slices.Index([]**os.File{&s.Stdin, &s.Stdout, &s.Stderr}, f)]
		}
		if info, err := (*f).Stat(); err == nil && info.IsDir() {
			return errors.New("a standard stream is a directory, through which the command could leave its project: redirect it")
		}
	}
	return nil
}

// topDirs are system directories that are too large to be one project.
var topDirs = []string{"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/lib", "/var/tmp"}

// view is the result of the scans before a command. It contains the scanned trees, the paths to
// hide or protect, and the command's scratch directory.
type view struct {
	spec    *Spec
	names   names
	trees   []tree // the writable and readable directories, the project first
	extra   []finding
	absent  []string // protected paths that did not exist before the command
	lock    *os.File // the lock file of the scratch directory, open until the command has ended
	scratch string

	temporary string // a directory to remove when the command has ended
}

func newView(s *Spec) (*view, error) {
	v := &view{spec: s, names: names{s.Secret, s.SecretBelow, s.Protected}}
	for _, top := range v.tops() {
		t, err := scan(top, &v.names, 0)
		if err != nil {
			return nil, err
		}
		t.found = slices.DeleteFunc(t.found, func(f finding) bool { return f.path == top })
		links, err := t.otherLinks()
		if err != nil {
			return nil, err
		}
		v.extra = slices.Concat(v.extra, t.linkTargets(), links)
		v.trees = append(v.trees, t)
	}
	if err := v.addOthers(); err != nil { // after the scans, because a command that starts later has no note yet
		return nil, err
	}
	return v, v.openScratch()
}

// tops returns the directories to scan: the project and the granted paths.
func (v *view) tops() []string {
	tops := []string{v.spec.Project}
	for _, p := range slices.Concat(v.spec.Write, v.spec.Read) {
		if info, err := os.Lstat(p); err == nil && info.IsDir() && !slices.Contains(tops, p) {
			tops = append(tops, p)
		}
	}
	return tops
}

// openScratch opens and locks the scratch directory. If another command has locked it, this command
// keeps its changes in memory, because two overlays must not share a directory.
func (v *view) openScratch() error {
	dir := v.spec.Scratch
	if dir == "" {
		return nil
	}
	for _, d := range []string{dir, filepath.Join(dir, "tmp"), filepath.Join(dir, "layers")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("prepare the session's directory: %w", err)
		}
	}
	real, err := realPath(dir)
	if err != nil {
		return err
	}
	v.spec.Scratch = real
	lock, err := os.OpenFile(filepath.Join(real, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		v.scratch = filepath.Join(real, "layers")
	}
	v.lock = lock
	return nil
}

func (v *view) close() {
	if v.lock != nil {
		v.lock.Close()
	}
	if v.temporary != "" {
		_ = os.RemoveAll(v.temporary)
	}
}

func (v *view) readOnly(top string) bool {
	if top == v.spec.Project {
		return v.spec.ReadOnly
	}
	return !slices.Contains(v.spec.Write, top)
}

// namespacePlan returns the plan for a command in new namespaces.
func (v *view) namespacePlan() (*inner.Plan, error) {
	s := v.spec
	home := filepath.Clean(variable(s.Env, "HOME"))
	if !filepath.IsAbs(home) || home == "/" || within(home, s.Project) {
		home = ""
	}
	l := &layout{spec: s, home: home, scratch: inner.Own + "/layers", made: map[string]bool{}}
	if v.scratch != "" {
		l.scratch = inner.Old + v.scratch
	} else {
		l.step(inner.Step{Kind: inner.StepDir, Path: l.scratch, Attr: 0o700})
	}
	if err := errors.Join(l.system(), l.homeDir()); err != nil {
		return nil, err
	}
	repositories := v.linked()
	for _, r := range repositories {
		if err := r.show(l, s.ReadOnly); err != nil {
			return nil, err
		}
	}
	shownBefore := slices.Clone(l.shown)
	if err := l.grants(); err != nil {
		return nil, err
	}
	c := &covers{layout: l, seen: map[string]bool{}}
	c.begin()
	v.coverAll(c, repositories)
	if err := v.coverTools(c, shownBefore); err != nil {
		return nil, err
	}
	v.absent = c.absent
	return v.finish(&inner.Plan{Namespaces: true, ShareNet: s.AnyNetwork, Listen: !s.AnyNetwork, Steps: l.steps}), nil
}

// linked returns the repositories outside the project to which the project's linked git work trees
// belong.
func (v *view) linked() []linked {
	var all []linked
	for _, f := range v.trees[0].found {
		if f.kind == gitDir && !f.dir && f.target == "" {
			if r, ok := linkedRepository(f.path); ok && !within(r.common, v.spec.Project) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (v *view) coverAll(c *covers, repositories []linked) {
	for _, t := range v.trees {
		writable := !v.readOnly(t.top)
		if writable {
			for _, dir := range t.unmovable(v.spec.Secret) {
				c.pin(dir)
			}
		}
		for _, f := range t.found {
			switch {
			case f.kind == gitDir && f.dir && writable:
				c.repository(f.path)
				c.protectAll(configuredPaths(filepath.Dir(f.path), f.path, c.layout.home))
			case f.kind == gitDir && f.dir:
				c.config(filepath.Join(f.path, "config"))
			case f.kind == gitDir:
				if f.kind = protected; writable {
					c.cover(f)
				}
			case f.kind == gitHead && writable:
				c.bareRepository(filepath.Dir(f.path))
			case f.kind == protected && writable:
				c.cover(f)
			case f.kind == secret || f.kind == socket:
				c.cover(f)
			}
		}
	}
	for _, f := range v.extra {
		if f.kind == secret || !v.spec.ReadOnly {
			c.cover(f)
		}
	}
	for _, r := range repositories {
		c.linkedRepository(r)
		if !v.spec.ReadOnly {
			c.protectAll(configuredPaths(v.spec.Project, r.common, c.layout.home))
		}
	}
}

// coverTools hides secrets in the toolchains' directories and in /opt. It searches only the upper
// levels. The lower levels contain published packages.
func (v *view) coverTools(c *covers, shown []string) error {
	onlySecrets := names{secret: v.spec.Secret}
	if v.spec.Secret == nil {
		return nil
	}
	for _, dir := range shown {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || within(dir, "/usr") || within(dir, "/etc") || within(dir, "/sys") || strings.HasPrefix(dir, "/lib") || dir == "/bin" || dir == "/sbin" || within(dir, "/nix") || within(dir, "/gnu") {
			continue
		}
		depth := 1
		if dir == "/opt" {
			depth = 3
		}
		t, err := scan(dir, &onlySecrets, depth)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		for _, f := range t.found {
			if f.kind == secret {
				f.dev, f.ino = 0, 0 // files in an overlay have other device and inode numbers
				c.cover(f)
			}
		}
	}
	return nil
}

// finish adds to p the fields that are the same at both levels of containment.
func (v *view) finish(p *inner.Plan) *inner.Plan {
	s := v.spec
	more := []string{"PWD=" + s.Dir, "TMPDIR=/tmp", "HUSKY=0"}
	if p.Listen {
		more = append(more, proxyVariables()...)
	}
	if p.ShareNet && p.Namespaces {
		p.Scoped = abstractSocketScope()
	}
	p.Dir, p.Argv, p.Env = s.Dir, s.Command, cleanEnvironment(s.Env, more)
	families := []uint32{unix.AF_UNIX}
	if p.Namespaces || s.AnyNetwork {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	p.Filter = filter(families...)
	// A core limit of 1, unlike 0, prevents the kernel from passing a core dump to a program outside
	// the container.
	p.Limits = []inner.Limit{{Resource: unix.RLIMIT_CORE, Value: 1}}
	if s.Limits.Memory > 0 {
		p.Limits = append(p.Limits, inner.Limit{Resource: unix.RLIMIT_DATA, Value: s.Limits.Memory})
	}
	if s.Limits.Processes > 0 {
		p.Limits = append(p.Limits, inner.Limit{Resource: unix.RLIMIT_NPROC, Value: s.Limits.Processes})
	}
	return p
}

// proxyVariables are the environment variables that make programs use the proxy, except for localhost.
func proxyVariables() []string {
	const at = "127.0.0.1:61280"
	var all []string
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "npm_config_proxy", "npm_config_https_proxy"} {
		all = append(all, name+"=http://"+at)
	}
	for _, name := range []string{"all_proxy", "ALL_PROXY"} {
		all = append(all, name+"=socks5h://"+at)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(all, "no_proxy="+own, "NO_PROXY="+own, "npm_config_noproxy="+own, "NODE_USE_ENV_PROXY=1")
}
