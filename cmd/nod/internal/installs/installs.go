// Package installs remembers, in the data directory, where nod's hooks were
// installed, so that all of them can be taken out again, and when each agent
// program last ran one, so that a hook that never runs can be told.
package installs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Install is one settings file with nod's hook in it.
type Install struct {
	Agent string    `json:"agent"` // as in `nod hook NAME`
	Path  string    `json:"path"`
	At    time.Time `json:"at"` // when it was last changed
	// Created: nod made the file.
	Created bool `json:"created,omitempty"`
}

func (i Install) sameAs(other Install) bool { return i.Agent == other.Agent && i.Path == other.Path }

func dir(dataDir string) string  { return filepath.Join(dataDir, "hooks") }
func list(dataDir string) string { return filepath.Join(dir(dataDir), "installed.json") }

// trace is the file that an agent program's hook leaves: written when it last
// ran, by the version that it holds.
func trace(dataDir, agent string) string { return filepath.Join(dir(dataDir), agent+".seen") }

// List is every installation that is remembered.
func List(dataDir string) ([]Install, error) {
	data, err := os.ReadFile(list(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Install
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read where hooks are installed (%s): %w", list(dataDir), err)
	}
	return all, nil
}

// Remember adds an installation. One that is remembered keeps its time, unless
// it was changed.
func Remember(dataDir string, in Install, changed bool) error {
	all, err := List(dataDir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, in.sameAs)
	switch {
	case i < 0:
		all = append(all, in)
	case !changed:
		return nil
	default:
		in.Created = in.Created || all[i].Created
		all[i] = in
	}
	return write(dataDir, all)
}

// Forget drops an installation. With the last one go the traces.
func Forget(dataDir string, in Install) error {
	all, err := List(dataDir)
	if err != nil {
		return err
	}
	if all = slices.DeleteFunc(all, in.sameAs); len(all) > 0 {
		return write(dataDir, all)
	}
	return Clear(dataDir)
}

// Clear drops all that this package keeps. Hooks that still run leave no trace
// from then on.
func Clear(dataDir string) error {
	if err := os.RemoveAll(dir(dataDir)); err != nil {
		return fmt.Errorf("forget where hooks were installed: %w", err)
	}
	return nil
}

func write(dataDir string, all []Install) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir(dataDir), 0o700)
	}
	temp := list(dataDir) + ".new"
	if err == nil {
		err = os.WriteFile(temp, append(data, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(temp, list(dataDir))
	}
	if err != nil {
		return fmt.Errorf("remember where the hook is installed: %w", err)
	}
	return nil
}

// Ran leaves the trace that an agent program's hook of this version ran. It is
// one short write that waits for no disk. Where no hook is remembered there is
// no trace either, and a trace that cannot be left is nothing to stop a hook for.
func Ran(dataDir, agent, version string) {
	// Not emptied first: file systems flush a file that was. The width is the
	// same each time, so that nothing of an older version stays behind.
	f, err := os.OpenFile(trace(dataDir, agent), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%-*s\n", widest, version)
	_ = f.Close()
}

// widest is more than any version takes.
const widest = 60

// LastRan is when an agent program last ran nod's hook, and of which version;
// the zero time where it never did.
func LastRan(dataDir, agent string) (at time.Time, version string, err error) {
	info, err := os.Stat(trace(dataDir, agent))
	if errors.Is(err, fs.ErrNotExist) {
		return at, "", nil
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(trace(dataDir, agent))
	}
	if err != nil {
		return at, "", fmt.Errorf("read when the hook last ran: %w", err)
	}
	return info.ModTime(), strings.TrimSpace(string(data)), nil
}
