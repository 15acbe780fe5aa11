package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// session runs nod session and returns the printed session.
func session(m *rig.Machine, args ...string) schemas.Session {
	m.T.Helper()
	out, stderr, code := m.Run(append(append([]string{"session"}, args...), "--json")...)
	require.Zero(m.T, code, stderr)
	var s schemas.Session
	require.NoError(m.T, json.Unmarshal([]byte(out), &s))
	return s
}

func trueDir(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func TestASessionsPermissionsAreSetAndShown(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	dir := trueDir(t)
	odd := dir + "/a,b c"
	require.NoError(t, os.Mkdir(odd, 0o755))
	require.NoError(t, os.Symlink(odd, dir+"/link"))
	require.NoError(t, os.Symlink(dir+"/later", dir+"/dangling"))

	s := session(m, "set", "s", "--timeout", "10m")
	require.Nil(t, s.Permissions, "the session is not managed")
	s = session(m, "set", "s", "--working-dir", dir, "--read", dir+"/link", "--write", dir+"/dangling/x", "--read", "/usr", "--network", "--background")
	want := &schemas.SessionPermissions{WorkingDir: dir, ReadDirs: []string{odd, "/usr"}, WriteDirs: []string{dir + "/later/x"}, Network: true}
	require.Equal(t, want, s.Permissions)
	require.True(t, s.Background)
	require.Equal(t, 600, s.TimeoutSeconds, "an option that is not given stays")
	require.Equal(t, s, session(m, "show", "s"))
	out, _, _ := m.Run("session", "show", "s")
	for _, line := range []string{"holds    " + dir + " (working directory)", "holds    @read:" + odd, "holds    @write:" + dir + "/later/x", "holds    @network", "kind     background"} {
		require.Contains(t, out, line+"\n")
	}

	s = session(m, "set", "s", "--read", "", "--no-network", "--no-background")
	require.Equal(t, &schemas.SessionPermissions{WorkingDir: dir, WriteDirs: []string{dir + "/later/x"}}, s.Permissions)
	require.False(t, s.Background)
	s = session(m, "set", "s", "--unmanaged", "--read", "/usr")
	require.Equal(t, &schemas.SessionPermissions{ReadDirs: []string{"/usr"}}, s.Permissions, "a new set of permissions")
	s = session(m, "set", "s", "--working-dir", "", "--read", "")
	require.Equal(t, &schemas.SessionPermissions{}, s.Permissions, "the session is managed and has no permissions")
	out, _, _ = m.Run("session", "show", "s")
	require.Contains(t, out, "holds    nothing\n")
	require.Nil(t, session(m, "set", "s", "--unmanaged").Permissions)

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"s"}, "nothing to set"},
		{[]string{"s", "--read", "~/src"}, `--read "~/src": Path must be absolute.`},
		{[]string{"s", "--write", "/a\nb"}, "control characters"},
		{[]string{"s", "--working-dir", "/" + strings.Repeat("x/", 2100)}, "at most 4096 characters"},
		{[]string{"s", "--read", dir + "/nowhere/../x"}, "before a .., does not exist"},
		{[]string{"s", "--timeout=-1s"}, "--timeout is -1s"},
		{[]string{"no session", "--network"}, "session_id"},
	} {
		_, stderr, code := m.Run(append([]string{"session", "set"}, c.args...)...)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, c.says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	require.Nil(t, session(m, "show", "s").Permissions)

	var changes sync.WaitGroup
	for _, flag := range []string{"--network", "--background", "--working-dir=/usr", "--write=" + dir} {
		changes.Go(func() { m.Run("session", "set", "s", flag) })
	}
	changes.Wait()
	s = session(m, "show", "s")
	require.Equal(t, &schemas.SessionPermissions{WorkingDir: "/usr", WriteDirs: []string{dir}, Network: true}, s.Permissions, "concurrent changes are all kept")
	require.True(t, s.Background)
}

