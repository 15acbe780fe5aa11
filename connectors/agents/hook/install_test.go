package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nodCommand = "/opt/nod/bin/nod hook claude-code --host-timeout 86400s"

// others is a settings file with hooks of other programs. Its unusual spaces, numbers and escapes must
// not change.
const others = `{
    "model":   "opus",
    "env": {"A": "\u00e9<&>", "B": "1.0"},
    "big": 12345678901234567890,
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [ {"type": "command", "command": "check.sh"} ] }
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "say nod hook"}]}]
    },
    "last": null
}
`

func installed(t *testing.T, path string, o hook.InstallOptions) hook.Change {
	t.Helper()
	o.Settings = path
	if o.Program == "" {
		o.Program = "/opt/nod/bin/nod"
	}
	change, err := hook.Install(gateOnly(), o)
	require.NoError(t, err)
	return change
}

// gateOnly returns Claude Code without Setup.Signals, so that Install adds only the hooks that decide
// calls.
func gateOnly() hook.Host {
	host := hook.ClaudeCode()
	host.Setup.Signals = nil
	return host
}

func settings(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

const fresh = `{
  "hooks": {
    "PermissionRequest": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/nod/bin/nod hook claude-code --host-timeout 86400s",
            "timeout": 86400
          }
        ]
      }
    ]
  }
}
`

func TestInstallFresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", ".claude", "settings.json")
	change := installed(t, path, hook.InstallOptions{})
	assert.True(t, change.Changed())
	assert.Equal(t, fresh, contents(t, path))
	assert.Empty(t, change.Warning)

	installed(t, path, hook.InstallOptions{Uninstall: true})
	assert.Equal(t, "{}\n", contents(t, path))
}

func TestInstallIntoFiles(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		strict        bool
	}{
		"empty":        {before: "", after: fresh},
		"empty object": {before: "{}", after: strings.TrimSuffix(fresh, "\n")},
		"of one line": {
			before: `{"model":"opus"}`,
			after:  `{"model":"opus","hooks":{"PermissionRequest":[{"matcher":"*","hooks":[{"type":"command","command":"` + nodCommand + `","timeout":86400}]}]}}`,
		},
		"with tabs and CRLF": {
			before: "{\r\n\t\"hooks\": {\r\n\t\t\"PermissionRequest\": []\r\n\t}\r\n}\r\n",
			after: "{\r\n\t\"hooks\": {\r\n\t\t\"PermissionRequest\": [\r\n\t\t\t{\r\n\t\t\t\t\"matcher\": \"*\",\r\n\t\t\t\t\"hooks\": [\r\n\t\t\t\t\t{\r\n" +
				"\t\t\t\t\t\t\"type\": \"command\",\r\n\t\t\t\t\t\t\"command\": \"" + nodCommand + "\",\r\n\t\t\t\t\t\t\"timeout\": 86400\r\n\t\t\t\t\t}\r\n\t\t\t\t]\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}\r\n",
		},
		"with hooks of others, strict": {
			strict: true, before: others,
			after: strings.NewReplacer(
				`"check.sh"} ] }`, `"check.sh"} ] },
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": "`+byShell+nodCommand+orBlock+`",
                        "timeout": 86400
                    }
                ]
            }`,
				`"say nod hook"}]}]`, `"say nod hook"}]}],
        "PermissionRequest": [
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": "`+nodCommand+`",
                        "timeout": 86400
                    }
                ]
            }
        ]`).Replace(others),
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := settings(t, c.before)
			installed(t, path, hook.InstallOptions{Strict: c.strict})
			assert.Equal(t, c.after, contents(t, path))

			again := installed(t, path, hook.InstallOptions{Strict: c.strict})
			assert.False(t, again.Changed(), "a second time changes nothing")
			assert.Empty(t, again.Diff())
		})
	}
}

