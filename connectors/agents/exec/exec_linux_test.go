package exec

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

func TestFilesOutsideAreOutOfReach(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	for _, args := range [][]string{
		{"read", p.outside + "/file"},
		{"list", p.outside},
		{"list", "/"},
		{"list", "/etc"},
		{"list", "/etc/ssl"},
		{"read", "link/file"},
		{"read", "../outside/file"},
		{"read", "/proc/self/root" + p.outside + "/file"},
		{"write", p.outside + "/file"},
		{"write", p.outside + "/new"},
		{"write", "link/new"},
		{"write", "dangling"},
		{"write", p.work + "/../new"},
		{"truncate", p.outside + "/file"},
		{"mkdir", p.outside + "/dir"},
		{"remove", p.outside + "/file"},
		{"rename", "file", p.outside + "/file"},
		{"rename", p.outside + "/file", "file2"},
		{"link", p.outside + "/file", "stolen"},
		{"write", "/usr/nod-test"},
		{"read", "/etc/shadow"},
		{"memory"},
		{"device"},
		{"again", "write", p.outside + "/new"},
		{"again", "read", "link/file"},
	} {
		said := p.tries(p.scope(), args[0], args[1:]...)
		assert.Regexp(t, "permission denied|not permitted|invalid cross-device link", said, "%v", args)
	}
	data, err := os.ReadFile(p.outside + "/file")
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(data))
	entries, err := os.ReadDir(p.outside)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestPermittedPathsCanBeUsed(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	given := p.scope()
	given.ReadDirs = append(given.ReadDirs, p.outside)
	wide := p.scope()
	wide.WriteDirs = append(wide.WriteDirs, p.outside+"/file", p.outside+"/dir")
	wide.ReadDirs = append(wide.ReadDirs, p.outside+"/dir")
	require.NoError(t, os.Mkdir(p.outside+"/dir", 0o755))
	for _, c := range []struct {
		scope schemas.SessionPermissions
		args  []string
	}{
		{p.scope(), []string{"read", "file"}},
		{p.scope(), []string{"list", "."}},
		{p.scope(), []string{"write", "new"}},
		{p.scope(), []string{"mkdir", "dir"}},
		{p.scope(), []string{"rename", "new", "sub/new"}},
		{p.scope(), []string{"remove", "sub/new"}},
		{p.scope(), []string{"again", "write", "sub/again"}},
		{p.scope(), []string{"write", "/dev/null"}},
		{p.scope(), []string{"read", "/etc/passwd"}},
		{p.scope(), []string{"read", "/proc/self/status"}},
		{p.scope(), []string{"pair"}},
		{given, []string{"read", "link/file"}},
		{given, []string{"list", p.outside}},
		{wide, []string{"write", p.outside + "/file"}},
		{wide, []string{"truncate", p.outside + "/file"}},
		{wide, []string{"write", p.outside + "/dir/new"}},
		{wide, []string{"rename", p.outside + "/dir/new", "moved"}},
	} {
		assert.Empty(t, p.tries(c.scope, c.args[0], c.args[1:]...), "%v", c.args)
	}
	assert.Contains(t, p.tries(given, "write", p.outside+"/file"), "permission denied", "to read is not to write")
	assert.Contains(t, p.tries(wide, "write", p.outside+"/other"), "permission denied", "a file is not its directory")
	assert.Contains(t, p.tries(wide, "list", p.outside), "permission denied")
}