// The function held starts nod and sets the permissions of session s. The session's working directory is
// work. The session may also read others/in, write others/out and use the network.
func held(t *testing.T) (m *rig.Machine, work, others string) {
	m = rig.NewMachine(t)
	m.StartNod()
	dir := trueDir(t)
	work, others = dir+"/work", dir+"/others"
	for _, d := range []string{work + "/sub", others + "/in", others + "/out"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	require.NoError(t, os.WriteFile(others+"/in/file", []byte("theirs\n"), 0o644))
	session(m, "set", "s", "--working-dir", work, "--read", others+"/in", "--write", others+"/out", "--network")
	return m, work, others
}

// The function inside returns a command that runs nod exec for session s in dir. The command is not started
// yet.
func inside(m *rig.Machine, dir string, args ...string) *exec.Cmd {
	c := m.Command(append([]string{"exec", "--session", "s"}, args...)...)
	c.Dir = dir
	return c
}

func TestExecRunsWithinTheNamedPermissions(t *testing.T) {
	t.Parallel()
	m, work, others := held(t)
	if out, err := inside(m, work, "--require-enforcement", "--", "true").CombinedOutput(); err != nil {
		t.Skipf("this kernel cannot enforce permissions: %s", out)
	}
	before := session(m, "show", "s")
	heard, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer heard.Close()
	_, port, err := net.SplitHostPort(heard.Addr().String())
	require.NoError(t, err)
	connect := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%s", port)
	in, out := "@read:"+others+"/in", "@write:"+others+"/out"
	for _, c := range []struct {
		script string
		tags   []string
		works  bool
	}{
		{"echo made >file; cat file", nil, true},
		{"mkdir sub/deep && mv file sub/deep", nil, true},
		{"cat " + others + "/in/file", nil, false},
		{"cat " + others + "/in/file", []string{in}, true},
		{"echo x >" + others + "/in/file", []string{in}, false},
		{"echo x >" + others + "/out/file", []string{in}, false},
		{"echo x >" + others + "/out/file; cat " + others + "/out/file", []string{out}, true},
		{"ln -s " + others + "/in way; cat way/file", nil, false},
		{"cat way/file", []string{in}, true},
		{"cat ../others/in/file", nil, false},
		{"cp " + others + "/out/file " + m.Dir, []string{out}, false},
		{connect, nil, false},
		{connect, []string{"@network"}, true},
	} {
		var args []string
		for _, tag := range c.tags {
			args = append(args, "--permission", tag)
		}
		said, err := inside(m, work, append(args, "--require-enforcement", "--", "bash", "-ec", c.script)...).CombinedOutput()
		require.Equal(t, c.works, err == nil, "%s %v: %s", c.script, c.tags, said)
		if !c.works {
			require.Contains(t, string(said), "Permission denied", c.script)
		}
	}
	kept, err := os.ReadFile(others + "/in/file")
	require.NoError(t, err)
	require.Equal(t, "theirs\n", string(kept))
	require.Equal(t, before.Permissions, session(m, "show", "s").Permissions, "the session's own set never changes")

	// If a symbolic link replaces the permitted directory, the permission no longer applies.
	require.NoError(t, os.Rename(others+"/out", others+"/was"))
	require.NoError(t, os.Symlink(m.Dir, others+"/out"))
	said, err := inside(m, work, "--permission", out, "--", "ls", others+"/out").CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "nod: Cannot attach permission '"+out+"' - you don't have it.\n", string(said))
}

func TestExecPassesStreamsAndTheExitCode(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestExecRunsWithinTheNamedPermissions runs such a command")
	m, work, others := held(t)
	c := inside(m, work, "--", "sh", "-c", `cat; echo "$1" >&2; exit 7`, "sh", "--permission")
	c.Stdin = strings.NewReader("through")
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	require.Error(t, err)
	require.Equal(t, 7, c.ProcessState.ExitCode(), errs.String())
	require.Equal(t, "through", string(out))
	require.True(t, strings.HasSuffix(errs.String(), "--permission\n"), errs.String())

	c = inside(m, work, "sh", "-c", `trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done`)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Error(t, c.Wait())
	require.Equal(t, 42, c.ProcessState.ExitCode())

	for dir, runs := range map[string]string{work: work, work + "/sub": work + "/sub", others: work, "/": work} {
		out, err := inside(m, dir, "--", "pwd").Output()
		require.NoError(t, err)
		require.Equal(t, runs+"\n", string(out), dir)
	}
	out, err = inside(m, others+"/in", "--permission", "@read:"+others+"/in", "--", "pwd").Output()
	require.NoError(t, err)
	require.Equal(t, others+"/in\n", string(out))
}

func TestExecRefuses(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestExecRunsWithinTheNamedPermissions runs such a command")
	m, work, others := held(t)
	session(m, "set", "free", "--timeout", "1m")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--permission", "@read:" + others, "--", "true"}, 125, "nod: Cannot attach permission '@read:" + others + "' - you don't have it.\n"},
		{[]string{"--permission", "@write:" + others + "/in", "--", "true"}, 125, "nod: Cannot attach permission '@write:" + others + "/in' - you don't have it.\n"},
		{[]string{"--permission", "@read:" + others + "/into", "--", "true"}, 125, "nod: Cannot attach permission '@read:" + others + "/into' - you don't have it.\n"},
		{[]string{"--permission", "@read:~", "--", "true"}, 125, "nod: permission \"@read:~\": Path must be absolute.\n"},
		{[]string{"--permission", "@write:", "--", "true"}, 125, "nod: permission \"@write:\": Write permission requires a path.\n"},
		{[]string{"--session", "free", "--", "true"}, 125, "nod: session free has no permissions to confine the command to: nod session set free --working-dir DIR\n"},
		{[]string{"--session", "nobody", "--", "true"}, 125, "nod: no session nobody is known\n"},
		{[]string{"--", "nod-nowhere"}, 127, "executable file not found"},
	} {
		cmd := inside(m, work, c.args...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%v", c.args)
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), c.says)
		require.Equal(t, 1, strings.Count(string(out), "\n"), "%s", out)
	}
	m.Kill()
	cmd := inside(m, work, "--", "true")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 125, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "nod is not running")
}
