package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func installedFor(t *testing.T, host hook.Host, path string, o hook.InstallOptions) hook.Change {
	t.Helper()
	o.Settings, o.Program = path, "/opt/nod/bin/nod"
	change, err := hook.Install(host, o)
	require.NoError(t, err)
	return change
}

// group returns the list of an event in a settings file. It contains one group with nod's hook. timeout
// is in the host's unit.
func group(host, timeout string) string {
	return `[{"matcher":"*","hooks":[{"type":"command","command":"/opt/nod/bin/nod hook ` + host + ` --host-timeout 86400s","timeout":` + timeout + `}]}]`
}

// byShell and orBlock come before and after the hook command at events at which the host would run a
// call whose hook failed.
const byShell = `/bin/sh -c 'exec \"$0\" \"$@\"' `

const orBlock = ` || /bin/sh -c 'echo nod: the hook did not let this call through: it is blocked. See nod doctor. >&2; false' || exit 2`

// gate returns a list like group does, but its hook blocks the call if nod is missing.
func gate(host, timeout string) string {
	return strings.NewReplacer("/opt/nod", byShell+"/opt/nod", "86400s", "86400s"+orBlock).Replace(group(host, timeout))
}

// signals returns JSON members, each after a comma: nod's hook for each of the given events. At these
// events, the host only reports that it has continued.
func signals(host, timeout string, events ...string) string {
	all := ""
	for _, event := range events {
		all += `,"` + event + `":` + group(host, timeout)
	}
	return all
}

func claudeSignals() string {
	return signals("claude-code", "10", "PostToolUse", "Stop", "SubagentStop", "UserPromptSubmit", "SessionEnd")
}

// TestInstallOmitsEventsThatAnOldHostRejects: if a settings file contains an unknown event, an old
// Claude Code ignores the whole file, including the user's own rules. Install therefore omits the
// event for an old version.
func TestInstallOmitsEventsThatAnOldHostRejects(t *testing.T) {
	const event = "PostToolUseFailure"
	for version, known := range map[string]bool{"2.1.197": true, "2.1.329": true, "3.0.0": true, "2.1.9": false, "2.0.200": false, "": false, "new": false} {
		path := filepath.Join(t.TempDir(), "settings.json")
		change := installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{HostVersion: version})
		assert.Equal(t, known, strings.Contains(string(change.After), event), version)
		again := installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{HostVersion: version, Strict: true})
		assert.Equal(t, known, strings.Contains(string(again.After), event), version)
		gone := installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{Uninstall: true})
		assert.NotContains(t, string(gone.After), event)
	}
}

// TestTurnsAreAskedAboutOnRequest: only an installation with Turns asks people for the agent's next
// prompt. A later installation keeps this choice if its own Turns is nil.
func TestTurnsAreAskedAboutOnRequest(t *testing.T) {
	path, yes, no := filepath.Join(t.TempDir(), "settings.json"), true, false
	for _, c := range []struct {
		turns *bool
		asks  bool
	}{{nil, false}, {&yes, true}, {nil, true}, {&no, false}, {nil, false}, {&yes, true}} {
		text := string(installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{Turns: c.turns, HostVersion: "2.1.329"}).After)
		assert.Equal(t, c.asks, strings.Contains(text, `"/opt/nod/bin/nod hook claude-code --host-timeout 86400s --turns"`), text)
		assert.Equal(t, 1, strings.Count(text, `"Stop"`))
		found, err := hook.Inspect(hook.ClaudeCode(), hook.InstallOptions{Settings: path})
		require.NoError(t, err)
		for _, i := range found.Signals {
			if i.Event == "Stop" {
				assert.Equal(t, c.asks, i.Timeout == 86400)
			}
		}
	}
	for version, names := range map[string]string{"2.1.197": "found 2.1.197", "": "is claude in PATH?"} {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: path, Program: "/opt/nod/bin/nod", Turns: &yes, HostVersion: version})
		require.ErrorContains(t, err, names)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after))
	}
	older := installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{HostVersion: "2.1.197"})
	assert.NotContains(t, string(older.After), "--turns", "a host that was replaced by an older one")
	gone := installedFor(t, hook.ClaudeCode(), path, hook.InstallOptions{Uninstall: true})
	assert.NotContains(t, string(gone.After), "nod")
}

