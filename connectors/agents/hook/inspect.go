package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// Installed is one of nod's hooks in a host's settings.
type Installed struct {
	Event   string
	Command string  // the whole shell command
	Matcher *string // the hook's matcher; nil if it has none
	Timeout int64   // the hook's timeout in the host's unit; 0 if it has none
	// Group is the index of the hook's group in the list of its event. Index is the hook's index in the
	// group.
	Group, Index int
}

// Program returns the program in the hook's command: the first word or, after byShell, the next word.
// It returns "" if the word has quotes other than single quotes around it.
func (i Installed) Program() string {
	word := firstWord.FindString(strings.TrimPrefix(strings.TrimSpace(i.Command), byShell))
	if inner, quoted := strings.CutPrefix(word, "'"); quoted {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
	}
	return word
}

var firstWord = lazyregexp.New(`^(?:'(?:[^']|'\\'')*'|[A-Za-z0-9_./+,:@%=-]+)`)

// Present reports whether the host is installed on this machine. It is if its program is in PATH, or if
// its settings directory (see Setup.DirEnv and Setup.Dir) or one of Host.Traces exists.
func (h Host) Present() bool {
	if _, err := exec.LookPath(h.Program); err == nil {
		return true
	}
	isDir := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	}
	if dir := os.Getenv(h.Setup.DirEnv); h.Setup.DirEnv != "" && dir != "" {
		return isDir(dir)
	}
	home, err := h.Setup.home()
	if err != nil {
		return false
	}
	traces := h.Traces
	if traces == nil {
		traces = []string{h.Setup.Dir}
	}
	return slices.ContainsFunc(traces, func(dir string) bool { return isDir(filepath.Join(home, dir)) })
}

// Inspection describes the hooks of nod in a host's settings file.
type Inspection struct {
	Path   string // the file, after symbolic links are followed
	Exists bool
	Hooks  []Installed
	// Signals are the hooks that decide no call by themselves. Most are for events at which the host
	// only reports that it has continued, or has denied a call. The others have ApprovedFlag.
	Signals []Installed
	// Off is the name of the setting that turns all hooks off, if the file sets it to true, and
	// otherwise empty.
	Off string
}

// Inspect describes the file that Install would change for host, and changes nothing. It fails if
// Install would not accept the file.
func Inspect(host Host, o InstallOptions) (Inspection, error) {
	path, err := settingsPath(host, o)
	if err != nil {
		return Inspection{}, err
	}
	change, err := openChange(path)
	if err != nil {
		return Inspection{Path: path}, err
	}
	found, err := inspect(host, change.Path, change.Before)
	found.Exists = !change.isNew
	return found, err
}

// InspectChange describes the file of a Change as it is before Write, and as it is after Write.
func InspectChange(host Host, c Change) (before, after Inspection, err error) {
	if before, err = inspect(host, c.Path, c.Before); err == nil {
		after, err = inspect(host, c.Path, c.After)
	}
	return before, after, err
}

func inspect(host Host, path string, data []byte) (Inspection, error) {
	found := Inspection{Path: path, Exists: true}
	doc, err := openDocument(host, path, data)
	if err != nil {
		return found, err
	}
	if doc.stale {
		return found, nil // return no hooks, because a changed script may not ask nod
	}
	if doc.isOff(host.Setup) {
		found.Off = host.Setup.Off
	}
	s := host.Setup
	decide, err := hooksUnder(doc, host, slices.Concat(s.Events, s.Strict))
	if err != nil {
		return found, err
	}
	if found.Signals, err = hooksUnder(doc, host, slices.Concat(s.Signals, s.Newer, s.denied())); err != nil {
		return found, err
	}
	for _, i := range decide {
		if approvedOnly(i.Command) {
			found.Signals = append(found.Signals, i)
		} else {
			found.Hooks = append(found.Hooks, i)
		}
	}
	return found, nil
}

func (s Setup) denied() []string {
	if s.Denied == "" {
		return nil
	}
	return []string{s.Denied}
}

// All returns i.Hooks and i.Signals in one list.
func (i Inspection) All() []Installed { return slices.Concat(i.Hooks, i.Signals) }

// hooksUnder returns nod's hooks under the given events.
func hooksUnder(doc *document, host Host, events []string) (own []Installed, err error) {
	for _, event := range events {
		_, groups, err := doc.find(event)
		if err != nil {
			return own, err
		}
		if groups == nil {
			continue
		}
		var listed []json.RawMessage
		if err := json.Unmarshal(packed(groups), &listed); err != nil {
			return own, fmt.Errorf("read %s: %w", doc.path, err)
		}
		for g, group := range listed {
			own = append(own, hooksIn(host, event, g, group)...)
		}
	}
	return own, nil
}

// hooksIn returns nod's hooks in a group, which is the element g of the list of an event. If the
// element has an unknown format, there are none.
func hooksIn(host Host, event string, g int, group json.RawMessage) (found []Installed) {
	var entry struct {
		Matcher *string           `json:"matcher"`
		Hooks   []json.RawMessage `json:"hooks"`
	}
	if host.Setup.Flat {
		entry.Hooks = []json.RawMessage{group}
	} else if json.Unmarshal(group, &entry) != nil {
		return nil
	}
	ours, names := ownCommand(host), host.Setup.names()
	for i, raw := range entry.Hooks {
		var fields map[string]json.RawMessage
		var command string
		var timeout int64
		if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields[names.command], &command) != nil {
			continue
		}
		if at, ok := fields[names.timeout]; ok && json.Unmarshal(at, &timeout) != nil {
			continue
		}
		if ours(command) {
			found = append(found, Installed{Event: event, Command: command, Matcher: entry.Matcher, Timeout: timeout, Group: g, Index: i})
		}
	}
	return found
}
