// Package service has nod run by the system that a user's other programs are
// run by: a unit of the user's systemd on Linux, a launchd agent on macOS. It
// starts nod at log-in, and again whenever it ends.
//
// A service writes its log itself, to one file that is rotated by size: launchd
// rotates nothing, and not every systemd keeps a user's journal.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Spec is what the service runs.
type Spec struct {
	Program string   // the launcher, an absolute path
	DataDir string   // an absolute path
	Args    []string // for nod up, besides those that Command adds
}

// Command is the program and its arguments.
func (s Spec) Command() []string {
	return append([]string{s.Program, "up", "--quiet", "--data", s.DataDir, "--log-file", LogFile(s.DataDir)}, s.Args...)
}

// LogFile is where a service on this data directory writes its log.
func LogFile(dataDir string) string { return filepath.Join(dataDir, "logs", "nod.log") }

// stderrFile is where launchd keeps what nod says outside its log.
func stderrFile(dataDir string) string { return filepath.Join(dataDir, "logs", "stderr.log") }

// Manager is the system that runs services of one user.
type Manager struct {
	// Path is the file that tells it of nod.
	Path string
	kind kind
}

// kind is what differs between the systems.
type kind interface {
	// file is the content of the file.
	file(Spec) string
	// start are the commands that make the system run what the file says now,
	// stop those before the file goes, and gone those after: they are enough
	// where stop was not possible.
	start(path string) []command
	stop(path string) []command
	gone() []command
	// links are files beside the file at path that the system makes of it.
	links(path string) []string
	// state is a command whose output begins with, or holds, running.
	state() (c command, running string)
	// note is what the user has to know; empty for nothing.
	note(context.Context) string
}

// New is the manager of this user on a system (runtime.GOOS). Any other than
// linux and darwin is an error that says what to do instead.
func New(goos string) (*Manager, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find where services are kept: %w", err)
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
	return nil, fmt.Errorf("nod has no service for %s: have `nod up` started at log-in by what does that there", goos)
}

// Change is what an installation does to the file.
type Change struct {
	Path          string
	Before, After string
}

// Changed reports whether there is anything to write.
func (c Change) Changed() bool { return c.Before != c.After }

// Plan says what Install would write, and writes nothing.
func (m *Manager) Plan(s Spec) (Change, error) {
	c := Change{Path: m.Path, After: m.kind.file(s)}
	before, err := os.ReadFile(m.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("read the service's file: %w", err)
	}
	c.Before = string(before)
	return c, nil
}

// Unreached is the error of a system that could not be told: the file is as it
// should be, and Todo are the commands that a person has to run.
type Unreached struct {
	Todo []string
	Err  error
}

func (u *Unreached) Error() string {
	return fmt.Sprintf("the system could not be told (%v)", u.Err)
}

func (u *Unreached) Unwrap() error { return u.Err }

// Install writes the file and has the system start nod with it, or start it
// again where it runs: so that an upgrade takes effect. The returned note is
// what the user has to know. Where the system cannot be reached, the error is
// an *Unreached.
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

// write replaces the file at once.
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

// Uninstall stops nod and removes the file. Where there is none it does
// nothing; removed says which. Where the system cannot be reached, the file
// goes all the same, and the error is an *Unreached.
func (m *Manager) Uninstall(ctx context.Context) (removed bool, err error) {
	if _, err := os.Stat(m.Path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	_ = runAll(ctx, m.kind.stop(m.Path)) // what failed is tried again
	for _, path := range m.kind.links(m.Path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove what starts the service: %w", err)
		}
	}
	if err := os.Remove(m.Path); err != nil {
		return false, fmt.Errorf("remove the service's file: %w", err)
	}
	return true, runAll(ctx, m.kind.gone())
}

// State is how a service stands.
type State struct {
	Installed bool   `json:"installed"`
	Path      string `json:"path"`
	// Running is what the system says; nil where it cannot be asked.
	Running *bool  `json:"running,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Status asks the system how the service stands.
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
	ask, says := m.kind.state()
	running, err := ask.says(ctx, says)
	if err == nil {
		s.Running = &running
		s.Note = m.kind.note(ctx)
	}
	return s, nil
}
