package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/test/internal/rig"
)

// house is the home directory of a user who has agent programs. As with a package manager, nod is in a
// directory with the version in its name, and PATH has a link to nod. PATH has no systemctl, so the test
// itself runs nod's service.
type house struct {
	*require.Assertions
	t         *testing.T
	home, bin string
	nod       *exec.Cmd // the running service, or nil
	said      string    // the path of the file with the stdout and stderr of the service
}

func newHouse(t *testing.T) *house {
	h := &house{Assertions: require.New(t), t: t, home: t.TempDir(), said: filepath.Join(t.TempDir(), "said")}
	h.bin = filepath.Join(h.home, "bin")
	h.NoError(os.Mkdir(h.bin, 0o755))
	h.file("bin/claude", "#!/bin/sh\necho '2.1.329 (Claude Code)'\n")
	h.file("bin/copilot", "#!/bin/sh\necho '1.0.102'\n")
	h.file(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n")
	h.release("1")
	t.Cleanup(h.stop)
	return h
}

func (h *house) file(name, content string) {
	testprogram.Write(h.t, filepath.Join(h.home, name), content)
}

// The method release replaces the installed version of nod by another version.
func (h *house) release(version string) {
	h.NoError(os.RemoveAll(filepath.Join(h.home, "opt")))
	testprogram.Copy(h.t, rig.Binary, filepath.Join(h.home, "opt", "nod-"+version, "nod"))
	link := filepath.Join(h.bin, "nod")
	h.NoError(os.RemoveAll(link))
	h.NoError(os.Symlink(filepath.Join(h.home, "opt", "nod-"+version, "nod"), link))
}

func (h *house) env() []string {
	return []string{"HOME=" + h.home, "PATH=" + h.bin, "USER=" + os.Getenv("USER")}
}

func (h *house) command(args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(h.bin, "nod"), args...)
	c.Env = h.env()
	return c
}

