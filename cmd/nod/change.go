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

// member is a value that settings.json is to have at a path, as a JSON Pointer.
type member struct {
	path  string
	value any
}

// changeSettings changes settings.json, and has every engine of a running nod
// follow it. change is given what is in force by the file, and says what it is to
// hold; whatever else is in it stays.
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
	implied, err := embed.WithApprovers(data) // where the file names nobody, its user may answer
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s, err := schemas.DecodeSettings(implied)
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
	if _, err := schemas.DecodeSettings(data); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := replaceFile(path, data); err != nil {
		return err
	}
	err = (&settingsApplyCmd{File: path}).Run(e)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) { // refused while nod is frozen
		return errors.Join(err, replaceFile(path, before))
	}
	if errors.Is(err, bus.ErrNotRunning) {
		fmt.Fprintf(e.stdout, "%s is changed; nod follows it when it runs\n", path)
		return nil
	}
	return err
}

// withMembers is a settings.json that holds these members.
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

// replaceFile writes a file at once: a crash leaves the old one or the new one.
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

// union is a with what of b is not in it.
func union(a, b []string) []string {
	all := append([]string{}, a...)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