// With --turns, the hooks of Codex's turns, and of turns that failed, wait as long as those of other turns.
func TestTurnsOfOtherEvents(t *testing.T) {
	yes := true
	for _, c := range []struct {
		host    hook.Host
		version string
		turns   int
	}{{hook.ClaudeCode(), "2.1.329", 2}, {hook.Codex(), "0.169.0", 1}} {
		path := filepath.Join(t.TempDir(), "settings.json")
		change := installedFor(t, c.host, path, hook.InstallOptions{Turns: &yes, HostVersion: c.version})
		assert.Equal(t, c.turns, strings.Count(string(change.After), "--turns"), string(change.After))
		change = installedFor(t, c.host, path, hook.InstallOptions{Turns: new(bool), HostVersion: c.version})
		assert.NotContains(t, string(change.After), "--turns")
	}
}

// At some events, Gemini CLI would refuse a prompt or the result of a call if the hook were killed or
// missing. The shell hides this failure from Gemini CLI.
func TestAFailedHookDoesNotStopGemini(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	installedFor(t, hook.Gemini(), path, hook.InstallOptions{HostVersion: "0.61.0"})
	found, err := hook.Inspect(hook.Gemini(), hook.InstallOptions{Settings: path})
	require.NoError(t, err)
	ignored := 0
	for _, i := range found.Signals {
		if i.Event == "BeforeAgent" || i.Event == "AfterTool" {
			out, err := exec.Command("/bin/sh", "-c", i.Command).CombinedOutput() // there is no /opt/nod/bin/nod
			require.NoError(t, err)
			assert.Contains(t, string(out), "{}")
			ignored++
		}
	}
	assert.Equal(t, 2, ignored)
}

const copilotHook = `{"type":"command","bash":"` + byShell + `/opt/nod/bin/nod hook copilot --host-timeout 86400s` + orBlock + `","timeoutSec":86400}`

const copilotSignal = `{"type":"command","bash":"/opt/nod/bin/nod hook copilot --host-timeout 86400s","timeoutSec":10}`

const copilotSignals = `,"userPromptSubmitted":[` + copilotSignal + `],"sessionEnd":[` + copilotSignal + `]`

const cursorHook = `{"type":"command","command":"` + byShell + `/opt/nod/bin/nod hook cursor --host-timeout 86400s` + orBlock + `","timeout":86400,"failClosed":true}`

const vsCodeHook = `{"type":"command","command":"` + byShell + `/opt/nod/bin/nod hook vscode --host-timeout 86400s` + orBlock + `","timeout":86400}`

const cursorSignal = `{"type":"command","command":"/opt/nod/bin/nod hook cursor --host-timeout 86400s","timeout":10}`

