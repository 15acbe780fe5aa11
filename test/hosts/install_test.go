package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// TestCodexTrustIsShownAddedAndRemoved: nod install adds an entry to Codex's configuration, by which Codex
// trusts the hook. A dry run shows the entry, and an uninstallation removes it.
func TestCodexTrustIsShownAddedAndRemoved(t *testing.T) {
	m := rig.NewMachine(t)
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	config := filepath.Join(dir, "config.toml")
	const mine = "model = \"x\" # mine\n"
	require.NoError(t, os.WriteFile(config, []byte(mine), 0o600))
	says := func() string {
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		return string(text)
	}
	stdout, stderr, code := m.Run("install", "codex", "--dry-run")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "+++ "+config+"\n")
	assert.Contains(t, stdout, "+trusted_hash = ")
	assert.Equal(t, mine, says())
	assert.NoFileExists(t, filepath.Join(dir, "hooks.json"))

	_, stderr, code = m.Run("install", "codex")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "Codex trusts the hook now, by "+config)
	trusted := says()
	assert.Contains(t, trusted, mine+"[hooks.state.")

	stdout, stderr, code = m.Run("install", "codex", "--uninstall", "--dry-run")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "-trusted_hash = ")
	assert.Equal(t, trusted, says())
	_, stderr, code = m.Run("install", "codex", "--uninstall")
	require.Zero(t, code, stderr)
	assert.Equal(t, mine, says())

	require.NoError(t, os.WriteFile(config, []byte("hooks = 7\n"), 0o600))
	_, stderr, code = m.Run("install", "codex")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "/hooks", "install names the step that the user has to do")
	assert.Equal(t, "hooks = 7\n", says())
}

// TestInstallListsTheHostsAllowRules: if nod decides every call of a host, nod install lists the allow rules
// in all files that the host reads. It offers the rules of a project only for that project.
func TestInstallListsTheHostsAllowRules(t *testing.T) {
	m := rig.NewMachine(t)
	home, project := t.TempDir(), t.TempDir()
	file := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	file(home, ".claude/settings.json", `{"permissions":{"allow":["Bash(make user:*)","Bash"]}}`)
	file(project, ".claude/settings.json", `{"permissions":{"allow":["Bash(make team:*)"],"deny":["Bash(make prod:*)"]}}`)
	local := file(project, ".claude/settings.local.json", `{"permissions":{"allow":["Bash(make mine:*)"]}}`)
	file(home, ".codex/rules/default.rules", "prefix_rule(pattern=[\"make\", \"codex\"], decision=\"allow\")\n")
	file(home, ".gemini/settings.json", `{"tools":{"allowed":["run_shell_command(make gemini)","read_file"]}}`)
	file(home, ".gemini/policies/auto-saved.toml", "[[rule]]\ncommandPrefix = \"make saved\"\ndecision = \"allow\"\n")
	file(project, ".gemini/settings.json", "{")
	command := func(args ...string) *exec.Cmd {
		c := m.Command(args...)
		c.Dir = project
		c.Env = append(c.Env, "HOME="+home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "COPILOT_HOME=")
		return c
	}
	for agent, wants := range map[string][]string{
		"claude-code": {"  Bash(make user:*)\n", "Not taken over from " + filepath.Join(home, ".claude/settings.json") + ": 1 (it allows every command)\n",
			"by itself, in " + project + ", and nod", "  Bash(make team:*)\n", "  Bash(make mine:*)\n", "nod policy import claude-code --file " + local},
		"codex":   {"Codex allows these by itself, and nod", "  Bash(make codex:*)\n"},
		"gemini":  {"  Bash(make gemini:*)\n", "  Bash(make saved:*)\n", filepath.Join(project, ".gemini/settings.json") + ": 1 (", "Not taken over"},
		"copilot": {"Copilot CLI has no permission rules of its own"},
	} {
		out, err := command("install", agent, "--strict").CombinedOutput()
		require.NoError(t, err, string(out))
		for _, want := range wants {
			assert.Contains(t, string(out), want)
		}
	}
	out, err := command("install", "codex").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), "allows these by itself", "without --strict, Codex's own rules still count")

	out, err = command("policy", "import", "claude-code").Output()
	require.NoError(t, err)
	assert.JSONEq(t, `{"permissions":{"allow":["Bash(make user:*)"]},
		"policies":[{"match":{"projects":["`+project+`"]},"permissions":{"allow":["Bash(make team:*)","Bash(make mine:*)"],"deny":["Bash(make prod:*)"]}}]}`, string(out))
}

// TestInstallImportsTheHostsRules: if the user answers y, nod install adds the host's rules to settings.json
// and keeps the rest of the file. A second run adds nothing.
func TestInstallImportsTheHostsRules(t *testing.T) {
	rig.OnlyLong(t, "TestInstallListsTheHostsAllowRules reads the same rules")
	m := rig.NewMachine(t)
	path := filepath.Join(m.Dir, "settings.json")
	var before map[string]any
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &before))
	home, project := t.TempDir(), t.TempDir()
	for dir, rule := range map[string]string{home: "Bash(make user:*)", project: "Bash(make team:*)"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".claude"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".claude", "settings.json"), []byte(`{"permissions":{"allow":["`+rule+`"]}}`), 0o600))
	}
	for range 2 {
		p := m.NewPane(t, 200, 40, fmt.Sprintf("cd %s && HOME=%s CLAUDE_CONFIG_DIR= %s install claude-code --strict; echo ended", project, home, m.Nod))
		p.Shows("[y/N]")
		p.Types("y", "Enter")
		p.Shows("ended")
		assert.Contains(t, p.Screen(), "is changed")
	}
	var after map[string]any
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &after), string(text))
	for name, was := range before {
		if name != "permissions" {
			assert.Equal(t, was, after[name])
		}
	}
	assert.Equal(t, []any{"Bash(make user:*)"}, after["permissions"].(map[string]any)["allow"])
	assert.Equal(t, []any{map[string]any{
		"match": map[string]any{"projects": []any{project}}, "permissions": map[string]any{"allow": []any{"Bash(make team:*)"}},
	}}, after["policies"])
}

