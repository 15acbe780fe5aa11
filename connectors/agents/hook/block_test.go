//go:build unix

package hook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shells returns the installed shells with which hosts run hooks. Codex uses $SHELL, which may be any
// of them.
func shells(t *testing.T) (found []string) {
	for _, name := range []string{"sh", "bash", "dash", "zsh", "fish", "csh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	require.NotEmpty(t, found)
	return found
}

// gates returns the commands of nod's hooks in the settings file path, by hook event.
func gates(t *testing.T, host hook.Host, path string) map[string]string {
	at, err := hook.Inspect(host, hook.InstallOptions{Settings: path})
	require.NoError(t, err)
	commands := map[string]string{}
	for _, h := range at.Hooks {
		commands[h.Event] = h.Command
	}
	return commands
}

// Some hosts run a call although its hook failed. For their events, nod installs a hook command that
// blocks the call if nod is killed or missing: the command exits with code 2 and writes a message to
// stderr. The output of a working hook does not change.
func TestAKilledOrMissingHookBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		program, stdout string
		exit            int
		says            string
	}{
		"answers":       {"#!/bin/sh\necho '{}'\n", "{}\n", 0, ""},
		"is killed":     {"#!/bin/sh\nkill -9 $$\n", "", 2, "nod: the hook did not let this call through: it is blocked. See nod doctor.\n"},
		"has failed":    {"#!/bin/sh\necho no >&2\nexit 2\n", "", 2, "no\nnod: the hook did not"},
		"is gone":       {"", "", 2, "nod: the hook did not"},
		"cannot be run": {"\x00", "", 2, "nod: the hook did not"},
	} {
		program := filepath.Join(t.TempDir(), "it's here", "nod")
		require.NoError(t, os.MkdirAll(filepath.Dir(program), 0o700))
		if c.program != "" {
			testprogram.Write(t, program, c.program)
		}
		for _, host := range hook.Hosts() {
			path := filepath.Join(t.TempDir(), "settings.json")
			_, err := hook.Install(host, hook.InstallOptions{Settings: path, Program: program, Strict: true})
			require.NoError(t, err)
			commands := gates(t, host, path)
			for _, event := range host.Setup.Blocks {
				for _, shell := range shells(t) {
					t.Run(strings.Join([]string{name, host.Name, event, filepath.Base(shell)}, " "), func(t *testing.T) {
						cmd := exec.Command(shell, "-c", commands[event])
						var out, errs strings.Builder
						cmd.Stdout, cmd.Stderr = &out, &errs
						_ = cmd.Run() // the error is the exit code, which the test checks below
						assert.Equal(t, c.exit, cmd.ProcessState.ExitCode(), errs.String())
						assert.Equal(t, c.stdout, out.String())
						assert.Contains(t, errs.String(), c.says)
					})
				}
			}
		}
	}
}

// Install updates the hook of an older version of nod, whose command has neither byShell nor orBlock.
// Uninstall removes such a hook.
func TestInstallUpdatesAHookOfAnEarlierVersion(t *testing.T) {
	for _, host := range hook.Hosts() {
		path := filepath.Join(t.TempDir(), "settings.json")
		installedFor(t, host, path, hook.InstallOptions{Strict: true})
		now := contents(t, path)
		require.Contains(t, now, orBlock)
		old := strings.NewReplacer(byShell, "", orBlock, "").Replace(now)
		require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
		assert.True(t, installedFor(t, host, path, hook.InstallOptions{}).Changed())
		assert.Equal(t, now, contents(t, path), host.Name)
		for _, was := range []string{old, now} {
			require.NoError(t, os.WriteFile(path, []byte(was), 0o600))
			installedFor(t, host, path, hook.InstallOptions{Uninstall: true})
			assert.NotContains(t, contents(t, path), "nod", host.Name)
		}
	}
}