func TestInstallForEachHost(t *testing.T) {
	for name, c := range map[string]struct{ plain, strict string }{
		"claude-code": {
			`{"hooks":{"PermissionRequest":` + group("claude-code", "86400") + claudeSignals() + `}}`,
			`{"hooks":{"PermissionRequest":` + group("claude-code", "86400") + `,"PreToolUse":` + gate("claude-code", "86400") + claudeSignals() + `}}`,
		},
		"codex": {
			`{"hooks":{"PermissionRequest":` + group("codex", "86400") + signals("codex", "10", "Stop") + `}}`,
			`{"hooks":{"PermissionRequest":` + group("codex", "86400") + `,"PreToolUse":` + gate("codex", "86400") + signals("codex", "10", "Stop") + `}}`,
		},
		"gemini": {
			`{"hooks":{"BeforeTool":` + gate("gemini", "86400000") + signals("gemini", "10000", "SessionEnd") + `}}`,
			`{"hooks":{"BeforeTool":` + gate("gemini", "86400000") + signals("gemini", "10000", "SessionEnd") + `}}`,
		},
		"qwen-code": {
			`{"hooks":{"PreToolUse":` + gate("qwen-code", "86400000") + signals("qwen-code", "10000", "SessionEnd") + `}}`,
			`{"hooks":{"PreToolUse":` + gate("qwen-code", "86400000") + signals("qwen-code", "10000", "SessionEnd") + `}}`,
		},
		"vscode": {
			`{"hooks":{"PreToolUse":[` + vsCodeHook + `]}}`,
			`{"hooks":{"PreToolUse":[` + vsCodeHook + `]}}`,
		},
		"droid": {
			`{"PreToolUse":` + gate("droid", "86400") + signals("droid", "10", "SessionEnd") + `}`,
			`{"PreToolUse":` + gate("droid", "86400") + signals("droid", "10", "SessionEnd") + `}`,
		},
		"cursor": {
			`{"version":1,"hooks":{"preToolUse":[` + cursorHook + `],"sessionEnd":[` + cursorSignal + `]}}`,
			`{"version":1,"hooks":{"preToolUse":[` + cursorHook + `],"sessionEnd":[` + cursorSignal + `]}}`,
		},
		"copilot": {
			`{"version":1,"hooks":{"permissionRequest":[` + copilotHook + `]` + copilotSignals + `}}`,
			`{"version":1,"hooks":{"permissionRequest":[` + copilotHook + `]` + copilotSignals + `}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostNamed(t, name)
			for strict, want := range map[bool]string{false: c.plain, true: c.strict} {
				path := filepath.Join(t.TempDir(), "new", filepath.Base(host.Setup.File))
				o := hook.InstallOptions{Strict: strict}
				first := installedFor(t, host, path, o)
				assert.True(t, first.Changed())
				assert.Equal(t, host.Setup.Note, first.Note)
				assert.Equal(t, want, compact(t, []byte(contents(t, path))))
				again := installedFor(t, host, path, o)
				assert.False(t, again.Changed(), "a second time changes nothing")
				assert.Empty(t, again.Note)

				installedFor(t, host, path, hook.InstallOptions{Uninstall: true})
				assert.NotContains(t, contents(t, path), "nod hook")
			}
		})
	}
}

// TestUninstallRestoresEachHostsFile: if nod's hooks for a host are installed and then uninstalled,
// every byte of the file is as before. An uninstallation for another host changes nothing.
func TestUninstallRestoresEachHostsFile(t *testing.T) {
	for _, host := range hook.Hosts() {
		if host.Setup.Script != "" {
			continue // nod's program is everything in the file of this host
		}
		event := host.Setup.Events[0]
		elsewhere := "nod hook opencode"
		for name, before := range map[string]string{
			"groups":     "{\n\t\"version\": 1,\n\t\"z\": 1.0, \"a\": \"\\u00e9\",\n\t\"hooks\": {\"" + event + "\": [ {\"matcher\": \"x\", \"hooks\": [{\"type\": \"command\", \"command\": \"" + elsewhere + "\"}]} ], \"Zeta\": []}\n}\n",
			"flat":       `{"version":1, "hooks": {"` + event + `": [{"type":"command","bash":"` + elsewhere + `","timeoutSec":5}]},"b":[ ]}`,
			"odd shapes": `{"version":1,"hooks":{"` + event + `":[7,null,{"hooks":{}},{"hooks":[]},{"bash":["nod hook copilot"]}],"X":5}}`,
		} {
			t.Run(host.Name+"/"+name, func(t *testing.T) {
				path := settings(t, before)
				installedFor(t, host, path, hook.InstallOptions{Strict: true})
				require.Contains(t, contents(t, path), "nod hook "+host.Name)
				for _, other := range hook.Hosts() {
					if other.Name != host.Name {
						assert.False(t, installedFor(t, other, path, hook.InstallOptions{Uninstall: true}).Changed(), other.Name)
					}
				}
				shown := installedFor(t, host, path, hook.InstallOptions{Uninstall: true, DryRun: true})
				assert.Contains(t, shown.Diff(), "nod hook "+host.Name)
				installedFor(t, host, path, hook.InstallOptions{Uninstall: true})
				assert.Equal(t, before, contents(t, path))
			})
		}
	}
}

// TestInstallUpdatesCopilotsHookInPlace: a second installation updates nod's hook where it is, keeps
// the fields that the user added, and removes duplicates of the hook.
func TestInstallUpdatesCopilotsHookInPlace(t *testing.T) {
	const others = `{"type":"command","bash":"log.sh"}`
	file := func(ours ...string) string {
		return `{"version":1,"hooks":{"permissionRequest":[` + strings.Join(append([]string{others}, ours...), ",") + `]` + copilotSignals + `}}`
	}
	old := `{"type":"command","bash":"/old/nod hook copilot","timeoutSec":30,"cwd":"/x"}`
	path := settings(t, file(old, old))
	installedFor(t, hook.Copilot(), path, hook.InstallOptions{})
	assert.Equal(t, file(`{"type":"command","bash":"`+byShell+`/opt/nod/bin/nod hook copilot --host-timeout 86400s`+orBlock+`","timeoutSec":86400,"cwd":"/x"}`), contents(t, path))
}

// The version of a host that nod was not run with changes nothing.
func TestAHostWithoutTestedVersions(t *testing.T) {
	plain := installedFor(t, hook.VSCode(), filepath.Join(t.TempDir(), "nod-vscode.json"), hook.InstallOptions{})
	versioned := installedFor(t, hook.VSCode(), filepath.Join(t.TempDir(), "nod-vscode.json"), hook.InstallOptions{HostVersion: "1.120.0"})
	assert.Equal(t, string(plain.After), string(versioned.After))
}

func TestSettingsPathsOfEachHost(t *testing.T) {
	home, project, moved := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", "")
	t.Setenv("COPILOT_HOME", "")
	t.Setenv("FACTORY_HOME_OVERRIDE", "")
	t.Chdir(project)
	where := func(host hook.Host, o hook.InstallOptions) string {
		o.Program, o.DryRun = "nod", true
		change, err := hook.Install(host, o)
		require.NoError(t, err)
		return change.Path
	}
	for name, c := range map[string]struct{ user, project, env, moved string }{
		"codex":     {".codex/hooks.json", ".codex/hooks.json", "CODEX_HOME", "hooks.json"},
		"gemini":    {".gemini/settings.json", ".gemini/settings.json", "", ""},
		"qwen-code": {".qwen/settings.json", ".qwen/settings.json", "", ""},
		"vscode":    {".copilot/hooks/nod-vscode.json", ".github/hooks/nod-vscode.json", "", ""},
		"droid":     {".factory/hooks.json", ".factory/hooks.json", "FACTORY_HOME_OVERRIDE", ".factory/hooks.json"},
		"cursor":    {".cursor/hooks.json", ".cursor/hooks.json", "", ""},
		"copilot":   {".copilot/hooks/nod.json", ".github/hooks/nod.json", "COPILOT_HOME", "hooks/nod.json"},
	} {
		host := hostNamed(t, name)
		assert.Equal(t, filepath.Join(home, c.user), where(host, hook.InstallOptions{}))
		assert.Equal(t, filepath.Join(project, c.project), where(host, hook.InstallOptions{Project: true}))
		if c.env != "" {
			t.Setenv(c.env, moved)
			assert.Equal(t, filepath.Join(moved, c.moved), where(host, hook.InstallOptions{}))
		}
	}
}

// Gemini CLI 0.61.0 accepts comments in its settings, but no trailing comma and no byte order mark. nod
// therefore accepts a file with comments, and refuses a file with either of the others.
func TestInstallKeepsGeminisComments(t *testing.T) {
	for name, before := range map[string]string{
		"lines":          "// mine\n{\n  // the theme\n  \"ui\": {\"theme\": \"//x /* */\"} // dark\n  /* the end */\n}\n",
		"before hooks":   "{\r\n\t// the hooks\r\n\t\"hooks\": {\r\n\t\t// none yet\r\n\t\t\"AfterTool\": []\r\n\t}\r\n}\r\n",
		"in one line":    `{"a": 1 /* one */}`,
		"a URL and text": `{"a": "http://x", "b": "a \" // b"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := settings(t, before)
			change := installedFor(t, hook.Gemini(), path, hook.InstallOptions{})
			for _, comment := range []string{"// the theme", "// the hooks", "// none yet", "/* the end */", "/* one */"} {
				assert.Equal(t, strings.Count(before, comment), strings.Count(contents(t, path), comment), comment)
			}
			at, err := hook.Inspect(hook.Gemini(), hook.InstallOptions{Settings: path})
			require.NoError(t, err)
			assert.Len(t, at.All(), 2)
			assert.False(t, installedFor(t, hook.Gemini(), path, hook.InstallOptions{}).Changed())
			_, err = hook.Install(hook.Gemini(), hook.InstallOptions{Settings: path, Uninstall: true})
			require.NoError(t, err)
			assert.Equal(t, before, contents(t, path), string(change.After))
		})
	}
	for name, before := range map[string]string{"a trailing comma": `{"a": 1,}`, "a byte order mark": "\ufeff{}", "an open comment": "{} /* x"} {
		path := settings(t, before)
		_, err := hook.Install(hook.Gemini(), hook.InstallOptions{Settings: path, Program: "nod"})
		assert.ErrorContains(t, err, "nothing was changed", name)
		assert.Equal(t, before, contents(t, path))
	}
}

