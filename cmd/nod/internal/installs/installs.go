// Package installs stores, in the data directory, the paths of the settings files in which nod's hooks
// were installed, so that nod uninstall can remove all hooks. It also stores the time of each agent
// program's last hook run, so that nod doctor notices a hook that never runs.
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

	"github.com/nodbus/nod/connectors/agents/hook"
)

// Install is one settings file with nod's hook in it.
type Install struct {
	Agent string    `json:"agent"` // the agent's name, as in `nod hook NAME`
	Path  string    `json:"path"`
	At    time.Time `json:"at"` // the last change of the hook
	// Created is true if nod made the file. Dirs are the directories that nod made for the file, outer
	// directories first.
	Created bool     `json:"created,omitempty"`
	Dirs    []string `json:"dirs,omitempty"`
	// Blank is the file's content before the installation, if the user's file contained only white
	// space. Otherwise Blank is nil. EmptyHooks is true if the file had an empty list of hooks before
	// the installation.
	Blank      *string `json:"blank,omitempty"`
	EmptyHooks bool    `json:"empty_hooks,omitempty"`
	// Servers are the file's MCP servers that run behind nod's gate.
	Servers []hook.GatedServer `json:"servers,omitempty"`
}

func (i Install) sameAs(other Install) bool { return i.Agent == other.Agent && i.Path == other.Path }

func dir(dataDir string) string  { return filepath.Join(dataDir, "hooks") }
func list(dataDir string) string { return filepath.Join(dir(dataDir), "installed.json") }

// trace returns the path of the file that an agent program's hook writes at each run. The file's
// modification time is the time of the last run; its content is nod's version.
func trace(dataDir, agent string) string { return filepath.Join(dir(dataDir), agent+".seen") }

// List returns the stored installations.
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
		return nil, fmt.Errorf("read the list of installed hooks (%s): %w", list(dataDir), err)
	}
	return all, nil
}

// Find returns the stored installation of an agent in a file, or the zero Install.
func Find(dataDir, agent, path string) (Install, error) {
	all, err := List(dataDir)
	if err != nil {
		return Install{}, err
	}
	if i := slices.IndexFunc(all, Install{Agent: agent, Path: path}.sameAs); i >= 0 {
		return all[i], nil
	}
	return Install{}, nil
}

// Remember stores an installation. If the parameter changed is false and the installation is stored already,
// Remember changes nothing.
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
		if was := all[i]; !in.Created { // the file already had nod's hook, so the stored state from before the first installation stays
			in.Created, in.Dirs, in.Blank, in.EmptyHooks = was.Created, was.Dirs, was.Blank, was.EmptyHooks
		}
		in.Servers = merge(all[i].Servers, in.Servers)
		all[i] = in
	}
	return write(dataDir, all)
}

// merge returns the servers of both lists. If a server is in both lists, its entry in the newer list counts.
func merge(older, newer []hook.GatedServer) []hook.GatedServer {
	merged := slices.Clone(newer)
	for _, s := range older {
		if !slices.ContainsFunc(newer, func(n hook.GatedServer) bool { return n.List == s.List && n.Name == s.Name }) {
			merged = append(merged, s)
		}
	}
	return merged
}

// Forget removes an installation. With the last installation it also removes the files about hook
// runs.
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

// Clear removes all installations and the files about hook runs. A hook that runs later writes no
// file, because the folder is gone.
func Clear(dataDir string) error {
	if err := os.RemoveAll(dir(dataDir)); err != nil {
		return fmt.Errorf("remove the list of installed hooks: %w", err)
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
		return fmt.Errorf("record that the hook is installed: %w", err)
	}
	return nil
}

// Ran stores that an agent program ran its hook with this version of nod. It makes a single write
// without a sync, to be fast, and ignores errors. Without a stored installation the folder is missing,
// and Ran writes nothing.
func Ran(dataDir, agent, version string) {
	// The file is not truncated, because some file systems flush a truncated file to disk. Every write
	// has the same length, so it replaces the old content completely.
	f, err := os.OpenFile(trace(dataDir, agent), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%-*s\n", widest, version)
	_ = f.Close()
}

// widest is the number of bytes to which Ran pads the version. No version is longer.
const widest = 60

// LastRan returns the time of an agent program's last run of the hook, and nod's version
// at that time. The time is zero if the hook has not run.
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
