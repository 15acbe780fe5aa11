package hook

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// files returns all files in which the host looks for hooks, in the order of Setup.Others.
func (s Setup) files() []string { return append([]string{s.File}, s.Others...) }

// OffBy returns the reason why the host does not run nod's hooks in the settings file at path, or "". The
// reason is in another file; see Setup.Others.
func (h Host) OffBy(path string) (problem string, err error) {
	doc, err := readHooks(h, path)
	if err != nil {
		return "", err
	}
	return checkOthers(doc, h)
}

// OffInProject returns the reason why the host runs no hook at all in the project at dir, or "". The reason
// is a file of the project, which applies whatever the user's own files say.
func (h Host) OffInProject(dir string) (problem string, err error) {
	s := h.Setup
	if len(s.Others) == 0 {
		return "", nil
	}
	for _, name := range s.files() {
		path := filepath.Join(dir, cmp.Or(s.ProjectDir, s.Dir), filepath.FromSlash(name))
		doc, err := readHooks(h, path)
		if err != nil {
			return "", err
		}
		if doc.isOff(s) {
			return fmt.Sprintf("%s says %q, so that %s runs no hook in this project", path, s.Off, h.Agent), nil
		}
	}
	return "", nil
}

// checkOthers returns a problem if nod's hooks in doc would turn off hooks of the user in a file of
// Setup.Others, or if such a file turns off nod's hooks.
func checkOthers(doc *document, host Host) (problem string, err error) {
	names := host.Setup.files()
	own := slices.IndexFunc(names, func(name string) bool {
		return strings.HasSuffix(doc.path, string(filepath.Separator)+filepath.FromSlash(name))
	})
	if len(names) == 1 || own < 0 {
		return "", nil
	}
	dir := strings.TrimSuffix(doc.path, filepath.FromSlash(names[own]))
	for i, name := range names {
		if i == own {
			continue
		}
		other, err := readHooks(host, filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		if other.isOff(host.Setup) {
			return fmt.Sprintf("%s says %q, so that %s runs no hook: remove that", other.path, host.Setup.Off, host.Agent), nil
		}
		for _, event := range host.Setup.Events {
			switch {
			case !other.hasForeign(event, host):
			case i < own:
				return fmt.Sprintf("%s has hooks for %s, so that %s does not run those in %s: install into that file, with --settings", other.path, event, host.Agent, doc.path), nil
			case !doc.hasForeign(event, host):
				return fmt.Sprintf("%s has hooks for %s, which %s does not run beside nod's: move them into %s", other.path, event, host.Agent, doc.path), nil
			}
		}
	}
	return "", nil
}

// readHooks parses a settings file. A missing file counts as an empty object.
func readHooks(host Host, path string) (*document, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for other hooks of %s: %w; nothing was changed", host.Agent, err)
	}
	return openDocument(host, path, data)
}

// hasForeign reports whether the file has hooks for event that are not nod's.
func (d *document) hasForeign(event string, host Host) (foreign bool) {
	_, groups, err := d.find(event)
	if err != nil || groups == nil {
		return false
	}
	ours := ownCommand(host)
	eachHook(groups, host.Setup.names(), func(_ *hujson.Object, command string) bool {
		foreign = foreign || !ours(command)
		return true
	})
	return foreign
}
