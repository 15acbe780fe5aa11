package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Each of these environment variables makes this test binary act as another program. asNod makes it act
// as nod, which runs a command with Run. asAct makes it act as that command.
const (
	asNod = "NOD_TEST_RUN"         // the Command to run, in JSON
	asAct = "NOD_TEST_ACT"         // the act that the command tries; see act
	noLL  = "NOD_TEST_NO_LANDLOCK" // if set, the kernel seems to have no Landlock for the process that acts as nod
)

// environment returns the environment for the processes of a test, with the variables in more added. It
// sets GORACE, because the race detector otherwise makes each process sleep for a second before the
// process exits.
func environment(more ...string) []string {
	return append([]string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}, more...)
}

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asAct) != "":
		if err := act(os.Getenv(asAct), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(asNod) != "":
		os.Exit(runNod())
	}
	os.Exit(m.Run())
}

func runNod() int {
	var c Command
	if err := json.Unmarshal([]byte(os.Getenv(asNod)), &c); err != nil {
		panic(err)
	}
	c.Stderr = os.Stderr
	if os.Getenv(noLL) != "" {
		withoutLandlock()
	}
	err := Run(c)
	fmt.Fprintln(os.Stderr, "nod:", err)
	var e *agents.ExitError
	if !errors.As(err, &e) {
		panic(err)
	}
	return e.Code
}

// withoutLandlock makes the system calls of Landlock fail, as on a kernel without Landlock.
func withoutLandlock() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		panic(errno)
	}
}

// act does the act with the name what, which a permission may allow or forbid. It returns the act's error.
func act(what string, args []string) error {
	switch what {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "list":
		_, err := os.ReadDir(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("written"), 0o600)
	case "truncate":
		return os.Truncate(args[0], 0)
	case "mkdir":
		return os.Mkdir(args[0], 0o700)
	case "remove":
		return os.Remove(args[0])
	case "rename":
		return os.Rename(args[0], args[1])
	case "link":
		return os.Link(args[0], args[1])
	case "dial":
		conn, err := net.Dial(args[0], args[1])
		if err == nil && args[0] == "udp" {
			_, err = conn.Write([]byte("hello"))
		}
		return err
	case "listen":
		_, err := net.Listen(args[0], args[1])
		return err
	case "mptcp":
		return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	case "packet":
		return socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	case "ring":
		var params [120]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		if errno != 0 {
			return errno
		}
	case "type": // puts a character into the terminal's input
		request, err := strconv.ParseUint(args[0], 0, 64)
		if err != nil {
			return err
		}
		key := byte('x')
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, uintptr(request), uintptr(unsafe.Pointer(&key)))
		return errno
	case "pair":
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	case "signal":
		return syscall.Kill(os.Getppid(), 0)
	case "memory":
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		return err
	case "device":
		return unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
	case "fd":
		_, err := unix.Write(3, []byte("written"))
		return err
	case "again":
		again := osexec.Command(os.Args[0], args[1:]...)
		again.Env = environment(asAct + "=" + args[0])
		out, err := again.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
	default:
		panic("no act " + what)
	}
	return nil
}

func socket(domain, kind, protocol int) error {
	_, err := unix.Socket(domain, kind, protocol)
	return err
}

func needLandlock(t *testing.T) {
	if abi() < abiTruncate || !canFilter() {
		t.Skipf("this kernel has version %d of Landlock (3 is needed), and system calls can be filtered: %v", abi(), canFilter())
	}
}

// testDirs contains the working directory of a command, and a directory outside of the working directory.
type testDirs struct {
	t       *testing.T
	work    string
	outside string
	self    string // the path of this test binary
}

func newTestDirs(t *testing.T) *testDirs {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &testDirs{t, dir + "/work", dir + "/outside", self}
	require.NoError(t, os.MkdirAll(p.work+"/sub", 0o755))
	require.NoError(t, os.Mkdir(p.outside, 0o755))
	require.NoError(t, os.WriteFile(p.outside+"/file", []byte("theirs"), 0o644))
	require.NoError(t, os.WriteFile(p.work+"/file", []byte("mine"), 0o644))
	require.NoError(t, os.Symlink(p.outside, p.work+"/link"))
	require.NoError(t, os.Symlink(p.outside+"/new", p.work+"/dangling"))
	return p
}

// scope returns the permissions to write the working directory and to read this test binary.
func (p *testDirs) scope() schemas.SessionPermissions {
	return schemas.SessionPermissions{WorkingDir: p.work, ReadDirs: []string{p.self}}
}

func (p *testDirs) command(scope schemas.SessionPermissions, args ...string) Command {
	return Command{Args: args, Env: environment(), Scope: scope}
}

// nod prepares a process in which this test binary acts as nod and runs c. The caller must start the
// process.
func (p *testDirs) nod(c Command) *osexec.Cmd {
	data, err := json.Marshal(struct { // the fields of Command, except Stderr, which JSON cannot encode
		Args, Env          []string
		Dir                string
		Scope              schemas.SessionPermissions
		RequireEnforcement bool
	}{c.Args, c.Env, c.Dir, c.Scope, c.RequireEnforcement})
	require.NoError(p.t, err)
	cmd := osexec.Command(p.self)
	cmd.Env = environment(asNod + "=" + string(data))
	cmd.Dir = p.work
	return cmd
}

// tries runs an act with the permissions in scope. It returns the act's error message, or "" if the act
// succeeded.
func (p *testDirs) tries(scope schemas.SessionPermissions, what string, args ...string) string {
	c := p.command(scope, append([]string{p.self}, args...)...)
	c.Env = append(c.Env, asAct+"="+what)
	c.RequireEnforcement = true
	out, err := p.nod(c).CombinedOutput()
	if err == nil {
		assert.Empty(p.t, string(out))
		return ""
	}
	return string(out)
}
