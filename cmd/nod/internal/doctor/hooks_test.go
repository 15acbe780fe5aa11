package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/testprogram"
)

// home is a temporary home directory. One of its directories is in PATH, and tests create agent
// programs there.
type home struct {
	*testing.T
	dir, bin, data string
}

func newHome(t *testing.T) *home {
	h := &home{T: t, dir: t.TempDir(), bin: t.TempDir(), data: t.TempDir()}
	t.Setenv("HOME", h.dir)
	t.Setenv("PATH", h.bin)
	for _, host := range hook.Hosts() {
		for _, name := range []string{host.Setup.DirEnv, host.Setup.HomeEnv} {
			if name != "" {
				t.Setenv(name, "")
			}
		}
	}
	return h
}

// program creates a program in PATH that prints the given text.
func (h *home) program(name, says string) string {
	path := filepath.Join(h.bin, name)
	testprogram.Write(h, path, "#!/bin/sh\necho '"+says+"'\n")
	return path
}

func (h *home) install(host hook.Host, o hook.InstallOptions) hook.Change {
	change, err := hook.Install(host, o)
	require.NoError(h, err)
	in := installs.Install{Agent: host.Name, Path: change.Path, At: time.Now().Add(-time.Minute)}
	require.NoError(h, installs.Remember(h.data, in, true))
	return change
}

func (h *home) findings() []Finding { return hooks(h.Context(), options(h.data)) }

func TestHooks(t *testing.T) {
	h := newHome(t)
	says(t, h.findings(), Note, "no agent program")
	h.program("claude", "2.1.200 (Claude Code)")
	says(t, h.findings(), Note, "Claude Code does not ask nod: nod install claude-code")

	nod := h.program("nod", "")
	change := h.install(hook.ClaudeCode(), hook.InstallOptions{Program: nod})
	found := h.findings()
	says(t, found, OK, "Claude Code asks nod, by "+change.Path)
	says(t, found, Note, "has not run the hook since it was installed")
	says(t, found, OK, "2.1.200 is a version that nod was tested with")
	assert.True(t, Healthy(found))

	installs.Ran(h.data, "claude-code", "0.4.0")
	says(t, h.findings(), Note, "ago; the hook is version 0.4.0, and this nod 0.5.0")
	installs.Ran(h.data, "claude-code", "0.5.0")
	says(t, h.findings(), OK, "the hook is version 0.5.0")

	for version, text := range map[string]string{"2.1.9": "older", "3.0.0": "newer", "none": "tells no version"} {
		h.program("claude", version)
		says(t, h.findings(), Note, text)
	}

	require.NoError(t, os.Chmod(nod, 0o600))
	says(t, h.findings(), Wrong, "which cannot be run: nod install claude-code")
	require.NoError(t, os.Remove(nod))
	says(t, h.findings(), Wrong, "which is not there")
	require.NoError(t, os.WriteFile(change.Path, []byte(`{"disableAllHooks":true,`+string(change.After[1:])), 0o600))
	says(t, h.findings(), Wrong, "so that no hook runs")
	require.NoError(t, os.WriteFile(change.Path, []byte(`{`), 0o600))
	says(t, h.findings(), Wrong, "not valid JSON")
}

// The doctor also checks the hook of a project that is not the current directory.
func TestHooksOfProjects(t *testing.T) {
	h := newHome(t)
	path := filepath.Join(t.TempDir(), "settings.json")
	h.install(hook.Gemini(), hook.InstallOptions{Settings: path, Program: h.program("nod", "")})
	says(t, h.findings(), OK, "Gemini CLI asks nod, by "+path)
	require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o600))
	says(t, h.findings(), Wrong, "the hook is gone from "+path)
	require.NoError(t, os.Remove(path))
	says(t, h.findings(), Note, "which is gone")
}

// The doctor makes a test call of each hook. It reports a hook of an old version that would let calls
// run if nod were removed.
func TestHooksAreProbed(t *testing.T) {
	h := newHome(t)
	change := h.install(hook.Gemini(), hook.InstallOptions{Program: h.program("nod", "")})
	says(t, h.findings(), OK, "a test call was refused, as it must be")
	o := options(h.data)
	o.Try = nil
	says(t, hooks(t.Context(), o), Wrong, `failed a test call: the hook's reply is not the expected refusal: ""`)
	old := strings.ReplaceAll(string(change.After), " || /bin/sh", "; /bin/sh")
	require.NoError(t, os.WriteFile(change.Path, []byte(old), 0o600))
	says(t, h.findings(), Wrong, "lets calls run if nod is killed or gone: nod install gemini")
}

