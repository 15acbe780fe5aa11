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

// ProjectRules are the rules that projects on this machine set for themselves.
type ProjectRules interface {
	// Tighten is p under the rules of the projects at dirs, never a looser one. An
	// error means that one has rules that cannot be told: what p allows there must
	// be asked then.
	Tighten(p *policy.Policy, dirs ...string) (*policy.Policy, error)
}

const (
	// maxProjectFile is the longest project's settings that are read.
	maxProjectFile = 64 << 10
	// maxProjects is how many files are kept in memory.
	maxProjects = 256
)

// ProjectFiles reads .nod/settings.json of directories and of those above them,
// so that a call from a project's subdirectory is under the same rules. Their
// allow rules, preset and everything but permissions are left out. The zero
// ProjectFiles is ready; it looks at a file again once its time or size change.
type ProjectFiles struct {
	mu   sync.Mutex
	read map[string]projectFile
}

// projectFile is one file as it was read, on top of one policy.
type projectFile struct {
	changed time.Time
	size    int64
	base    *policy.Policy
	tight   *policy.Policy
	err     error
}

// Tighten is p under the rules of every such file. A directory that is not
// absolute is left out.
func (f *ProjectFiles) Tighten(p *policy.Policy, dirs ...string) (*policy.Policy, error) {
	var all []string
	for _, dir := range dirs {
		for dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(all, dir); dir = filepath.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all) // what is above first: it is the same for many projects
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
		return nil, fmt.Errorf("the project's rules, %s, are no file of at most %d bytes", file, maxProjectFile)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if had, ok := f.read[file]; ok && had.changed.Equal(info.ModTime()) && had.size == info.Size() && had.base == p {
		return had.tight, had.err
	}
	now := projectFile{changed: info.ModTime(), size: info.Size(), base: p}
	now.tight, now.err = tighten(p, file)
	if f.read == nil || len(f.read) >= maxProjects {
		f.read = map[string]projectFile{}
	}
	f.read[file] = now
	return now.tight, now.err
}

func tighten(p *policy.Policy, file string) (*policy.Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the project's rules cannot be read: %w", err)
	}
	s, err := schemas.DecodeSettings(data)
	if err == nil {
		p, _, err = p.Tighten(s.Permissions, filepath.Dir(filepath.Dir(file)))
	}
	if err != nil {
		return nil, fmt.Errorf("the project's rules, %s, are not valid: %w", file, err)
	}
	return p, nil
}
