// Package folders reports whether an agent program reads the hooks of a project. Some agent programs
// silently ignore a project's hooks unless the user trusts the project's folder. Trust in a folder
// covers more than nod's hook, so nod reads the list of trusted folders and never changes it.
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

// Trusts reports whether a host reads the hooks in the settings file at path. A host always reads the
// file in the user's home directory. It reads a project's file if the user trusts the project's
// folder, or if the host has no list of trusted folders.
func Trusts(host hook.Host, path string) (bool, error) {
	project, ok := projectOf(host, path)
	if !ok {
		return true, nil
	}
	own, err := hook.Inspect(host, hook.InstallOptions{})
	if own.Path == "" {
		return false, err // if Inspect returns a path with an error, the error is only about the file's content
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
		return sameDir(dir, project) || host.Name == hook.Codex().Name && sameDir(dir, workTree(project))
	}), err
}

// projectOf returns the folder of the project to which a settings file belongs. ok is false if the
// path is not that of a project's settings file.
func projectOf(host hook.Host, path string) (dir string, ok bool) {
	s := host.Setup
	in := s.ProjectDir
	if in == "" {
		in = s.Dir
	}
	return strings.CutSuffix(path, string(filepath.Separator)+filepath.Join(in, s.File))
}

func sameDir(a, b string) bool {
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

// workTree returns the root of the git work tree that contains dir. Without a work tree it returns
// dir.
func workTree(dir string) string {
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

// codex returns the folders that Codex's config.toml marks as trusted.
func codex(config string) (trusted []string, err error) {
	var says struct {
		Projects map[string]struct {
			Level string `toml:"trust_level"`
		} `toml:"projects"`
	}
	if _, err := toml.DecodeFile(config, &says); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the folders that Codex trusts: %w", err)
	}
	for dir, p := range says.Projects {
		if p.Level == "trusted" {
			trusted = append(trusted, dir)
		}
	}
	return trusted, nil
}

// copilot returns the folders that Copilot's config.json marks as trusted.
func copilot(config string) (trusted []string, err error) {
	data, err := os.ReadFile(config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var says struct {
		Now    []string `json:"trustedFolders"`
		Before []string `json:"trusted_folders"` // the field's name in older versions
	}
	if err == nil {
		data, err = hujson.Standardize(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &says)
	}
	if err != nil {
		return nil, fmt.Errorf("read the folders that Copilot CLI trusts: %w", err)
	}
	return append(says.Now, says.Before...), nil
}