// TestUninstallRestores: an uninstallation restores the original file byte for byte.
func TestUninstallRestores(t *testing.T) {
	for name, before := range map[string]string{
		"others": others, "one line": `{"model":"opus","x":[1,2]}`, "object": "{}", "no hooks": "{\n  \"a\": 1\n}",
		"not ours":     `{"hooks":{"PermissionRequest":[{"hooks":[{"type":"command","command":"othertool hook claude-code"}]}]}}`,
		"odd shapes":   `{"hooks":{"PermissionRequest":[7,null,{"hooks":{}},{"hooks":["nod hook claude-code"]},{"hooks":[]},{"hooks":[{"command":["nod hook claude-code"]}]}],"X":5}}`,
		"empty groups": "{\"hooks\": {\"Stop\": [], \"Start\": [{\"hooks\": []}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			path := settings(t, before)
			installed(t, path, hook.InstallOptions{Strict: true})
			require.NotEqual(t, before, contents(t, path))
			installed(t, path, hook.InstallOptions{Uninstall: true})
			assert.Equal(t, before, contents(t, path))
			assert.False(t, installed(t, path, hook.InstallOptions{Uninstall: true}).Changed())
		})
	}
}

func TestUninstallOfNothingChangesNothing(t *testing.T) {
	for _, before := range []string{"", "\n", others, `{"hooks": {}}`, `{"hooks": 5}`} {
		path := settings(t, before)
		assert.False(t, installed(t, path, hook.InstallOptions{Uninstall: true}).Changed())
		assert.Equal(t, before, contents(t, path))
	}
	missing := filepath.Join(t.TempDir(), "none", "settings.json")
	installed(t, missing, hook.InstallOptions{Uninstall: true})
	assert.NoDirExists(t, filepath.Dir(missing))
}

// TestInstallUpdatesNodsOldHooks: if the path of nod has changed, an installation updates nod's old
// hooks, and keeps the fields that the user added. It recognizes an old hook by its command.
func TestInstallUpdatesNodsOldHooks(t *testing.T) {
	for _, old := range []string{
		"nod hook claude-code", "/usr/bin/nod hook claude-code", "'/Users/ann b/nod' hook claude-code --on-unavailable deny",
		`\"/a b/nod.exe\" hook claude-code`, "go run ./cmd/nod hook claude-code --host-timeout 5s",
		"/opt/permission-bus hook claude-code --host-timeout 86400s",
	} {
		t.Run(old, func(t *testing.T) {
			entry := func(command, timeout string) string {
				return `{"type": "command", "command": "` + command + `", "timeout": ` + timeout + `, "async": false}`
			}
			file := func(ours, more string) string {
				return `{"hooks": {"PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "log.sh"}, ` + ours + `]}` + more + `]}}`
			}
			path := settings(t, file(entry(old, "60"), `, {"hooks": [`+entry(old, "1")+`]}`))
			installed(t, path, hook.InstallOptions{})
			assert.Equal(t, file(entry(nodCommand, "86400"), ""), contents(t, path))
		})
	}
}

func TestUninstallKeepsCommandsOfOthers(t *testing.T) {
	for _, command := range []string{
		"othertool hook claude-code", "nodding hook claude-code", "/opt/nod/other hook claude-code", "nod hook claude-codex",
		"nod hook codex --host-timeout 5s", "echo nod hook claude-code", "nod up",
	} {
		before := `{"hooks":{"PermissionRequest":[{"hooks":[{"type":"command","command":"` + command + `"}]}]}}`
		path := settings(t, before)
		assert.False(t, installed(t, path, hook.InstallOptions{Uninstall: true}).Changed(), command)
	}
}

// TestInstallNeverLoosens: if an earlier installation was strict, an installation without --strict
// keeps and updates its hooks.
func TestInstallNeverLoosens(t *testing.T) {
	path := settings(t, "{}")
	installed(t, path, hook.InstallOptions{Strict: true, Program: "/old/nod"})
	installed(t, path, hook.InstallOptions{})
	assert.Equal(t, 2, strings.Count(contents(t, path), nodCommand))
	assert.NotContains(t, contents(t, path), "/old/nod")
}

