package main

import (
	"fmt"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// preset offers the preset "contained". It does so if this machine can contain commands, an installed
// agent program lets a hook change its calls, and the settings name no preset. Without a terminal, or
// with --yes, it asks nothing and changes nothing.
func (c *setupCmd) preset(e *env) error {
	if c.Yes || !e.interactive() || !changesInputHere() {
		return nil
	}
	if level, _ := contain.Support(); level != contain.Namespaces {
		return nil // nod doctor prints the reason
	}
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	state, err := owner.Settings(ctx)
	if err != nil || state.Settings.Permissions.Preset != "" {
		return err
	}
	fmt.Fprintln(e.stdout, "\nThis machine can run command lines contained: builds and tests then run without a question, write only the project and have no network. nod policy presets explains it.")
	if ok, err := c.agree(e, "Use the preset contained?"); err != nil || !ok {
		return err
	}
	return e.changeSettings("", choosePreset(policy.PresetContained))
}

// changesInputHere reports whether an agent program on this machine lets a hook change a call before
// the call runs.
func changesInputHere() bool {
	for _, host := range hook.Hosts() {
		if (host.ChangesInput || host.ChangesSince != "") && host.Present() {
			return true
		}
	}
	return false
}

// choosePreset returns the settings change that sets only the preset.
func choosePreset(name string) func(*schemas.Settings) ([]member, error) {
	return func(s *schemas.Settings) ([]member, error) {
		s.Permissions.Preset = name
		return []member{{"/permissions", s.Permissions}}, nil
	}
}