func (h *house) run(args ...string) (stdout, stderr string, code int) {
	c := h.command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		h.IsType(&exec.ExitError{}, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func (h *house) ok(args ...string) (stdout string) {
	h.t.Helper()
	stdout, stderr, code := h.run(args...)
	h.Zero(code, "nod %s: %s%s", args, stdout, stderr)
	return stdout
}

func (h *house) unit() string { return filepath.Join(h.home, ".config/systemd/user/nod.service") }

func (h *house) data() string { return filepath.Join(h.home, ".local/share/nod") }

func (h *house) launcher() string { return filepath.Join(h.data(), "launcher", "nod") }

// serve runs the command in the line ExecStart of the service's systemd unit, as systemd would, and waits
// until nod answers.
func (h *house) serve() {
	unit, err := os.ReadFile(h.unit())
	h.NoError(err)
	line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(unit)
	h.Len(line, 2)
	h.nod = exec.Command("/bin/sh", "-c", "exec "+string(line[1])+" --listen 127.0.0.1:0")
	h.nod.Env = []string{"HOME=" + h.home, "PATH=/usr/bin:/bin"} // systemd gives services this PATH
	said, err := os.OpenFile(h.said, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	h.NoError(err)
	defer said.Close()
	h.nod.Stdout, h.nod.Stderr = said, said
	h.NoError(h.nod.Start())
	h.Eventually(func() bool { _, _, code := h.run("pending"); return code == 0 }, rig.Patience, rig.Tick, "nod does not answer, see %s", h.said)
}

func (h *house) stop() {
	if h.nod == nil {
		return
	}
	_ = h.nod.Process.Signal(syscall.SIGTERM)
	_ = h.nod.Wait()
	h.nod = nil
}

// hook runs the hook of Claude Code's settings without a PATH, for a call that a rule allows.
func (h *house) hook() {
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	data, err := os.ReadFile(filepath.Join(h.home, ".claude/settings.json"))
	h.NoError(err)
	h.NoError(json.Unmarshal(data, &settings))
	h.Len(settings.Hooks["PermissionRequest"], 1)
	c := exec.Command("/bin/sh", "-c", settings.Hooks["PermissionRequest"][0].Hooks[0].Command)
	c.Env = []string{"HOME=" + h.home}
	c.Stdin = strings.NewReader(`{"session_id":"s1","cwd":"/","hook_event_name":"PermissionRequest","tool_name":"Read","tool_input":{"file_path":"/x"}}`)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	h.NoError(err, errs.String())
	h.Contains(string(out), `"behavior":"allow"`, errs.String())
}

// doctor runs nod doctor. It returns the exit code, and the findings by level, such as "wrong".
func (h *house) doctor() (code int, found map[string]string) {
	out, stderr, code := h.run("doctor", "--json")
	var all []struct{ Check, Level, What, Do string }
	h.NoError(json.Unmarshal([]byte(out), &all), stderr)
	found = map[string]string{}
	for _, f := range all {
		found[f.Level] += f.Check + ": " + f.What + ": " + f.Do + "\n"
	}
	return code, found
}

// files returns all files of the home directory except the programs.
func (h *house) files() (all []string) {
	h.NoError(filepath.WalkDir(h.home, func(path string, e fs.DirEntry, err error) error {
		h.NoError(err)
		rel, err := filepath.Rel(h.home, path)
		h.NoError(err)
		if rel == "bin" || rel == "opt" {
			return fs.SkipDir
		}
		if !e.IsDir() {
			all = append(all, rel)
		}
		return nil
	}))
	return all
}

// A user sets up nod, answers the test question, runs the service, upgrades nod and uninstalls it. In the end
// only the data directory is left, which uninstall --purge removes.
func TestSetupUpgradeAndUninstallInAFreshHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	setup := h.command("setup", "--yes")
	var out bytes.Buffer
	setup.Stdout = &out
	errs, err := setup.StderrPipe()
	h.NoError(err)
	h.NoError(setup.Start())
	lines := bufio.NewScanner(errs)
	h.until(lines, "systemctl --user daemon-reload")
	h.FileExists(h.unit())
	h.verifyUnit()
	h.serve()
	asked := h.until(lines, "nod allow ")
	h.ok("allow", asked[strings.LastIndex(asked, " ")+1:])
	_, _ = io.Copy(io.Discard, errs)
	h.NoError(setup.Wait(), out.String())
	for _, said := range []string{"Claude Code is here", `+  "hooks": {`, "Copilot CLI is here", "Allowed once", "nod is set up"} {
		h.Contains(out.String(), said)
	}

	h.ok("setup", "--yes", "--no-test") // a second setup succeeds too
	h.hook()
	_, _, code := h.run("ask", "--session", "s", "--id", "survives", "--tool", "Frobnicate", "--async")
	h.Equal(6, code)
	code, found := h.doctor()
	h.Zero(code, found["wrong"])
	h.Contains(found["ok"], "Claude Code 2.1.329 is a version that nod was tested with")
	h.Contains(found["ok"], "ago; the hook is version")
	h.Contains(found["note"], "Copilot CLI has not run the hook since it was installed")
	h.Contains(h.ok("service", "status"), h.unit())

	h.upgrade()

	h.uninstall()
}

// The method until reads lines until one contains text, and returns that line.
func (h *house) until(lines *bufio.Scanner, text string) string {
	h.t.Helper()
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if strings.Contains(lines.Text(), text) {
			return lines.Text()
		}
	}
	h.Fail("no line contains "+text, "%q", seen)
	return ""
}

func (h *house) verifyUnit() {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		h.t.Log("systemd-analyze is not installed: the unit was not verified")
		return
	}
	c := exec.Command(analyze, "--user", "verify", "--man=no", h.unit())
	c.Env = append(h.env(), "XDG_RUNTIME_DIR="+h.t.TempDir())
	out, err := c.CombinedOutput()
	h.NoError(err, string(out))
}

// The method upgrade replaces nod with a new version. The hook must work before and after the service's
// restart, and the pending request must stay pending. Then upgrade makes nod's launcher, which the hooks run,
// point to a missing file, and nod doctor must name the remedy.
func (h *house) upgrade() {
	h.release("2")
	h.hook()
	h.stop()
	h.NoError(os.WriteFile(h.said, make([]byte, 2<<20), 0o600)) // the log file of the service has grown to 2 MiB, because no program rotates it
	h.serve()
	h.hook()
	h.Contains(h.ok("pending", "--json"), "survives")
	code, found := h.doctor()
	h.Zero(code, found["wrong"])
	log, err := os.ReadFile(filepath.Join(h.data(), "logs", "nod.log"))
	h.NoError(err)
	h.Equal(2, strings.Count(string(log), `msg="nod is up"`))
	said, err := os.ReadFile(h.said)
	h.NoError(err)
	h.Empty(string(said), "a service writes to its log alone, and empties its output file once it has grown")

	// The launcher points to a missing file, as after a move of nod.
	h.NoError(os.Remove(h.launcher()))
	h.NoError(os.Symlink("/nowhere/nod", h.launcher()))
	code, found = h.doctor()
	h.Equal(1, code)
	h.Contains(found["wrong"], "which is not there: nod install claude-code")
	h.ok("install", "claude-code")
	h.hook()
}