func TestInstallRefusesUnreadableSettings(t *testing.T) {
	for name, c := range map[string]struct{ content, place string }{
		"cut off":        {"{\n  \"a\": 1,\n", "line 2, column 10"},
		"a comment":      {"{\n  // mine\n  \"a\": 1\n}", "line 2, column 3"},
		"trailing comma": {"{\n  \"a\": 1,\n}", "line 3, column 1"},
		"two values":     {"{} {}", "line 1, column 4"},
		"a list":         {"[]", "no JSON object"},
		"hooks a list":   {"{\n  \"hooks\": []\n}", "line 2, column 12"},
		"an event a map": {"{\n  \"hooks\": {\"PermissionRequest\": {}}\n}", "line 2, column 34"},
		"a later event":  {"{\n  \"hooks\": {\n    \"PreToolUse\": 5\n  }\n}", "line 3, column 19"},
	} {
		t.Run(name, func(t *testing.T) {
			path := settings(t, c.content)
			_, err := hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: path, Program: "nod", Strict: true})
			require.Error(t, err)
			assert.Contains(t, err.Error(), path)
			assert.Contains(t, err.Error(), c.place)
			assert.NotContains(t, err.Error(), "\n")
			assert.Equal(t, c.content, contents(t, path), "untouched")
		})
	}
}

// TestLastDuplicateCounts: if an object has two members with the same name, nod uses the last one, as
// hosts do.
func TestLastDuplicateCounts(t *testing.T) {
	path := settings(t, `{"hooks":{},"hooks":{"Stop":[]}}`)
	installed(t, path, hook.InstallOptions{})
	var read struct{ Hooks map[string][]any }
	require.NoError(t, json.Unmarshal([]byte(contents(t, path)), &read))
	assert.Len(t, read.Hooks["PermissionRequest"], 1)
	assert.True(t, strings.HasPrefix(contents(t, path), `{"hooks":{},"hooks":{"Stop":[],`))
}

func TestInstallKeepsLinkAndMode(t *testing.T) {
	target := settings(t, others)
	require.NoError(t, os.Chmod(target, 0o640))
	link := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.Symlink(target, link))

	change := installed(t, link, hook.InstallOptions{})
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type(), "still a link")
	assert.Contains(t, contents(t, target), nodCommand)
	info, err = os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	assert.Equal(t, filepath.Base(target), filepath.Base(change.Path))
	left, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")

	require.NoError(t, os.Remove(target))
	_, err = hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: link, Program: "nod"})
	assert.ErrorContains(t, err, "does not exist")
}

func TestInstallFailsIfItCannotWrite(t *testing.T) {
	blocked := filepath.Join(settings(t, "{}"), "settings.json") // a path below a regular file, where no file can be
	readOnly := filepath.Dir(settings(t, others))
	require.NoError(t, os.Chmod(readOnly, 0o500))
	t.Cleanup(func() { _ = os.Chmod(readOnly, 0o700) })
	for name, c := range map[string]struct{ path, unless string }{
		"in a file":             {blocked, ""},
		"in a read-only system": {"/proc/self/settings.json", unless(runtime.GOOS != "linux", "only Linux has /proc")},
		"in a read-only directory": {
			filepath.Join(readOnly, "settings.json"), unless(os.Geteuid() == 0, "root may write everywhere"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.unless != "" {
				t.Skip(c.unless)
			}
			_, err := hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: c.path, Program: "nod"})
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	assert.Equal(t, others, contents(t, filepath.Join(readOnly, "settings.json")))
}

func unless(condition bool, reason string) string {
	if condition {
		return reason
	}
	return ""
}

func TestDryRunShowsTheChange(t *testing.T) {
	path := settings(t, "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4\n}")
	change := installed(t, path, hook.InstallOptions{DryRun: true})
	assert.Equal(t, "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4\n}", contents(t, path))
	assert.Equal(t, `--- `+change.Path+`
+++ `+change.Path+`
@@ -2,5 +2,19 @@
   "a": 1,
   "b": 2,
   "c": 3,
-  "d": 4
+  "d": 4,
+  "hooks": {
+    "PermissionRequest": [
+      {
+        "matcher": "*",
+        "hooks": [
+          {
+            "type": "command",
+            "command": "`+nodCommand+`",
+            "timeout": 86400
+          }
+        ]
+      }
+    ]
+  }
 }
\ No newline at end of file
`, change.Diff())
}

// TestDiffAppliesWithPatch: patch(1) applies the diff and produces the new file.
func TestDiffAppliesWithPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("patch is not installed")
	}
	for _, before := range []string{others, "{}", "{}\n", "{\n}", `{"a":1}`} {
		path := settings(t, before)
		change := installed(t, path, hook.InstallOptions{DryRun: true, Strict: true})
		cmd := exec.Command("patch", path)
		cmd.Stdin = strings.NewReader(change.Diff())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, string(change.After), contents(t, path))
	}
}

