package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	Purge bool `help:"Also remove the data directory: keys, pending requests, the log, backups."`
	Yes   bool `short:"y" help:"Do not ask before the data directory is removed."`
}

// Run removes nod's hooks, service and launcher from this machine. With --purge it also removes nod's
// data. If Run cannot remove a hook, it returns an error and keeps the launcher, because that hook runs
// the launcher.
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
	fmt.Fprintln(e.stdout, "Agents that run already still use the hook: start them again.")
	if c.Purge {
		return c.purge(e, dir)
	}
	fmt.Fprintf(e.stdout, "left      %s (nod uninstall --purge removes it)\n", dir)
	return nil
}

// removeHooks removes nod's hook from every agent program's user settings, and from every other
// settings file in the list of installations. After a failure it continues with the other files.
func (e *env) removeHooks(dir string) error {
	remembered, err := installs.List(dir)
	if err != nil {
		return err
	}
	var errs []error
	names := []string{hook.OpenCode.Name, hook.Kilo.Name, hook.MCPName, hook.ACPName, hook.MCPGateName}
	for _, host := range hook.Hosts() {
		names = append(names, host.Name)
	}
	for _, name := range names {
		var places []string
		if name != hook.MCPName && name != hook.ACPName && name != hook.MCPGateName {
			places = []string{""} // "" means the user's settings
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
		return fmt.Errorf("%w; fix that and run this command again: the service and the launcher stay until then", err)
	}
	return installs.Clear(dir)
}

func (e *env) removeHook(agent, path string) error {
	if _, err := os.Stat(path); path != "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	change, err := (&installCmd{Agent: agent, Settings: path, Uninstall: true, OnUnavailable: string(hook.UnavailableAsk)}).install(e)
	if err != nil {
		return fmt.Errorf("remove nod from %s's settings: %w", agent, err)
	}
	if change.Changed() {
		fmt.Fprintf(e.stdout, "%s no longer asks nod\n", change.Path)
	}
	if change.Note != "" {
		fmt.Fprintf(e.stderr, "nod: %s\n", change.Note)
	}
	return nil
}

// restoreEmpty restores the state before the installation, if a settings file has no settings any more. A
// file that nod made is removed, with those directories that nod made for it and that are now empty. A file
// that was blank before becomes blank again.
func restoreEmpty(in installs.Install) error {
	data, err := os.ReadFile(in.Path)
	if err != nil || !in.Created && in.Blank == nil {
		return nil // the file is gone, or the user made it and it was not blank
	}
	var holds map[string]json.RawMessage
	if json.Unmarshal(data, &holds) != nil {
		return nil
	}
	delete(holds, "version") // nod wrote the member version when it created the file
	if len(holds) > 0 {
		return nil
	}
	if in.Blank != nil {
		if err := os.WriteFile(in.Path, []byte(*in.Blank), 0o600); err != nil { // WriteFile keeps the mode of an existing file
			return fmt.Errorf("empty %s again: %w", in.Path, err)
		}
		return nil
	}
	if err := os.Remove(in.Path); err != nil {
		return fmt.Errorf("remove the empty %s: %w", in.Path, err)
	}
	for _, dir := range slices.Backward(in.Dirs) {
		if os.Remove(dir) != nil { // Remove fails if the directory has other entries
			break
		}
	}
	return nil
}

// mayPurge returns an error if dir exists but is not a data directory of nod.
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

// purge removes the whole data directory. It refuses while a nod runs on it.
func (c *uninstallCmd) purge(e *env, dir string) error {
	if run, err := bus.ReadRun(dir); err == nil {
		return fmt.Errorf("a nod still runs on %s (process %d): stop it, then run this command again", dir, run.PID)
	}
	if !c.Yes && !e.agree("Remove "+dir+" with its keys, pending requests, log and backups?") {
		fmt.Fprintf(e.stdout, "left      %s\n", dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the data: %w", err)
	}
	fmt.Fprintf(e.stdout, "removed   %s\n", dir)
	return nil
}
