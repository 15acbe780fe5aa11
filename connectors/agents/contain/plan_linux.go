package contain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// plan returns the plan by which the inner process contains the command at this level.
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

// linked returns the repositories outside the project that linked git work trees in the project belong to.
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

// coverTools hides secrets in the directories of toolchains and in /opt. It searches only the
// upper levels of a directory, because the lower levels contain published packages.
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
				f.dev, f.ino = 0, 0 // 0, because the same file has other device and inode numbers in an overlay
				c.cover(f)
			}
		}
	}
	return nil
}

// finish sets the fields of p that do not depend on the level of containment.
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
	// With a limit of 1 byte, the kernel does not pass a core dump to a program outside the
	// container. With 0, it would.
	p.Limits = []inner.Limit{{Resource: unix.RLIMIT_CORE, Value: 1}}
	if s.Limits.Memory > 0 {
		p.Limits = append(p.Limits, inner.Limit{Resource: unix.RLIMIT_DATA, Value: s.Limits.Memory})
	}
	if s.Limits.Processes > 0 {
		p.Limits = append(p.Limits, inner.Limit{Resource: unix.RLIMIT_NPROC, Value: s.Limits.Processes})
	}
	return p
}

// proxyVariables returns the environment variables that make programs use the proxy for all hosts except
// localhost.
func proxyVariables() []string {
	at := "127.0.0.1:" + strconv.Itoa(inner.ProxyPort)
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
