package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Installed is one of nod's hooks as a host's settings have it.
type Installed struct {
	Event   string
	Command string // the shell command, whole
	Matcher *string
	Timeout int64 // in the host's unit; 0 where the file names none
	// Group and Index are its place under its event, from 0.
	Group, Index int
}

// Program is the path that the hook's command runs; "" where that is no plain
// word.
func (i Installed) Program() string {
	word := firstWord.FindString(strings.TrimSpace(i.Command))
	if inner, quoted := strings.CutPrefix(word, "'"); quoted {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
	}
	return word
}

var firstWord = regexp.MustCompile(`^(?:'(?:[^']|'\\'')*'|[A-Za-z0-9_./+,:@%=-]+)`)

// Present reports whether host is on this machine: its program, or what it
// keeps in the user's home.
func (h Host) Present() bool {
	if _, err := exec.LookPath(h.Program); err == nil {
		return true
	}
	dir := os.Getenv(h.Setup.DirEnv)
	if h.Setup.DirEnv == "" || dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return false
		}
		dir = filepath.Join(home, h.Setup.Dir)
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// Inspection is what a host's settings file says of nod.
type Inspection struct {
	Path   string // the file, links followed
	Exists bool
	Hooks  []Installed
	// Signals are those that only tell how the host went on.
	Signals []Installed
	// Off names the switch that keeps every hook of the file from running;
	// empty where it is not on.
	Off string
}

// Inspect reads the file that Install would change for host, and changes
// nothing. A file that Install would refuse is an error.
func Inspect(host Host, o InstallOptions) (Inspection, error) {
	path, err := settingsPath(host, o)
	if err != nil {
		return Inspection{}, err
	}
	change, err := open(path)
	if err != nil {
		return Inspection{Path: path}, err
	}
	found, err := inspect(host, change.Path, change.Before)
	found.Exists = !change.isNew
	return found, err
}

// InspectChange reads the file of a Change as it was before, and as it is once the
// change is written.
func InspectChange(host Host, c Change) (before, after Inspection, err error) {
	if before, err = inspect(host, c.Path, c.Before); err == nil {
		after, err = inspect(host, c.Path, c.After)
	}
	return before, after, err
}

func inspect(host Host, path string, data []byte) (Inspection, error) {
	found := Inspection{Path: path, Exists: true}
	doc, err := parseDocument(path, data)
	if err != nil {
		return found, err
	}
	if doc.isTrue(host.Setup.Off) {
		found.Off = host.Setup.Off
	}
	s := host.Setup
	if found.Hooks, err = hooksUnder(doc, host, slices.Concat(s.Events, s.Strict)); err == nil {
		found.Signals, err = hooksUnder(doc, host, slices.Concat(s.Signals, s.Newer))
	}
	return found, err
}

// All are the hooks and the signals.
func (i Inspection) All() []Installed { return slices.Concat(i.Hooks, i.Signals) }

// ownUnder are nod's hooks under some events.
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

// writtenHook is a hook as files have it, in any host's words.
type writtenHook struct {
	Command    string `json:"command"`
	Bash       string `json:"bash"`
	Timeout    int64  `json:"timeout"`
	TimeoutSec int64  `json:"timeoutSec"`
}

// ownIn are nod's hooks in one element of an event's list. What has another
// shape is not nod's.
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
	ours := ownCommand(host)
	for i, raw := range entry.Hooks {
		var h writtenHook
		if json.Unmarshal(raw, &h) != nil {
			continue
		}
		command, timeout := h.Command, h.Timeout
		if host.Setup.Flat {
			command, timeout = h.Bash, h.TimeoutSec
		}
		if ours(command) {
			found = append(found, Installed{Event: event, Command: command, Matcher: entry.Matcher, Timeout: timeout, Group: g, Index: i})
		}
	}
	return found
}