func TestSockets(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	file, err := net.Listen("unix", p.outside+"/socket")
	require.NoError(t, err)
	defer file.Close()
	abstract, err := net.Listen("unix", "@nod-test-"+filepath.Base(filepath.Dir(p.work)))
	require.NoError(t, err)
	defer abstract.Close()

	connected := p.scope()
	connected.Network = true
	for _, args := range [][]string{
		{"dial", "tcp", tcp.Addr().String()},
		{"dial", "udp", udp.LocalAddr().String()},
		{"listen", "tcp", "127.0.0.1:0"},
		{"packet"},
	} {
		assert.Contains(t, p.tries(p.scope(), args[0], args[1:]...), "permission denied", "%v", args)
		assert.Empty(t, p.tries(connected, args[0], args[1:]...), "%v", args)
	}
	assert.Contains(t, p.tries(p.scope(), "mptcp"), "permission denied")
	assert.Contains(t, p.tries(p.scope(), "ring"), "function not implemented")
	for _, scope := range []schemas.SessionPermissions{p.scope(), connected} {
		assert.Contains(t, p.tries(scope, "dial", "unix", p.outside+"/socket"), "permission denied")
		assert.Regexp(t, "permission denied|operation not permitted", p.tries(scope, "dial", "unix", abstract.Addr().String()))
	}
	if abi() >= 6 {
		assert.Contains(t, p.tries(connected, "signal"), "operation not permitted")
	} else {
		t.Logf("version %d of Landlock does not keep signals in", abi())
	}
}

// A command must not put text into the terminal of its caller, because the caller's shell would run
// that text without restrictions. In this test, standard input is no terminal. That does not matter,
// because the seccomp filter refuses the call before the kernel looks at the file.
func TestACommandCannotTypeIntoItsTerminal(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	connected := p.scope()
	connected.Network = true
	for _, scope := range []schemas.SessionPermissions{p.scope(), connected} {
		for _, request := range []string{"0x5412", "0x541c", "0xffffffff00005412"} { // the third number equals TIOCSTI in its low half, the only half that the kernel reads
			assert.Contains(t, p.tries(scope, "type", request), "operation not permitted", request)
		}
		assert.Contains(t, p.tries(scope, "type", "0x5413"), "inappropriate ioctl", "others pass")
	}
}

func TestStreamsSignalsAndTheExitCodePass(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	c := p.command(p.scope(), "sh", "-c", `cat; echo "$0 $1" >&2; exit 7`, "a b", "$c")
	cmd := p.nod(c)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("through\x00"), &out, &errs
	require.Error(t, cmd.Run())
	assert.Equal(t, 7, cmd.ProcessState.ExitCode())
	assert.Equal(t, "through\x00", out.String())
	assert.Equal(t, "a b $c\n", errs.String())

	cmd = p.nod(p.command(p.scope(), "sh", "-c", `trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done`))
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	assert.Equal(t, 42, cmd.ProcessState.ExitCode())

	cmd = p.nod(p.command(p.scope(), "sh", "-c", "kill -KILL $$"))
	require.Error(t, cmd.Run())
	assert.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

func TestInheritedFilesAreClosed(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	open, err := os.OpenFile(p.outside+"/file", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer open.Close()
	c := p.command(p.scope(), p.self)
	c.Env = append(c.Env, asAct+"=fd")
	cmd := p.nod(c)
	cmd.ExtraFiles = []*os.File{open}
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "bad file descriptor")
}

func TestACommandRunsInItsDirectory(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	c := p.command(p.scope(), "sh", "-c", "pwd; echo $PWD; echo made >here")
	c.Dir = p.work + "/sub"
	c.Env = append(c.Env, "PWD=/")
	out, err := p.nod(c).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, c.Dir+"\n"+c.Dir+"\n", string(out))
	assert.FileExists(t, p.work+"/sub/here")
}