func TestCommandQuotesEachArgument(t *testing.T) {
	path := settings(t, "{}")
	program := filepath.Join(t.TempDir(), "it's a nod")
	testprogram.Write(t, program, "#!/bin/sh\nprintf '%s|' \"$@\"\n")
	installed(t, path, hook.InstallOptions{Args: []string{"--data", "/My Files/it's $HOME", "--on-unavailable", "deny"}, Program: program})
	var read struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	require.NoError(t, json.Unmarshal([]byte(contents(t, path)), &read))
	out, err := exec.Command("sh", "-c", read.Hooks["PermissionRequest"][0].Hooks[0].Command).Output()
	require.NoError(t, err)
	assert.Equal(t, "hook|claude-code|--host-timeout|86400s|--data|/My Files/it's $HOME|--on-unavailable|deny|", string(out))
}

// TestWithoutAProgram: Install fails if the path of the program is missing. A hook must not run
// whatever program nod is in the host's PATH.
func TestWithoutAProgram(t *testing.T) {
	path := settings(t, "{}")
	_, err := hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: path})
	assert.ErrorContains(t, err, "the path of the nod")
	assert.Equal(t, "{}", contents(t, path))
}

func TestSettingsPathsOfClaudeCode(t *testing.T) {
	home, project, moved := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Chdir(project)
	where := func(o hook.InstallOptions) string {
		o.Program, o.DryRun = "nod", true
		change, err := hook.Install(hook.ClaudeCode(), o)
		require.NoError(t, err)
		return change.Path
	}
	assert.Equal(t, filepath.Join(home, ".claude", "settings.json"), where(hook.InstallOptions{}))
	assert.Equal(t, filepath.Join(project, ".claude", "settings.json"), where(hook.InstallOptions{Project: true}))
	assert.Equal(t, filepath.Join(project, "x.json"), where(hook.InstallOptions{Settings: "x.json"}))
	t.Setenv("CLAUDE_CONFIG_DIR", moved)
	assert.Equal(t, filepath.Join(moved, "settings.json"), where(hook.InstallOptions{}))
}

func TestInstallWarnsIfHooksAreDisabled(t *testing.T) {
	path := settings(t, `{"disableAllHooks": true}`)
	assert.Contains(t, installed(t, path, hook.InstallOptions{}).Warning, "disableAllHooks")
}

// FuzzInstall: for any valid settings, the first installation changes only hooks, and adds a missing
// version for Copilot CLI. A second installation changes nothing.
func FuzzInstall(f *testing.F) {
	for _, seed := range []string{others, fresh, "{}", `{"hooks":{"PreToolUse":[{"hooks":[]}]}}`, "{\"a\" : 1\t}", `{"hooks":{"PermissionRequest":[ ]}}`, `{"version":1,"hooks":{"permissionRequest":[{"bash":"x"}]}}`} {
		for _, host := range hook.Hosts() {
			f.Add(seed, host.Name)
		}
	}
	f.Fuzz(func(t *testing.T, before, name string) {
		host, known := findHost(name)
		if !known {
			return
		}
		path := settings(t, before)
		o := hook.InstallOptions{Settings: path, Program: "/opt/nod/bin/nod", Strict: true}
		change, err := hook.Install(host, o)
		if err != nil {
			assert.Equal(t, before, contents(t, path))
			return
		}
		if strings.TrimSpace(before) == "" {
			before = "{}"
		}
		assert.JSONEq(t, withoutHooks(t, before, host), withoutHooks(t, string(change.After), host))
		again, err := hook.Install(host, o)
		require.NoError(t, err)
		assert.Equal(t, string(change.After), string(again.After))

		o.Uninstall = true
		gone, err := hook.Install(host, o)
		require.NoError(t, err)
		if !strings.Contains(before, "/opt/nod") {
			assert.NotContains(t, string(gone.After), "/opt/nod")
		}
	})
}

func withoutHooks(t *testing.T, settings string, host hook.Host) string {
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(settings), &all), settings)
	delete(all, "hooks")
	if host.Setup.Version != 0 {
		delete(all, "version")
	}
	out, err := json.Marshal(all)
	require.NoError(t, err)
	return string(out)
}
