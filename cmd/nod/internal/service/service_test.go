package service_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/service"
	"github.com/nodbus/nod/internal/testprogram"
)

// machine is a temporary home directory with fake system tools. A fake tool records its arguments and
// prints the output that the test sets.
type machine struct {
	t         *testing.T
	home, bin string
}

func newMachine(t *testing.T, tools ...string) *machine {
	m := &machine{t: t, home: t.TempDir(), bin: t.TempDir()}
	t.Setenv("HOME", m.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("PATH", m.bin)
	for _, tool := range tools {
		m.tool(tool, "exit 0")
	}
	return m
}

// tool creates a fake system tool that runs a shell script.
func (m *machine) tool(name, body string) {
	script := "#!/bin/sh\necho \"" + name + " $*\" >>'" + filepath.Join(m.bin, "told") + "'\n" + body + "\n"
	testprogram.Write(m.t, filepath.Join(m.bin, name), script)
}

// told returns the command lines of all fake tools that ran after the previous call of told.
func (m *machine) told() []string {
	path := filepath.Join(m.bin, "told")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(m.t, err)
	require.NoError(m.t, os.Remove(path))
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (m *machine) spec() service.Spec {
	dir := filepath.Join(m.home, "Library", "Application Support", "100% nod")
	return service.Spec{Program: filepath.Join(dir, "bin", "nod"), DataDir: dir, Args: []string{"--listen", "127.0.0.1:0"}}
}

func TestSystemdInstallsAndRemovesTheService(t *testing.T) {
	m := newMachine(t, "systemctl", "loginctl")
	manager, err := service.New("linux")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(m.home, ".config/systemd/user/nod.service"), manager.Path)
	state, err := manager.Status(t.Context())
	require.NoError(t, err)
	assert.False(t, state.Installed)
	removed, err := manager.Uninstall(t.Context())
	require.NoError(t, err)
	assert.False(t, removed)
	require.Empty(t, m.told(), "nothing is there, and nothing is done")

	m.tool("loginctl", "echo no")
	note, err := manager.Install(t.Context(), m.spec())
	require.NoError(t, err)
	assert.Contains(t, note, "loginctl enable-linger")
	told := m.told()
	assert.Equal(t, []string{"systemctl --user daemon-reload", "systemctl --user enable nod.service", "systemctl --user restart nod.service"}, told[:3])
	assert.DirExists(t, filepath.Join(m.spec().DataDir, "logs"))
	change, err := manager.Plan(m.spec())
	require.NoError(t, err)
	assert.False(t, change.Changed(), "a second time changes nothing")

	for says, runs := range map[string]bool{"echo active": true, "echo inactive; exit 3": false, "echo activating; exit 3": false} {
		m.tool("systemctl", says)
		state, err = manager.Status(t.Context())
		require.NoError(t, err)
		require.NotNil(t, state.Running)
		assert.Equal(t, runs, *state.Running, says)
	}
	m.tool("loginctl", "echo yes")
	state, err = manager.Status(t.Context())
	require.NoError(t, err)
	assert.Empty(t, state.Note, "lingering is on")

	m.tool("systemctl", "exit 0")
	m.told()
	wants := filepath.Join(filepath.Dir(manager.Path), "default.target.wants", "nod.service")
	require.NoError(t, os.MkdirAll(filepath.Dir(wants), 0o755))
	require.NoError(t, os.Symlink(manager.Path, wants))
	removed, err = manager.Uninstall(t.Context())
	require.NoError(t, err)
	assert.True(t, removed)
	assert.NoFileExists(t, manager.Path)
	_, err = os.Lstat(wants)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, []string{"systemctl --user disable --now nod.service", "systemctl --user stop nod.service", "systemctl --user daemon-reload"}, m.told())
}

// If systemd is not installed, or has no session for the user, Install still writes the service file.
// The error lists the commands that the user has to run.
func TestServiceManagerUnreachable(t *testing.T) {
	for name, prepare := range map[string]func(*machine){
		"no systemd": func(*machine) {},
		"no session": func(m *machine) {
			m.tool("systemctl", "echo 'Failed to connect to bus: No medium found' >&2; exit 1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			prepare(m)
			manager, err := service.New("linux")
			require.NoError(t, err)
			_, err = manager.Install(t.Context(), m.spec())
			var u *service.Unreached
			require.ErrorAs(t, err, &u)
			assert.Len(t, u.Todo, 3)
			assert.NotContains(t, err.Error(), "\n")
			assert.FileExists(t, manager.Path)
			state, err := manager.Status(t.Context())
			require.NoError(t, err)
			assert.True(t, state.Installed)
			assert.Nil(t, state.Running)
			removed, err := manager.Uninstall(t.Context())
			require.ErrorAs(t, err, &u)
			assert.True(t, removed)
			assert.Equal(t, []string{"systemctl --user stop nod.service", "systemctl --user daemon-reload"}, u.Todo)
			assert.NoFileExists(t, manager.Path)
		})
	}
}

// systemd-analyze, if installed, accepts the unit without a warning.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	m := newMachine(t)
	spec := m.spec()
	spec.Args = append(spec.Args, `it's "$HOME" \ 100%`)
	testprogram.Write(t, spec.Program, "#!/bin/sh\n")
	manager, err := service.New("linux")
	require.NoError(t, err)
	_, err = manager.Install(t.Context(), spec)
	require.Error(t, err, "there is no systemctl here")
	cmd := exec.Command(analyze, "--user", "verify", "--man=no", manager.Path)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "nod.service", "a warning about it")
}

