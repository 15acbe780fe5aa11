// Package folders tells whether an agent program reads the hooks of a project: some
// do in folders alone that their user has said to trust, and pass over a project's
// hooks in silence elsewhere. That trust reaches further than nod's hook, so that
// nod reads it and does not write it.
package folders

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// Trusts reports whether a host reads the hooks in the settings file at path: one of
// its user's own, or of a project that the host trusts. It is true of a host that is
// not known to ask for that.
func Trusts(host hook.Host, path string) (bool, error) {
	project, ok := projectOf(host, path)
	if !ok {
		return true, nil
	}
	own, err := hook.Inspect(host, hook.InstallOptions{})
	if own.Path == "" {
		return false, err // what is wrong in the user's own file is said elsewhere
	}
	if real, err := filepath.EvalSymlinks(path); own.Path == path || err == nil && own.Path == real {
		return true, nil
	}
	var trusted []string
	switch host.Name {
	case hook.Codex().Name:
		trusted, err = codex(filepath.Join(filepath.Dir(own.Path), "config.toml"))
	case hook.Copilot().Name:
		trusted, err = copilot(filepath.Join(filepath.Dir(filepath.Dir(own.Path)), "config.json"))
	default:
		return true, nil
	}
	return err == nil && slices.ContainsFunc(trusted, func(dir string) bool {
		return is(dir, project) || host.Name == hook.Codex().Name && is(dir, top(project))
	}), err
}

// projectOf is the project whose settings file path is, by where that stands in it.
func projectOf(host hook.Host, path string) (dir string, ok bool) {
	s := host.Setup
	in := s.ProjectDir
	if in == "" {
		in = s.Dir
	}
	return strings.CutSuffix(path, string(filepath.Separator)+filepath.Join(in, s.File))
}

// is reports whether two names are of one folder.
func is(a, b string) bool {
	if a == b {
		return true
	}
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// top is the work tree of git that dir is in, or dir itself.
func top(dir string) string {
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

// codex are the folders that config.toml names trusted.
func codex(config string) (trusted []string, err error) {
	var says struct {
		Projects map[string]struct {
			Level string `toml:"trust_level"`
		} `toml:"projects"`
	}
	if _, err := toml.DecodeFile(config, &says); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which folders Codex trusts: %w", err)
	}
	for dir, p := range says.Projects {
		if p.Level == "trusted" {
			trusted = append(trusted, dir)
		}
	}
	return trusted, nil
}

// copilot are the folders that config.json names trusted.
func copilot(config string) (trusted []string, err error) {
	data, err := os.ReadFile(config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var says struct {
		Now    []string `json:"trustedFolders"`
		Before []string `json:"trusted_folders"` // its name in older versions
	}
	if err == nil {
		data, err = hujson.Standardize(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &says)
	}
	if err != nil {
		return nil, fmt.Errorf("read which folders Copilot CLI trusts: %w", err)
	}
	return append(says.Now, says.Before...), nil
}
