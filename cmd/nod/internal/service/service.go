// Package service makes nod a service of one user: a systemd user unit on Linux, a launchd agent on
// macOS. The service manager starts nod at log-in, and starts it again whenever it ends.
//
// As a service, nod writes its log to a file and rotates the file by size, because launchd does not
// rotate logs, and systemd may keep no journal for users.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Spec names the program that the service runs, and its arguments.
type Spec struct {
	Program string   // the absolute path of the launcher
	DataDir string   // the absolute path of the data directory
	Args    []string // further flags for nod up, appended by Command
}

// Command returns the command line of the service.
func (s Spec) Command() []string {
	return append([]string{s.Program, "up", "--quiet", "--data", s.DataDir, "--log-file", LogFile(s.DataDir)}, s.Args...)
}

// LogFile returns the path of the log of a service with this data directory.
func LogFile(dataDir string) string { return filepath.Join(dataDir, "logs", "nod.log") }

// stderrFile returns the path of the file for the output that nod does not write to its log.
func stderrFile(dataDir string) string { return filepath.Join(dataDir, "logs", "stderr.log") }

// Manager installs nod in the service manager of one user.
type Manager struct {
	// Path is the path of the service file.
	Path string
	kind kind
}

// kind is implemented once for systemd and once for launchd.
type kind interface {
	// file returns the content of the service file.
	file(Spec) string
	// words returns the command line in the content of a service file, or nil if there is none.
	words(file string) []string
	// start returns the commands that make the service manager run the service file at path. An
	// uninstallation runs the commands that stop returns, removes the file, and then calls gone. If the
	// service still runs, gone ends it or returns an *Unreached.
	start(path string) []command
	stop(path string) []command
	gone(context.Context) error
	// links returns the links to the service file that the service manager may have created.
	links(path string) []string
	// state returns a command that prints the service's state, and the words that its output
	// contains if the service runs.
	state() (c command, running string)
	// note returns a note for the user, or "".
	note(context.Context) string
}

// New returns this user's manager for an operating system, named as in runtime.GOOS. For systems other
// than linux and darwin it returns an error that names an alternative.
func New(goos string) (*Manager, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the folder of service files: %w", err)
	}
	switch goos {
	case "linux":
		config := os.Getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(config) {
			config = filepath.Join(home, ".config")
		}
		return &Manager{Path: filepath.Join(config, "systemd", "user", unitName), kind: systemd{}}, nil
	case "darwin":
		return &Manager{Path: filepath.Join(home, "Library", "LaunchAgents", label+".plist"), kind: launchd{uid: os.Getuid()}}, nil
	}
	return nil, fmt.Errorf("nod has no service for %s: use the system's own way to start `nod up` at log-in", goos)
}

// Change describes how an installation changes the service file.
type Change struct {
	Path          string
	Before, After string
}

func (c Change) Changed() bool { return c.Before != c.After }

// Plan returns the change that Install would make. It writes nothing.
func (m *Manager) Plan(s Spec) (Change, error) {
	c := Change{Path: m.Path, After: m.kind.file(s)}
	before, err := os.ReadFile(m.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("read the service's file: %w", err)
	}
	c.Before = string(before)
	return c, nil
}

// Command returns the command line of the installed service. It returns nil if no service is installed,
// or if the service file contains no command line.
func (m *Manager) Command() ([]string, error) {
	file, err := os.ReadFile(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the service's file: %w", err)
	}
	return m.kind.words(string(file)), nil
}

// Args returns the further flags for nod up in the installed service; see Spec.Args.
func (m *Manager) Args() ([]string, error) {
	words, err := m.Command()
	own := len(Spec{}.Command()) // the number of words before those of Spec.Args
	if err != nil || len(words) < own || words[1] != "up" {
		return nil, err
	}
	return words[own:], nil
}

// Unreached is the error of an installation or uninstallation whose system tools failed. The service
// file is already written or removed. Todo lists the commands that the user still has to run.
type Unreached struct {
	Todo []string
	Err  error
}

func (u *Unreached) Error() string {
	return fmt.Sprintf("the system's service manager did not obey (%v)", u.Err)
}

func (u *Unreached) Unwrap() error { return u.Err }

// Install writes the service file and starts the service. It restarts a running service, so that an upgrade
// takes effect. The result note is a hint for the user. If the service manager cannot be reached, the error
// is an *Unreached.
func (m *Manager) Install(ctx context.Context, s Spec) (note string, err error) {
	c, err := m.Plan(s)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(LogFile(s.DataDir)), 0o700); err != nil {
		return "", fmt.Errorf("make the directory of the log: %w", err)
	}
	if c.Changed() {
		if err := write(m.Path, c.After); err != nil {
			return "", fmt.Errorf("write the service's file: %w", err)
		}
	}
	if err := runAll(ctx, m.kind.start(m.Path)); err != nil {
		return "", err
	}
	return m.kind.note(ctx), nil
}

// write replaces the file atomically.
func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// Uninstall stops the service and removes its file. The result removed is false if there was no file. If the
// service manager cannot be reached or does not stop the service, Uninstall still removes the file, and
// returns an *Unreached.
func (m *Manager) Uninstall(ctx context.Context) (removed bool, err error) {
	if _, err := os.Stat(m.Path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	_ = runAll(ctx, m.kind.stop(m.Path)) // if the commands of stop fail, gone ends the service
	for _, path := range m.kind.links(m.Path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove the link that starts the service: %w", err)
		}
	}
	if err := os.Remove(m.Path); err != nil {
		return false, fmt.Errorf("remove the service's file: %w", err)
	}
	return true, m.kind.gone(ctx)
}

// State is the state of a service.
type State struct {
	Installed bool   `json:"installed"`
	Path      string `json:"path"`
	// Running is nil if the service manager cannot be reached.
	Running *bool  `json:"running,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Status reads the state of the service from the system.
func (m *Manager) Status(ctx context.Context) (State, error) {
	s := State{Path: m.Path}
	_, err := os.Stat(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("look at the service's file: %w", err)
	}
	s.Installed = true
	c, text := m.kind.state()
	running, err := c.outputContains(ctx, text)
	if err == nil {
		s.Running = &running
		s.Note = m.kind.note(ctx)
	}
	return s, nil
}
