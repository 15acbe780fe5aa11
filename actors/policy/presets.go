package policy

import "github.com/nodbus/nod/actors/policy/commands"

import "fmt"

// The presets, from the strictest to the most permissive.
const (
	PresetDesign    = "design"
	PresetReaders   = "readers"
	PresetProject   = "project"
	PresetContained = "contained" // also runs a command line in a container if the line can lose no work
)

func levelOf(preset string) (commands.Level, error) {
	switch preset {
	case PresetDesign:
		return commands.LevelDesign, nil
	case PresetReaders, "":
		return commands.LevelReaders, nil
	case PresetProject, PresetContained:
		return commands.LevelProject, nil
	}
	return 0, fmt.Errorf("%q is not a preset: write %q, %q, %q or %q", preset, PresetDesign, PresetReaders, PresetProject, PresetContained)
}

// Presets returns an explanation of all presets, short enough for one screen.
func Presets() string {
	return `Choose one as permissions.preset in settings.json. Each allows what the one before it does.

design   Read, Glob, Grep, WebSearch, WebFetch
         ls cat head tail pwd echo which, and git status, log, diff, branch and show if they only read
         such commands joined by |, &&, || and ;
readers  (the default) plus plain readers, each with the flags that only read:
         grep rg sed -n find wc sort uniq cut nl tr jq awk diff cmp stat file du cd test and the like
         git rev-parse, ls-files, ls-tree, blame, grep, describe, shortlog, reflog, stash list, tag -l, ...
         the agent's own to-do list
project  plus edits of the project's files, but for .git, agents' and editors' settings and secrets
contained
         plus command lines that can lose no work: they run in a container that writes only the project and
         has no network (Linux); hosts that cannot change a call ask instead

Asked under every preset: secrets (keys, credential stores, .env, browser and cloud profiles, secrets in
URLs), commands that install, publish, delete work or change settings, and everything that nod does not know.
Denied under every preset: writing nod's own files, and nod commands that decide, grant or configure.
Tests, builds and linters run code: contained runs them in its container, the other presets ask. Allow them
once for a project with "always", or take over the rules that "nod policy suggest" proposes.
`
}