// If a host has no settings file for hooks, nod gives it a program that contains nod's hooks. nod
// replaces no other program, and trusts its own only if nobody has changed it.
func TestInstallWritesAScript(t *testing.T) {
	host := hook.Pi()
	path := filepath.Join(t.TempDir(), "extensions", "nod.ts")
	inspected := func() hook.Inspection {
		t.Helper()
		at, err := hook.Inspect(host, hook.InstallOptions{Settings: path})
		require.NoError(t, err)
		return at
	}
	installedFor(t, host, path, hook.InstallOptions{})
	written := contents(t, path)
	require.Len(t, inspected().Hooks, 1)
	require.Len(t, inspected().Signals, 1)
	assert.Equal(t, "/opt/nod/bin/nod", inspected().Hooks[0].Program())
	assert.Contains(t, written, "/opt/nod/bin/nod hook pi --host-timeout 86400s || /bin/sh -c")
	assert.False(t, installedFor(t, host, path, hook.InstallOptions{}).Changed(), "a second time changes nothing")

	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(written, "block: true", "block: false", 1)), 0o600))
	assert.Empty(t, inspected().Hooks, "a changed program may ask nod nothing")
	installedFor(t, host, path, hook.InstallOptions{})
	assert.Equal(t, written, contents(t, path))

	installedFor(t, host, path, hook.InstallOptions{Uninstall: true})
	assert.Equal(t, "{}\n", contents(t, path))

	require.NoError(t, os.WriteFile(path, []byte("export default function () {}\n"), 0o600))
	_, err := hook.Install(host, hook.InstallOptions{Settings: path, Program: "/opt/nod/bin/nod"})
	assert.ErrorContains(t, err, "was not written by nod install pi: move it away first")
	assert.False(t, installedFor(t, host, path, hook.InstallOptions{Uninstall: true}).Changed())
}

// pi changes some paths before it uses them. No rule allows a call with such a path.
func TestPiChangesSomePaths(t *testing.T) {
	for path, plain := range map[string]bool{
		"a.txt": true, "/w/a.txt": true, "../a": true, "": true, "@.env": false, "~/.ssh/id_rsa": false, "~": false, ".\u00a0env": false, "it's": false, "é": false,
	} {
		input, err := json.Marshal(map[string]any{
			"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "tool_use_id": "1", "tool_name": "read", "tool_input": map[string]string{"path": path},
		})
		require.NoError(t, err)
		call, err := hook.Pi().Dialect.Read(input)
		require.NoError(t, err)
		assert.Equal(t, plain, call.Action == schemas.ActionFileRead, "%q: %s", path, call.Action)
	}
}
