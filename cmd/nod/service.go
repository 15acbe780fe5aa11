package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/cmd/nod/internal/service"
)

type serviceCmd struct {
	Install   serviceInstallCmd   `cmd:"" help:"Start nod now and at every log-in; again after an upgrade."`
	Uninstall serviceUninstallCmd `cmd:"" help:"Stop the service and remove it. Pending requests stay pending."`
	Status    serviceStatusCmd    `cmd:"" default:"1" help:"Show whether the service is installed and nod runs."`
}

type serviceInstallCmd struct {
	DryRun bool     `name:"dry-run" help:"Only print the service file."`
	Args   []string `arg:"" optional:"" passthrough:"" placeholder:"FLAG" help:"Flags for nod up, after --, such as -- --listen 127.0.0.1:4333. They replace all flags of an earlier install; without --, those stay."`
}

// Help returns the text that nod service install --help shows besides the flags.
func (serviceInstallCmd) Help() string {
	return "The service is a systemd unit of this user on Linux, and a launchd agent on macOS. The service does not see your shell's environment: name secrets in files, not in variables."
}

func (c *serviceInstallCmd) Run(e *env) error {
	manager, spec, err := c.plan(e)
	if err != nil {
		return err
	}
	if c.DryRun {
		change, err := manager.Plan(spec)
		if err == nil {
			fmt.Fprint(e.stdout, change.After)
		}
		return err
	}
	started, err := e.installService(manager, spec)
	if err == nil && !started {
		return exit(exitError) // the commands that the user has to run were printed
	}
	return err
}

// plan returns the service to install. It fails if this program is temporary, for example built by go
// run.
func (c *serviceInstallCmd) plan(e *env) (*service.Manager, service.Spec, error) {
	var spec service.Spec
	manager, err := service.New(runtime.GOOS)
	if err != nil {
		return nil, spec, err
	}
	switch {
	case len(c.Args) == 0:
		if c.Args, err = manager.Args(); err != nil {
			return nil, spec, err
		}
	case c.Args[0] == "--":
		c.Args = c.Args[1:]
	}
	if err := checkUp(c.Args); err != nil {
		return nil, spec, err
	}
	if _, err := launcher.Self(); err != nil {
		return nil, spec, err
	}
	dir, err := e.dataDir()
	if err != nil {
		return nil, spec, err
	}
	return manager, service.Spec{Program: launcher.Path(dir), DataDir: dir, Args: c.Args}, nil
}

// checkUp returns an error if nod up rejects the service's flags, because the service would exit at every
// start.
func checkUp(args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		return err
	}
	if _, err := parser.Parse(append([]string{"up"}, args...)); err != nil {
		return fmt.Errorf("nod up would refuse this: %w", err)
	}
	return nil
}

// installService installs the service. It prints the service's files, and the commands that the user still
// has to run. The result started is false if there are such commands.
func (e *env) installService(manager *service.Manager, spec service.Spec) (started bool, err error) {
	if _, err := launcher.Ensure(spec.DataDir); err != nil {
		return false, err
	}
	e.warnOfOther(manager, spec.DataDir)
	note, err := manager.Install(e.ctx, spec)
	fmt.Fprintf(e.stdout, "service   %s\nlog       %s\n", manager.Path, service.LogFile(spec.DataDir))
	if err != nil {
		return false, e.printTodo(err)
	}
	fmt.Fprintln(e.stdout, "nod runs now, and from every log-in on")
	if note != "" {
		fmt.Fprintf(e.stderr, "nod: %s\n", note)
	}
	return true, nil
}

// warnOfOther prints a warning if the nod that runs on the data directory was not started by the service
// manager.
func (e *env) warnOfOther(manager *service.Manager, dir string) {
	run, err := bus.ReadRun(dir)
	if err != nil {
		return
	}
	s, err := manager.Status(e.ctx)
	if err == nil && (!s.Installed || s.Running != nil && !*s.Running) {
		fmt.Fprintf(e.stderr, "nod: a nod runs already, as process %d: stop that one, so that the service can take its place\n", run.PID)
	}
}

// printTodo handles the error of a change to the service. If err is a *service.Unreached, printTodo
// prints the commands that the user has to run, and returns nil. It returns any other error unchanged.
func (e *env) printTodo(err error) error {
	var u *service.Unreached
	if !errors.As(err, &u) {
		return err
	}
	fmt.Fprintf(e.stderr, "nod: %v; run these commands yourself:\n", u)
	for _, line := range u.Todo {
		fmt.Fprintf(e.stderr, "  %s\n", line)
	}
	return nil
}

type serviceUninstallCmd struct{}

func (serviceUninstallCmd) Run(e *env) error {
	manager, err := service.New(runtime.GOOS)
	if err != nil {
		return err
	}
	return e.uninstallService(manager)
}

func (e *env) uninstallService(manager *service.Manager) error {
	removed, err := manager.Uninstall(e.ctx)
	if removed {
		fmt.Fprintf(e.stdout, "removed   %s\n", manager.Path)
	} else if err == nil {
		fmt.Fprintln(e.stdout, "there is no service")
	}
	return e.printTodo(err)
}

type serviceStatusCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

type serviceStatus struct {
	service.State
	URL     string    `json:"url,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Log     string    `json:"log"`
}

// Run prints the state of the service. The exit code is 0 if nod runs, else 1.
func (c *serviceStatusCmd) Run(e *env) error {
	s, err := e.serviceStatus()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := e.printJSON(s); err != nil {
			return err
		}
	} else {
		s.print(e.stdout)
	}
	if s.PID == 0 {
		return exit(exitError)
	}
	return nil
}

func (e *env) serviceStatus() (serviceStatus, error) {
	dir, err := e.dataDir()
	if err != nil {
		return serviceStatus{}, err
	}
	s := serviceStatus{Log: service.LogFile(dir)}
	manager, err := service.New(runtime.GOOS)
	if err != nil {
		return s, err
	}
	if s.State, err = manager.Status(e.ctx); err != nil {
		return s, err
	}
	run, err := bus.ReadRun(dir)
	if errors.Is(err, bus.ErrNotRunning) {
		return s, nil
	}
	s.URL, s.PID, s.Version, s.Started = run.URL, run.PID, run.Version, run.Started
	return s, err
}

func (e *env) dataDir() (string, error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(place.DataDir)
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w", err)
	}
	return dir, nil
}

func (s *serviceStatus) print(w io.Writer) {
	installed := "not installed: nod service install"
	if s.Installed {
		installed = s.Path
		switch {
		case s.Running == nil:
			installed += " (the system cannot be asked about it from here)"
		case !*s.Running:
			installed += " (not running; see " + s.Log + ")"
		}
	}
	fmt.Fprintf(w, "service   %s\n", installed)
	if s.PID == 0 {
		fmt.Fprintln(w, "nod       is not running")
	} else {
		fmt.Fprintf(w, "nod       %s on %s, process %d, since %s\n", s.Version, s.URL, s.PID, s.Started.Local().Format(time.DateTime))
	}
	if s.Note != "" {
		fmt.Fprintf(w, "note      %s\n", s.Note)
	}
}
