package main

import (
	"errors"
	"fmt"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/folders"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// asksNow returns a line about a host. The line names the calls about which the host asks nod now, or
// the reason why it does not ask yet. It claims only what this command has checked.
func (c *installCmd) asksNow(e *env, path string) string {
	host, err := hostNamed(c.Agent)
	if err != nil {
		return path + " asks nod now" + e.startHint()
	}
	switch trusted, err := folders.Trusts(host, path); {
	case err != nil:
		return fmt.Sprintf("%s holds nod's hook; whether %s reads it is not known: %v", path, host.Agent, err)
	case !trusted:
		return fmt.Sprintf("%s holds nod's hook, but %s does not run it until it trusts this folder: start %s here and agree to trust it", path, host.Agent, host.Program)
	}
	at, err := hook.Inspect(host, hook.InstallOptions{Settings: path})
	if err != nil {
		return fmt.Sprintf("%s holds nod's hook: %v", path, err)
	}
	seen, err := e.tryHooks(host, at)
	switch unasked := host.Unasked(at); {
	case err != nil:
		return fmt.Sprintf("%s holds nod's hook, but %v", path, err)
	case unasked != "":
		return fmt.Sprintf("%s has nod's hook now: %s\n%s", path, seen, unasked)
	case host.Name == hook.Codex().Name && !isStrict(host, path):
		return fmt.Sprintf("%s asks nod now, whenever Codex would ask its user: codex exec never does, and --strict asks nod about every call: %s", path, seen)
	}
	return fmt.Sprintf("%s asks nod now: %s", path, seen)
}

// tryHooks makes a test call through each hook in a settings file, by the command in that file, and
// describes the result. If the hooks do not ask nod, the error says why.
func (e *env) tryHooks(host hook.Host, at hook.Inspection) (seen string, err error) {
	if hint := e.startHint(); hint != "" {
		return "", errors.New("it was not tried" + hint + ", and try the hook with: nod doctor")
	}
	if at.Off != "" {
		return "", fmt.Errorf("the file's %q keeps every hook from running", at.Off)
	}
	for _, i := range at.Hooks {
		if err := host.Probe(e.ctx, i); err != nil {
			return "", fmt.Errorf("its test call for %s failed: %w; see nod doctor", i.Event, err)
		}
	}
	return "a test call of its hook reached nod and was refused, as it must be", nil
}

// startHint returns the command that starts nod. It is empty if nod already runs, or runs on another
// machine.
func (e *env) startHint() string {
	place, err := e.place.WithDefaults()
	if err != nil || place.URL != "" {
		return ""
	}
	if _, err = bus.ReadRun(place.DataDir); errors.Is(err, bus.ErrNotRunning) {
		return "; start nod with: nod up"
	}
	return ""
}
