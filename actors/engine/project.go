package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// ProjectRules reads the rules in the settings files of projects on this machine.
type ProjectRules interface {
	// Tighten returns p with the rules of the projects at dirs, which can only make p stricter. An
	// error means that some rules are unknown. In that case no call in these projects may be allowed
	// without a person. Tighten is safe for concurrent use.
	Tighten(p *policy.Policy, dirs ...string) (*policy.Policy, error)
}

const (
	// maxProjectFile bounds the size of a project's settings, in bytes.
	maxProjectFile = 64 << 10
	// maxProjects bounds the number of cached files.
	maxProjects = 256
)

// ProjectFiles reads .nod/settings.json in directories and in all their parents. From these files it
// uses only permissions, without allow rules and presets. It reads a file again if the file's time or
// size has changed. The zero value is ready to use.
type ProjectFiles struct {
	// Channels describe the settings of people connectors. A file that names another connector
	// is not valid.
	Channels []schemas.ChannelSettings

	mu   sync.Mutex
	read map[string]projectFile
}

// projectFile is a cached settings file of a project. base is the policy without the file's rules, and
// tight is the policy with them.
type projectFile struct {
	changed time.Time
	size    int64
	base    *policy.Policy
	tight   *policy.Policy
	err     error
}

// Tighten returns p with the rules of the settings files in dirs and in all their parents. It
// ignores relative directories.
func (f *ProjectFiles) Tighten(p *policy.Policy, dirs ...string) (*policy.Policy, error) {
	var all []string
	for _, dir := range dirs {
		for dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(all, dir); dir = filepath.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all) // parent directories come first, so that projects with the same parents share cached files
	for _, dir := range all {
		var err error
		if p, err = f.one(p, filepath.Join(dir, ".nod", "settings.json")); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (f *ProjectFiles) one(p *policy.Policy, file string) (*policy.Policy, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("the project's rules cannot be read: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxProjectFile:
		return nil, fmt.Errorf("the project's rules, %s, are not a file of at most %d bytes", file, maxProjectFile)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if had, ok := f.read[file]; ok && had.changed.Equal(info.ModTime()) && had.size == info.Size() && had.base == p {
		return had.tight, had.err
	}
	now := projectFile{changed: info.ModTime(), size: info.Size(), base: p}
	now.tight, now.err = f.tighten(p, file)
	if f.read == nil || len(f.read) >= maxProjects {
		f.read = map[string]projectFile{}
	}
	f.read[file] = now
	return now.tight, now.err
}

func (f *ProjectFiles) tighten(p *policy.Policy, file string) (*policy.Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the project's rules cannot be read: %w", err)
	}
	s, err := schemas.DecodeSettings(data, f.Channels...)
	if err == nil {
		p, _, err = p.Tighten(s.Permissions, filepath.Dir(filepath.Dir(file)))
	}
	if err != nil {
		return nil, fmt.Errorf("the project's rules, %s, are not valid: %w", file, err)
	}
	return p, nil
}
