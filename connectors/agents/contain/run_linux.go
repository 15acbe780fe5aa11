package contain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain/egress"
	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// Support returns the strongest level that this machine supports, and the reason why no stronger
// level is possible. It finds out by running a command.
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

// Run runs the command of s contained, and waits until it has ended. If ctx ends first, Run kills
// the command. If the command did not run at all, the error is an *agents.ExitError.
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
				over() // end the note of the attempt at the other level
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

// clock returns the time that the kernel would store as the change time of a file that changes now.
func clock() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Now().Add(-time.Second)
	}
	return time.Unix(now.Unix())
}

// check sets the defaults of s. It returns an error if Run cannot contain the command of s.
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
