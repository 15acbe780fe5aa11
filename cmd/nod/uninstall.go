package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/cmd/nod/internal/service"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/embed"
)

type uninstallCmd struct {
	Purge bool `help:"Remove the data directory as well: keys, what is pending, the log, backups."`
	Yes   bool `short:"y" help:"Do not ask before that."`
}

// Run takes nod out of this machine: nothing is left but its data, and with
// --purge not even that. What cannot be taken out is said, and keeps the
// launcher that it needs.
func (c *uninstallCmd) Run(e *env) error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	if c.Purge && !c.Yes && !e.interactive() {
		return errors.New("there is no terminal to ask on: say --yes to have the data removed")
	}
	if c.Purge {
		if err := mayPurge(dir); err != nil {
			return err
		}
	}
	if err := e.removeHooks(dir); err != nil {
		return err
	}
	manager, err := service.New(runtime.GOOS)
	if err == nil {
		if err := e.uninstallService(manager); err != nil {
			return err
		}
	}
	if err := launcher.Remove(dir); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Agents that run already still know the hook: start them again.")
	if c.Purge {
		return c.purge(e, dir)
	}
	fmt.Fprintf(e.stdout, "left      %s (nod uninstall --purge removes it)\n", dir)
	return nil
}

// removeHooks takes nod's hook out of every agent program's own settings, and of
// every other file that it was installed in. One that fails keeps no other
// from it.
func (e *env) removeHooks(dir string) error {
	remembered, err := installs.List(dir)
	if err != nil {
		return err
	}
	var errs []error
	names := []string{hook.OpenCodeName, hook.MCPName, hook.ACPName}
	for _, host := range hook.Hosts() {
		names = append(names, host.Name)
	}
	for _, name := range names {
		var places []string
		if name != hook.MCPName && name != hook.ACPName {
			places = []string{""} // the user's own
		}
		for _, in := range remembered {
			if in.Agent == name {
				places = append(places, in.Path)
			}
		}
		for _, place := range places {
			errs = append(errs, e.removeHook(name, place))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w; the rest stays until that is done", err)
	}
	return installs.Clear(dir)
}

func (e *env) removeHook(agent, path string) error {
	if _, err := os.Stat(path); path != "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	change, err := (&installCmd{Agent: agent, Settings: path, Uninstall: true, OnUnavailable: string(hook.UnavailableAsk)}).install(e)
	if err != nil {
		return fmt.Errorf("take nod out of %s's settings: %w", agent, err)
	}
	if change.Changed() {
		fmt.Fprintf(e.stdout, "%s no longer asks nod\n", change.Path)
	}
	if change.Note != "" {
		fmt.Fprintf(e.stderr, "nod: %s\n", change.Note)
	}
	return nil
}

// removeEmpty removes a file that nod made and that holds nothing now, and its
// directories where those are empty too.
func removeEmpty(dir string, in installs.Install) error {
	all, err := installs.List(dir)
	if err != nil {
		return err
	}
	made := slices.ContainsFunc(all, func(i installs.Install) bool { return i.Agent == in.Agent && i.Path == in.Path && i.Created })
	data, err := os.ReadFile(in.Path)
	if !made || err != nil {
		return nil // it is somebody else's, or gone
	}
	var holds map[string]json.RawMessage
	if json.Unmarshal(data, &holds) != nil {
		return nil
	}
	delete(holds, "version") // what nod began it with
	if len(holds) > 0 {
		return nil
	}
	if err := os.Remove(in.Path); err != nil {
		return fmt.Errorf("remove the empty %s: %w", in.Path, err)
	}
	parent := filepath.Dir(in.Path)
	if os.Remove(parent) == nil { // it stays where it has anything else
		_ = os.Remove(filepath.Dir(parent)) // and so does this one, as of .copilot/hooks
	}
	return nil
}

// mayPurge refuses to remove what nod did not make.
func mayPurge(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	format, err := embed.DataFormat(dir)
	if err == nil && format == 0 {
		err = fmt.Errorf("%s is no data directory of nod's: nothing was removed", dir)
	}
	return err
}

// purge removes the data directory whole, once no nod runs on it.
func (c *uninstallCmd) purge(e *env, dir string) error {
	if run, err := bus.ReadRun(dir); err == nil {
		return fmt.Errorf("a nod still runs on %s (process %d): stop it, then say this again", dir, run.PID)
	}
	if !c.Yes && !e.agree("Remove "+dir+" with its keys, what is pending, the log and the backups?") {
		fmt.Fprintf(e.stdout, "left      %s\n", dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the data: %w", err)
	}
	fmt.Fprintf(e.stdout, "removed   %s\n", dir)
	return nil
}