func TestLaunchdInstallsAndRemovesTheAgent(t *testing.T) {
	m := newMachine(t, "launchctl")
	manager, err := service.New("darwin")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(m.home, "Library/LaunchAgents/com.github.nodbus.nod.plist"), manager.Path)

	m.tool("launchctl", `[ "$1" != bootout ]`) // bootout fails because there is no agent to end
	note, err := manager.Install(t.Context(), m.spec())
	require.NoError(t, err)
	assert.Empty(t, note)
	told := m.told()
	require.Len(t, told, 2)
	assert.Regexp(t, `^launchctl bootout gui/\d+/com.github.nodbus.nod$`, told[0])
	assert.Regexp(t, `^launchctl bootstrap gui/\d+ .*\.plist$`, told[1])

	m.tool("launchctl", "printf '\\tstate = running\\n'")
	state, err := manager.Status(t.Context())
	require.NoError(t, err)
	assert.True(t, *state.Running)
	m.tool("launchctl", "echo 'Could not find service'; exit 113")
	state, err = manager.Status(t.Context())
	require.NoError(t, err)
	assert.False(t, *state.Running)

	removed, err := manager.Uninstall(t.Context())
	require.NoError(t, err)
	assert.True(t, removed)
	assert.NoFileExists(t, manager.Path)
}

// If launchd does not end the agent, Uninstall returns an error.
func TestLaunchdKeepsTheAgent(t *testing.T) {
	for name, body := range map[string]string{
		"bootout fails":   `[ "$1" != bootout ] || { echo 'Boot-out failed: 5: Input/output error'; exit 5; }`,
		"launchctl hangs": `[ "$1" != print ] || kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "launchctl")
			synctest.Test(t, func(t *testing.T) { // with synctest's clock, the pauses between tries take no real time
				manager, err := service.New("darwin")
				require.NoError(t, err)
				_, err = manager.Install(t.Context(), m.spec())
				require.NoError(t, err)
				m.tool("launchctl", body)
				removed, err := manager.Uninstall(t.Context())
				var u *service.Unreached
				require.ErrorAs(t, err, &u)
				assert.NotContains(t, err.Error(), "\n")
				assert.Regexp(t, `^launchctl bootout gui/\d+/com.github.nodbus.nod$`, u.Todo[0])
				assert.True(t, removed)
				assert.NoFileExists(t, manager.Path)
			})
		})
	}
}

// The command bootout may return while nod is still ending.
func TestUninstallWaitsUntilTheAgentHasEnded(t *testing.T) {
	m := newMachine(t, "launchctl")
	manager, err := service.New("darwin")
	require.NoError(t, err)
	_, err = manager.Install(t.Context(), m.spec())
	require.NoError(t, err)
	m.told()
	m.tool("launchctl", `[ "$1" = print ] && { [ -e "$0.ended" ] && exit 113; : >"$0.ended"; }; exit 0`)
	_, err = manager.Uninstall(t.Context())
	require.NoError(t, err)
	assert.Len(t, m.told(), 3)
}

// launchd refuses to load an agent while the old process is ending. Install then retries.
func TestInstallRetriesIfLaunchdRefuses(t *testing.T) {
	m := newMachine(t)
	m.tool("launchctl", `[ "$1" = bootstrap ] && [ ! -e "$0.ended" ] && { : >"$0.ended"; echo 'Bootstrap failed: 5: Input/output error'; exit 5; }; exit 0`)
	manager, err := service.New("darwin")
	require.NoError(t, err)
	_, err = manager.Install(t.Context(), m.spec())
	require.NoError(t, err)
	assert.Len(t, m.told(), 3)
}

// The property list contains each word of the command line, with special characters escaped.
func TestLaunchdAcceptsTheAgent(t *testing.T) {
	m := newMachine(t, "launchctl")
	manager, err := service.New("darwin")
	require.NoError(t, err)
	spec := m.spec()
	spec.Args = append(spec.Args, "<&>'\"")
	_, err = manager.Install(t.Context(), spec)
	require.NoError(t, err)
	f, err := os.Open(manager.Path)
	require.NoError(t, err)
	defer f.Close()
	var words []string
	for dec := xml.NewDecoder(f); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "array" {
			var array struct {
				Strings []string `xml:"string"`
			}
			require.NoError(t, dec.DecodeElement(&array, &start))
			words = array.Strings
		}
	}
	assert.Equal(t, spec.Command(), words)
	if plutil, err := exec.LookPath("/usr/bin/plutil"); err == nil {
		out, err := exec.Command(plutil, "-lint", manager.Path).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}

func TestOtherSystemsHaveNoService(t *testing.T) {
	_, err := service.New("plan9")
	require.ErrorContains(t, err, "nod up")
}

// A new installation without flags keeps the flags of the installed service, however they are spelled.
func TestTheFlagsOfAServiceCanBeReadBack(t *testing.T) {
	m := newMachine(t, "systemctl", "loginctl", "launchctl")
	for _, system := range []string{"linux", "darwin"} {
		manager, err := service.New(system)
		require.NoError(t, err)
		args, err := manager.Args()
		require.NoError(t, err)
		assert.Empty(t, args)
		spec := m.spec()
		spec.Args = []string{"--listen", "127.0.0.1:0", `--settings=a "b" \\n $HOME %h <&>.json`}
		_, err = manager.Install(t.Context(), spec)
		require.NoError(t, err)
		words, err := manager.Command()
		require.NoError(t, err)
		assert.Equal(t, spec.Command(), words, system)
		args, err = manager.Args()
		require.NoError(t, err)
		assert.Equal(t, spec.Args, args, system)
	}
}