func TestCommandsThatCannotBeRunAreRefused(t *testing.T) {
	needLandlock(t)
	p := newTestDirs(t)
	const script = "#!/bin/sh\necho it ran\n"
	require.NoError(t, os.WriteFile(p.work+"/plain", []byte(script), 0o644))
	testprogram.Write(t, p.outside+"/run", script)
	swapped := p.scope()
	swapped.ReadDirs = append(swapped.ReadDirs, p.work+"/link")
	below := p.scope()
	below.ReadDirs = append(below.ReadDirs, p.work+"/link/file")
	for name, c := range map[string]struct {
		command Command
		code    int
		says    string
	}{
		"no such program":          {p.command(p.scope(), "nod-nowhere"), agents.CodeNotFound, "executable file not found"},
		"no such file":             {p.command(p.scope(), "./nowhere"), agents.CodeNotFound, "no such file"},
		"not executable":           {p.command(p.scope(), "./plain"), agents.CodeCannot, "permission denied"},
		"a program outside":        {p.command(p.scope(), p.outside+"/run"), agents.CodeCannot, "--permission @read:"},
		"nothing":                  {p.command(p.scope()), agents.CodeRefused, "no command"},
		"a directory is not there": {Command{Args: []string{"true"}, Dir: p.work + "/nowhere", Scope: p.scope()}, agents.CodeRefused, "no such file"},
		"no working directory":     {p.command(schemas.SessionPermissions{WorkingDir: p.work + "/gone"}, "true"), agents.CodeRefused, "working directory"},
		"a path became a link":     {p.command(swapped, "true"), agents.CodeRefused, "has become a symbolic link"},
		"or lies below one":        {p.command(below, "true"), agents.CodeRefused, "lies below one"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := p.nod(c.command)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			assert.Equal(t, c.code, cmd.ProcessState.ExitCode())
			assert.Contains(t, string(out), c.says)
			assert.Equal(t, 1, strings.Count(string(out), "\n"), string(out))
			assert.NotContains(t, string(out), "it ran")
		})
	}
	missing := p.scope()
	missing.WriteDirs = append(missing.WriteDirs, p.outside+"/later")
	out, err := p.nod(p.command(missing, "echo", "it ran")).CombinedOutput()
	require.NoError(t, err)
	assert.Regexp(t, `^nod: warning: ".*/later" does not exist.*\nit ran\n$`, string(out))
}

func TestRequiredEnforcementNeedsLandlock(t *testing.T) {
	if !canFilter() {
		t.Skip("this kernel cannot filter system calls, so it cannot be made one without Landlock")
	}
	p := newTestDirs(t)
	c := p.command(p.scope(), "sh", "-c", "echo it ran; cat "+p.outside+"/file")
	c.RequireEnforcement = true
	cmd := p.nod(c)
	cmd.Env = append(cmd.Env, noLL+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, agents.CodeRefused, cmd.ProcessState.ExitCode())
	assert.Equal(t, "nod: this system cannot keep the command from reading and writing other files (its kernel has no Landlock), and enforcement is required: run it on a kernel that can, or do not require it\n", string(out))

	c.RequireEnforcement = false
	cmd = p.nod(c)
	cmd.Env = append(cmd.Env, noLL+"=1")
	out, err = cmd.CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "nod: warning: this system cannot keep the command from reading and writing other files (its kernel has no Landlock)\nit ran\ntheirs", string(out))
}

func TestEnforcementGapsOfEachKernel(t *testing.T) {
	for _, c := range []struct {
		abi             int
		filter, network bool
		want            string
	}{
		{0, true, false, "reading and writing other files (its kernel has no Landlock)"},
		{0, false, false, "reading and writing other files (its kernel has no Landlock); typing into the terminal that it was started at; using other programs' Unix sockets; using the network"},
		{2, true, false, "truncating other files"},
		{3, true, false, ""},
		{3, false, true, "typing into the terminal that it was started at; using other programs' Unix sockets"},
		{3, false, false, "typing into the terminal that it was started at; using other programs' Unix sockets; using the network"},
		{4, false, false, "typing into the terminal that it was started at; using other programs' Unix sockets; using UDP and Multipath TCP"},
		{10, false, false, "typing into the terminal that it was started at; using Multipath TCP"},
		{10, false, true, "typing into the terminal that it was started at"},
		{99, true, true, ""},
	} {
		assert.Equal(t, c.want, strings.Join(enforcementGaps(c.abi, c.filter, c.network), "; "), "%+v", c)
	}
}
