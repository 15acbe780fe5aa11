package contain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain/egress"
)

// order tells this test binary to act as nod and to run a contained command. The test passes the
// order as JSON in the environment variable orderVariable.
type order struct {
	Spec         Spec
	Report       string // the file for the report
	NoNamespaces bool   // make namespaces fail, as on a machine that allows none
	Near         bool   // let the proxy connect to this machine
}

const orderVariable = "NOD_TEST_ORDER"

// long is the flag -long, which .ci/run sets. With the flag, the tests try to read all secrets instead
// of a few.
var long = flag.Bool("long", false, "try to print all secrets")

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "acts":
		os.Exit(playActs())
	case os.Getenv(orderVariable) != "":
		os.Exit(beNod())
	}
	os.Exit(m.Run())
}

func beNod() int {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		panic(err)
	}
	if o.NoNamespaces {
		refuseNamespaces()
	}
	o.Spec.Secret, o.Spec.SecretBelow, o.Spec.Protected = testSecret, testSecretBelow, testProtected
	proxy := egress.New(o.Spec.Network)
	if o.Near {
		proxy.AllowAddresses(func(netip.Addr) bool { return true })
	}
	r, err := run(context.Background(), o.Spec, proxy)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nod:", err)
		var e *agents.ExitError
		if !errors.As(err, &e) {
			panic(err)
		}
		return e.Code
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(o.Report, data, 0o600); err != nil {
		panic(err)
	}
	return r.ExitCode
}

func testSecret(p string) bool {
	base := filepath.Base(p)
	return strings.HasSuffix(p, "/.docker/config.json") || strings.HasSuffix(p, "/.config/gh") || base == ".env" || base == ".env.prod" || base == ".ssh" || strings.HasSuffix(base, ".pem") || base == ".git-credentials"
}

func testSecretBelow(dir string) bool {
	base := filepath.Base(dir)
	return base == ".docker" || base == ".config"
}

func testProtected(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(s string) bool {
		return slices.Contains([]string{".claude", ".mcp.json", ".envrc", ".vscode", ".husky", "AGENTS.md", ".nod"}, s)
	}) || strings.Contains("/"+rel, "/.github/workflows")
}

// refuseNamespaces makes the kernel refuse new user namespaces to this process, as on a machine
// that allows none.
func refuseNamespaces() {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atFirst},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		panic(errno)
	}
}

// rig contains a project for contained commands, a home directory, and a directory outside the project.
type rig struct {
	t                           *testing.T
	project, home, outside, top string
	self                        string // the path of this test binary
	level                       Level
	change                      func(*order)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	needLevel(t, Namespaces)
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	r := &rig{t: t, top: top, project: top + "/projects/project", home: top + "/home", outside: top + "/outside", self: self, level: Namespaces}
	for _, dir := range []string{r.project, r.home, r.outside} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	// Try several times, because processes of the test may still write to top.
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(top) == nil }, soon, 10*time.Millisecond)
	})
	return r
}

// needLevel skips the test on a machine that does not support the level.
func needLevel(t *testing.T, level Level) {
	t.Helper()
	if has, why := Support(); has < level {
		t.Skipf("this machine supports %s, and the test needs %s: %v", has, level, why)
	}
}

// file writes a file in the project and returns the file's path.
func (r *rig) file(name, content string) string {
	r.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.project, name)
	}
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(r.t, os.WriteFile(name, []byte(content), 0o644))
	return name
}

// nod prepares a process that runs a contained command. It returns the process, which the caller
// must start, and the path of the report.
func (r *rig) nod(args ...string) (*osexec.Cmd, string) {
	r.t.Helper()
	o := order{
		Spec: Spec{
			Project: r.project, Command: args, Read: []string{r.self},
			Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + r.home, "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"},
		},
		Report: r.top + "/report.json",
	}
	if r.level == LandlockAlone {
		o.NoNamespaces, o.Spec.AllowLandlockAlone = true, true
	}
	if r.change != nil {
		r.change(&o)
	}
	data, err := json.Marshal(forJSON(o))
	require.NoError(r.t, err)
	cmd := osexec.Command(r.self)
	cmd.Env = []string{orderVariable + "=" + string(data), "PATH=/usr/bin:/bin", "TMPDIR=" + r.top, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = r.project
	return cmd, o.Report
}

// forJSON returns o without the fields that cannot be encoded as JSON.
func forJSON(o order) any {
	s := o.Spec
	return map[string]any{"Report": o.Report, "NoNamespaces": o.NoNamespaces, "Near": o.Near, "Spec": map[string]any{
		"Project": s.Project, "Dir": s.Dir, "Command": s.Command, "Env": s.Env, "Read": s.Read, "Write": s.Write, "ReadOnly": s.ReadOnly,
		"Network": s.Network, "AnyNetwork": s.AnyNetwork, "Scratch": s.Scratch, "Limits": s.Limits, "ReviewEvery": s.ReviewEvery, "AllowLandlockAlone": s.AllowLandlockAlone,
	}}
}

// result contains a contained command's output, exit code and report.
type result struct {
	Report
	out, err string
	code     int
}

func (r *rig) run(args ...string) result {
	r.t.Helper()
	cmd, file := r.nod(args...)
	return r.finish(cmd, file)
}

func (r *rig) sh(script string) result {
	r.t.Helper()
	return r.run("sh", "-c", script)
}

func (r *rig) finish(cmd *osexec.Cmd, file string) result {
	r.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = os.Remove(file)
	err := cmd.Run()
	var ended *osexec.ExitError
	if err != nil && !errors.As(err, &ended) {
		require.NoError(r.t, err)
	}
	res := result{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
	if data, err := os.ReadFile(file); err == nil {
		require.NoError(r.t, json.Unmarshal(data, &res.Report))
		require.Equal(r.t, r.level, res.Level, "the machine fell back to another level")
	}
	return res
}

// acts runs each of the given acts in a container. Its result has one text for each act: the
// act's error, or "" if the act succeeded.
func (r *rig) acts(acts [][]string) []string {
	r.t.Helper()
	list, err := json.Marshal(acts)
	require.NoError(r.t, err)
	cmd, file := r.nod(r.self, "acts")
	cmd.Stdin = bytes.NewReader(list)
	if open, err := os.Open(r.outside); err == nil { // nod has open files outside the project, which the command must not inherit
		defer open.Close()
		cmd.ExtraFiles = []*os.File{open, open}
	}
	res := r.finish(cmd, file)
	var said []string
	require.NoError(r.t, json.Unmarshal([]byte(res.out), &said), "%s %s", res.out, res.err)
	require.Len(r.t, said, len(acts))
	return said
}

// playActs is the program that the method acts runs as a contained command.
func playActs() int {
	var list [][]string
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		panic(err)
	}
	said := make([]string, len(list))
	for i, act := range list {
		if err := play(act[0], act[1:]); err != nil {
			said[i] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(said)
	return 0
}

func dial(network, address string) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("hello"))
	return err
}