// TestInstallNamesWhenNodIsAsked: nod install says about which calls the host asks nod, and about which it
// does not. nod doctor runs the hook with a test call.
func TestInstallNamesWhenNodIsAsked(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestUninstallRestoresWhatWasThere installs for the same hosts")
	m := rig.NewMachine(t)
	m.StartNod()
	home, project := t.TempDir(), t.TempDir()
	said := func(args ...string) string {
		c := m.Command(args...)
		c.Dir = project
		c.Env = append(c.Env, "HOME="+home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "COPILOT_HOME=")
		out, _ := c.CombinedOutput() // the exit code of the command also depends on other checks
		return string(out)
	}
	trusts := func(name, text string) {
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintf(f, text, project)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	const lacks, asks = "does not run it until ", " asks nod now"
	for agent, c := range map[string]struct{ name, config, text string }{
		"codex":   {"Codex", ".codex/config.toml", "\n[projects.%q]\ntrust_level = \"trusted\"\n"},
		"copilot": {"Copilot CLI", ".copilot/config.json", `{"trustedFolders":[%q]}`},
	} {
		out := said("install", agent, "--project", "--strict")
		assert.Contains(t, out, c.name+" "+lacks+"it trusts this folder")
		assert.NotContains(t, out, asks)
		assert.Contains(t, said("doctor"), c.name+" does not trust the folder of "+project)
		trusts(c.config, c.text)
		found := said("doctor")
		assert.NotContains(t, found, "does not trust the folder")
		assert.Contains(t, found, c.name+" asks nod, by "+project, "%s", found)
		assert.Contains(t, found, "a test call was refused, as it must be")
	}
	out := said("install", "codex")
	assert.Contains(t, out, "whenever Codex would ask its user: codex exec never does")
	out = said("install", "codex", "--strict")
	assert.Contains(t, out, asks+": a test call of its hook reached nod and was refused, as it must be\n")
	out = said("install", "claude-code")
	assert.NotContains(t, out, asks)
	assert.Contains(t, out, "\nnod is asked whenever Claude Code would ask its user, in the permission modes default, acceptEdits and plan; in auto, in which Claude Code may start, bypassPermissions and dontAsk nod is asked nothing unless installed with --strict\n")
	assert.Contains(t, said("doctor"), "bypassPermissions and dontAsk nod is asked nothing unless installed with --strict: nod install claude-code --strict")
	assert.NotContains(t, said("install", "claude-code", "--strict"), "permission mode")

	out = said("--creds", filepath.Join(home, "no-such-key"), "install", "claude-code", "--strict", "--settings", filepath.Join(home, "broken.json"))
	assert.NotContains(t, out, asks)
	assert.Contains(t, out, "holds nod's hook, but its test call for PermissionRequest failed: nod hook claude-code: read credentials: ")

	m.Kill()
	out = said("install", "gemini")
	assert.NotContains(t, out, asks, "nod install says only what it has seen")
	assert.Contains(t, out, "holds nod's hook, but it was not tried; start nod with: nod up, and try the hook with: nod doctor")
	found := said("doctor")
	assert.NotContains(t, found, "permission mode")
	assert.Contains(t, found, "failed a test call: nod hook claude-code: ")
	assert.NotContains(t, found, "a test call was refused, as it must be")
}

// TestUninstallRestoresWhatWasThere: nod uninstall restores a settings file that was empty or had no hooks.
// It removes a directory only if nod install made the directory.
func TestUninstallRestoresWhatWasThere(t *testing.T) {
	m := rig.NewMachine(t)
	run := func(args ...string) {
		_, stderr, code := m.Run(args...)
		require.Zero(t, code, stderr)
	}
	for name, content := range map[string]string{"blank": "", "white space": " \n", "empty hooks": "{\n  \"hooks\": {}\n}\n", "hooks beside": `{"model":"x","hooks":{}}`, "an object": "{}\n"} {
		path := filepath.Join(t.TempDir(), "settings.json")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o640))
		run("install", "claude-code", "--settings", path)
		run("install", "claude-code", "--settings", path, "--strict")
		run("install", "claude-code", "--settings", path, "--uninstall")
		text, err := os.ReadFile(path)
		require.NoError(t, err, name)
		assert.Equal(t, content, string(text), name)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o640), info.Mode().Perm(), name)
	}

	work := filepath.Join(t.TempDir(), "work")
	own, made := filepath.Join(work, "newproj"), filepath.Join(work, "other", ".claude")
	require.NoError(t, os.MkdirAll(own, 0o755))
	run("install", "claude-code", "--settings", filepath.Join(own, "settings.json"))
	run("install", "claude-code", "--settings", filepath.Join(made, "settings.json"))
	run("install", "claude-code", "--settings", filepath.Join(own, "settings.json"), "--uninstall")
	assert.DirExists(t, own, "the user's own directory")
	assert.NoFileExists(t, filepath.Join(own, "settings.json"))
	run("install", "claude-code", "--settings", filepath.Join(made, "settings.json"), "--uninstall")
	assert.NoDirExists(t, filepath.Join(work, "other"), "nod made it")
	assert.DirExists(t, work)
}
