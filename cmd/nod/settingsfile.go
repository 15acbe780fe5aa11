package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// A member is a new value in settings.json. Its path is a JSON Pointer.
type member struct {
	path  string
	value any
}

// changeSettings changes settings.json and applies it to a running nod. The function change gets the
// current settings and returns the members to set. If the file has no approvers, this user is the
// approver in those settings. The rest of the file, with its comments, stays the same. If nod refuses
// the new settings because of a freeze, the file gets its old content back.
func (e *env) changeSettings(path string, change func(*schemas.Settings) ([]member, error)) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if path == "" {
		path = filepath.Join(place.DataDir, "settings.json")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte("{}\n"), nil
	}
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	implied, err := embed.WithApprovers(data) // if the file has no approvers, this user is the approver
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s, err := embed.DecodeSettings(implied)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	before := data
	members, err := change(&s)
	if err != nil {
		return err
	}
	if data, err = withMembers(data, members); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := embed.DecodeSettings(data); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := replaceFile(path, data); err != nil {
		return err
	}
	err = (&settingsApplyCmd{File: path}).Run(e)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) { // nod has refused the settings because of a freeze
		return errors.Join(err, replaceFile(path, before))
	}
	if errors.Is(err, bus.ErrNotRunning) {
		fmt.Fprintf(e.stdout, "%s is changed; nod applies it at its next start\n", path)
		return nil
	}
	return err
}

// withMembers returns a settings.json with these members set.
func withMembers(data []byte, members []member) ([]byte, error) {
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		patch, err := schemas.Encode([]map[string]any{{"op": "add", "path": m.path, "value": m.value}})
		if err != nil {
			return nil, err
		}
		if err := v.Patch(patch); err != nil {
			return nil, err
		}
	}
	v.Format()
	return v.Pack(), nil
}

func replaceFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".settings-*")
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the settings: %w", err), os.Remove(temp.Name()))
	}
	return nil
}

// union returns a, followed by the elements of b that a lacks.
func union(a, b []string) []string {
	all := append([]string{}, a...)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
