package main

import (
	"fmt"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// preset offers the preset contained if this machine can contain commands, an agent program here
// runs a changed call, and the settings name no preset. It never does so for a script.
func (c *setupCmd) preset(e *env) error {
	if c.Yes || !e.interactive() || !changesInputHere() {
		return nil
	}
	if level, _ := contain.Support(); level != contain.Namespaces {
		return nil // nod doctor tells why
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

// changesInputHere reports whether an agent program on this machine runs changed calls.
func changesInputHere() bool {
	for _, host := range hook.Hosts() {
		if (host.ChangesInput || host.ChangesSince != "") && host.Present() {
			return true
		}
	}
	return false
}

// choosePreset returns the change of the settings that sets the preset and keeps everything else.
func choosePreset(name string) func(*schemas.Settings) ([]member, error) {
	return func(s *schemas.Settings) ([]member, error) {
		s.Permissions.Preset = name
		return []member{{"/permissions", s.Permissions}}, nil
	}
}