// An agent program ignores the hooks of a project if the user has not trusted the project's folder. The
// doctor reports that.
func TestDoctorReportsFoldersThatAreNotTrusted(t *testing.T) {
	h := newHome(t)
	project := t.TempDir()
	path := filepath.Join(project, ".github", "hooks", "nod.json")
	h.install(hook.Copilot(), hook.InstallOptions{Settings: path, Program: h.program("nod", "")})
	says(t, h.findings(), Wrong, "Copilot CLI does not trust the folder of "+path+", so that no hook of it runs: start copilot there")
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, ".copilot"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, ".copilot", "config.json"), []byte(`{"trustedFolders":["`+project+`"]}`), 0o600))
	says(t, h.findings(), OK, "Copilot CLI asks nod, by "+path)
}

// Codex silently skips a hook that the user has not trusted. The doctor reports that.
func TestCodexTrust(t *testing.T) {
	h := newHome(t)
	change := h.install(hook.Codex(), hook.InstallOptions{Program: h.program("nod", "")})
	says(t, h.findings(), Wrong, "does not trust the hook for PermissionRequest, so that it does not run: start codex")

	command := h.bin + "/nod hook codex --host-timeout 86400s"
	sum := sha256.Sum256([]byte(`{"event_name":"permission_request","hooks":[{"async":false,"command":"` + command + `","timeout":86400,"type":"command"}],"matcher":"*"}`))
	hash := "sha256:" + hex.EncodeToString(sum[:])
	link := filepath.Join(t.TempDir(), "hooks.json")
	require.NoError(t, os.Symlink(change.Path, link))
	config := filepath.Join(h.dir, ".codex", "config.toml")
	for name, c := range map[string]struct {
		toml  string
		level Level
		text  string
	}{
		"trusted":         {fmt.Sprintf("model = 'x'\n[hooks.state.\"%s:permission_request:0:0\"]\ntrusted_hash = %q\n", change.Path, hash), OK, "Codex trusts the hook"},
		"by another name": {fmt.Sprintf("[hooks.state.\"%s:permission_request:0:0\"]\ntrusted_hash = %q\nenabled = true\n", link, hash), OK, "Codex trusts the hook"},
		"switched off":    {fmt.Sprintf("[hooks.state.\"%s:permission_request:0:0\"]\ntrusted_hash = %q\nenabled = false\n", change.Path, hash), Wrong, "switched off"},
		"changed since":   {fmt.Sprintf("[hooks.state.\"%s:permission_request:0:0\"]\ntrusted_hash = 'sha256:00'\n", change.Path), Wrong, "not what Codex trusted"},
		"another place":   {fmt.Sprintf("[hooks.state.\"%s:permission_request:1:0\"]\ntrusted_hash = %q\n", change.Path, hash), Wrong, "does not trust"},
		"not TOML":        {"[hooks", Note, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(config, []byte(c.toml), 0o600))
			says(t, h.findings(), c.level, c.text)
		})
	}
}

// For an installation without --strict, the finding names the permission modes in which
// Claude Code does not ask nod, and the default mode in Claude Code's settings.
func TestDoctorReportsModesThatDoNotAskNod(t *testing.T) {
	h := newHome(t)
	h.program("claude", "2.1.329 (Claude Code)")
	nod := h.program("nod", "")
	change := h.install(hook.ClaudeCode(), hook.InstallOptions{Program: nod})
	says(t, h.findings(), Note, "in auto, in which Claude Code may start, bypassPermissions and dontAsk nod is asked nothing unless installed with --strict: nod install claude-code --strict")
	plain, err := os.ReadFile(change.Path)
	require.NoError(t, err)
	for mode, want := range map[string]string{
		"auto": "permissions.defaultMode is auto: in that mode nod is asked nothing unless installed with --strict",
		"plan": "permissions.defaultMode is plan: nod is asked whenever Claude Code would ask its user; in the modes auto, bypassPermissions and dontAsk nod is asked nothing",
	} {
		text := strings.Replace(string(plain), "{", `{"permissions": {"defaultMode": "`+mode+`"}, `, 1)
		require.NoError(t, os.WriteFile(change.Path, []byte(text), 0o600))
		says(t, h.findings(), Note, want)
	}
	h.install(hook.ClaudeCode(), hook.InstallOptions{Program: nod, Strict: true})
	for _, f := range h.findings() {
		require.NotContains(t, f.What, "defaultMode")
	}
}
