package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// A member is a new value in settings.json. Its path is a JSON Pointer; the last token "-" stands for a
// new element at the end of a list.
type member struct {
	path  string
	value any
}

// changeSettings changes settings.json and applies it to a running nod. The function change gets the current
// settings and returns the members to set; all other members stay the same. If the file has no approvers, the
// function gets settings in which the user who runs this command is the approver. If nod refuses the new
// settings because of a freeze, the file gets its old content back.
func (e *env) changeSettings(path string, change func(*schemas.Settings) ([]member, error)) error {
	planned, err := e.planSettings(path, change)
	if err != nil {
		return err
	}
	return e.writeSettings(planned)
}

// planSettings returns the change of settings.json that changeSettings would write, and writes nothing.
func (e *env) planSettings(path string, change func(*schemas.Settings) ([]member, error)) (planned hook.Change, err error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return planned, err
	}
	if path == "" {
		path = filepath.Join(place.DataDir, "settings.json")
	}
	if planned, err = hook.ReadFile(path); err != nil {
		return planned, err
	}
	data := planned.Before
	if planned.Creates() {
		data = []byte("{}\n")
	}
	implied, err := embed.WithApprovers(data) // in a file without approvers, this user is the approver
	if err != nil {
		return planned, fmt.Errorf("%s: %w", path, err)
	}
	s, err := embed.DecodeSettings(implied)
	if err != nil {
		return planned, fmt.Errorf("%s: %w", path, err)
	}
	members, err := change(&s)
	if err != nil || len(members) == 0 {
		return planned, err
	}
	if data, err = withMembers(data, members); err != nil {
		return planned, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := embed.DecodeSettings(data); err != nil {
		return planned, fmt.Errorf("nothing was changed: %w", err)
	}
	planned.After = data
	return planned, nil
}

// writeSettings writes a planned settings.json, and applies it to a running nod.
func (e *env) writeSettings(planned hook.Change) error {
	if err := planned.Write(); err != nil {
		return err
	}
	err := (&settingsApplyCmd{File: planned.Path}).Run(e)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) { // nod has refused the settings because of a freeze
		return errors.Join(err, planned.Undo())
	}
	if errors.Is(err, bus.ErrNotRunning) {
		fmt.Fprintf(e.stdout, "%s is changed; nod applies it at its next start\n", planned.Path)
		return nil
	}
	return err
}

// withMembers returns a settings.json in which the given members are set. It adds missing objects and
// lists on a member's path.
func withMembers(data []byte, members []member) ([]byte, error) {
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	add := func(path string, value any) error {
		patch, err := schemas.Encode([]map[string]any{{"op": "add", "path": path, "value": value}})
		if err != nil {
			return err
		}
		return v.Patch(patch)
	}
	for _, m := range members {
		for i := 1; i < len(m.path); i++ {
			if m.path[i] != '/' || v.Find(m.path[:i]) != nil {
				continue
			}
			var missing any = struct{}{}
			if strings.HasPrefix(m.path[i:], "/-") {
				missing = []any{}
			}
			if err := add(m.path[:i], missing); err != nil {
				return nil, err
			}
		}
		if err := add(m.path, m.value); err != nil {
			return nil, err
		}
	}
	v.Format()
	return v.Pack(), nil
}

// union returns the first list, followed by the elements of the second list that the first lacks.
func union(a, b []string) []string {
	return append(append([]string{}, a...), lacking(a, b)...)
}

// lacking returns the elements of the second list that the first list lacks, each once.
func lacking(a, b []string) (more []string) {
	for _, s := range b {
		if !slices.Contains(a, s) && !slices.Contains(more, s) {
			more = append(more, s)
		}
	}
	return more
}