func (h *house) uninstall() {
	out, stderr, code := h.run("uninstall")
	h.Zero(code, stderr)
	h.Contains(out, "left      "+h.data())
	for _, f := range h.files() {
		if rest, inData := strings.CutPrefix(f, ".local/share/nod/"); inData {
			top, _, _ := strings.Cut(rest, "/")
			h.NotContains([]string{"launcher", "hooks"}, top)
			continue
		}
		h.Equal(".claude/settings.json", f)
	}
	settings, err := os.ReadFile(filepath.Join(h.home, ".claude/settings.json"))
	h.NoError(err)
	h.JSONEq(`{"model":"opus"}`, string(settings))

	_, stderr, code = h.run("uninstall", "--purge", "--yes")
	h.Equal(1, code)
	h.Contains(stderr, "still runs")
	h.stop()
	h.ok("uninstall", "--purge", "--yes")
	h.Equal([]string{".claude/settings.json"}, h.files())
	h.ok("uninstall", "--purge", "--yes")
}

// If nod cannot read the settings of one agent, nod setup still sets up the other agents, and names this
// agent at the end.
func TestSetupNamesTheAgentsThatItCouldNotChange(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupUpgradeAndUninstallInAFreshHome goes through the same steps")
	h := newHouse(t)
	h.file(".claude/settings.json", "{")
	_, stderr, code := h.run("setup", "--yes", "--no-test", "--no-service")
	h.Equal(1, code)
	h.Contains(stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:], "nod: 1 change could not be made: Claude Code")
	h.Equal(1, strings.Count(stderr, "not valid JSON"), "each reason is printed once")
	h.FileExists(filepath.Join(h.home, ".copilot/hooks/nod.json"))
}

// If nod cannot uninstall the hook of one host, it keeps the launcher, because that hook runs the launcher.
func TestUninstallKeepsALauncherThatAHookStillRuns(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupUpgradeAndUninstallInAFreshHome goes through the same steps")
	h := newHouse(t)
	h.ok("setup", "--yes", "--no-test", "--no-service")
	path := filepath.Join(h.home, ".claude/settings.json")
	good, err := os.ReadFile(path)
	h.NoError(err)
	h.NoError(os.WriteFile(path, append([]byte("{"), good...), 0o600))
	_, stderr, code := h.run("uninstall")
	h.Equal(1, code)
	h.Contains(stderr, "not valid JSON")
	h.Equal(1, strings.Count(stderr, "\n"), stderr)
	h.FileExists(h.launcher())
	h.NoDirExists(filepath.Join(h.home, ".copilot"), "the other hooks are uninstalled")
	h.NoError(os.WriteFile(path, good, 0o600))
	h.ok("uninstall")
	_, err = os.Lstat(h.launcher())
	h.ErrorIs(err, fs.ErrNotExist)

	before := h.files()
	_, stderr, code = h.run("uninstall", "--purge", "--yes", "--data", h.home)
	h.Equal(1, code)
	h.Contains(stderr, "is no data directory of nod's: nothing was removed")
	h.Equal(before, h.files())
	_, stderr, code = h.run("setup")
	h.Equal(1, code)
	h.Contains(stderr, "--yes")
}

// A nod that go run has built refuses to install itself, because go run deletes the program when it ends.
func TestAProgramOfGoRunIsNotInstalled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(t.TempDir(), "go-build1", "nod")
	testprogram.Copy(t, rig.Binary, path)
	for _, args := range []string{"setup --yes", "service install", "install claude-code"} {
		c := exec.Command(path, strings.Fields(args)...)
		c.Env = []string{"HOME=" + home}
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), args)
		require.Contains(t, string(out), "go install ./cmd/nod", args)
		entries, err := os.ReadDir(home)
		require.NoError(t, err)
		require.Empty(t, entries, args)
	}
}
