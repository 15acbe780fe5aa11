package agents_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// binary builds nod once, in the directory of the agent programs, and returns nod's path.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv(npm.OptIn), "nod")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/nod").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nod: %w: %s", err, out)
	}
	return path, nil
})

// machine is a user's machine with a running nod, a home directory and a project. Its programs get no
// variable of the test's environment except PATH.
type machine struct {
	t                       *testing.T
	nod, home, project, ran string // paths; ran is the path of the file that the command touch creates
	model                   *model
	up                      *exec.Cmd // the running process nod up
	edited                  bool      // true if the test has changed the hook's settings
}

func newMachine(t *testing.T, m *model) *machine {
	nod, err := binary()
	require.NoError(t, err)
	dir := t.TempDir()
	x := &machine{t: t, nod: nod, model: m, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project")}
	x.ran = filepath.Join(x.project, "ran")
	require.NoError(t, os.MkdirAll(x.home, 0o700))
	require.NoError(t, os.MkdirAll(x.project, 0o700))
	x.startNod()
	t.Cleanup(x.killNod)
	return x
}

// startNod starts the process nod up and waits until it is ready.
func (x *machine) startNod() {
	x.up = x.command(x.nod, "up", "-q", "--listen", "127.0.0.1:0")
	x.says(x.up, "nod is up on")
}

// killNod kills the process nod up, as a crash does. It does nothing if the process has ended.
func (x *machine) killNod() {
	_ = x.up.Process.Kill() // Kill fails if nod has ended
	_ = x.up.Wait()
}

// The method says starts a program, waits until it prints a line that contains the text want, and returns
// that line.
func (x *machine) says(c *exec.Cmd, want string) string {
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(x.t, c.Start())
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(x.t, err, "%s ended without saying %q: %s", c, want, &errs)
		if strings.Contains(line, want) {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return line
		}
	}
}

// command returns a command of the machine without starting it. The command's HTTP proxy is the fake model,
// which refuses requests to other hosts.
func (x *machine) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir = x.project
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + x.home, "TERM=dumb", "LANG=C.UTF-8", "PWD=" + x.project,
		"HTTP_PROXY=" + x.model.URL, "HTTPS_PROXY=" + x.model.URL, "http_proxy=" + x.model.URL, "https_proxy=" + x.model.URL,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
	return c
}

// The method does runs a nod command, requires that it succeeds, and returns its stdout.
func (x *machine) does(args ...string) string {
	c := x.command(x.nod, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(x.t, c.Run(), "nod %s: %s", strings.Join(args, " "), &errs)
	return out.String()
}

// installFor returns a command that installs the hook of a host. The host's program is in the command's PATH,
// because nod install runs the program to get its version, and the hook depends on the version.
func (x *machine) installFor(host, program string, flags ...string) *exec.Cmd {
	c := x.command(x.nod, append([]string{"install", host}, flags...)...)
	c.Env = append(c.Env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return c
}

func (x *machine) installsFor(host, program string, flags ...string) {
	out, err := x.installFor(host, program, flags...).CombinedOutput()
	require.NoError(x.t, err, "%s", out)
}

type agent struct {
	pid       int
	out, errs bytes.Buffer
	ended     chan struct{}
	err       error // the reason for the end of the agent, which is set before the channel ended is closed
}

const patience = 2 * time.Minute

// The function start starts a program in a new process group. The returned function kills the whole group,
// because child processes may outlive the program. A timer also kills the group after 4*patience.
func start(t *testing.T, c *exec.Cmd) (stop func()) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	kill := func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // Kill fails if the group has ended
	latest := time.AfterFunc(4*patience, kill)
	return func() { latest.Stop(); kill() }
}

// The method starts starts an agent program. At the end of the test it kills the program and its child
// processes, and logs their output if the test has failed.
func (x *machine) starts(c *exec.Cmd) *agent {
	a := &agent{ended: make(chan struct{})}
	if c.Stderr = &a.errs; c.Stdout == nil {
		c.Stdout = &a.out
	}
	stop := start(x.t, c)
	a.pid = c.Process.Pid
	go func() { a.err = c.Wait(); close(a.ended) }()
	x.t.Cleanup(func() {
		stop()
		<-a.ended
		if x.t.Failed() {
			x.t.Logf("%s said:\n%s\n%s", filepath.Base(c.Path), &a.out, &a.errs)
		}
	})
	return a
}

func (a *agent) hasEnded() bool { return isClosed(a.ended) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The method ends waits until the agent has ended, and requires exit code 0.
func (x *machine) ends(a *agent) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-a.ended:
		require.NoError(x.t, a.err)
	case <-deadline.C:
		require.FailNow(x.t, "the agent does not end")
	}
}

// request contains the fields of a pending request that the tests check.
type request struct {
	Session string `json:"session_id"`
	ID      string `json:"pending_id"`
	Kind    string `json:"kind"`
	Tool    string `json:"tool_name"`
	// Details is the input of the call.
	Details json.RawMessage `json:"action_details"`
}

const tick = 200 * time.Millisecond

// The method until polls a condition. If the condition is not true within patience, the test fails with the
// text what.
func (x *machine) until(what string, so func() bool) {
	ticks, deadline := time.NewTicker(tick), time.NewTimer(patience)
	defer ticks.Stop()
	defer deadline.Stop()
	for !so() {
		select {
		case <-ticks.C:
		case <-deadline.C:
			require.FailNow(x.t, "waited in vain until "+what)
		}
	}
}

// The method asked waits until an agent has a pending request, and returns the request. If there are several,
// the test fails.
func (x *machine) asked(a *agent) request {
	var all []request
	x.until("the agent asks", func() bool {
		ended := a.hasEnded()
		all = x.pending()
		return ended || len(all) > 0
	})
	require.Len(x.t, all, 1, "the agent ended without asking, or asked more than once")
	return all[0]
}

func (x *machine) pending() (all []request) {
	require.NoError(x.t, json.Unmarshal([]byte(x.does("pending", "--json")), &all))
	return all
}

func (x *machine) history() (all []json.RawMessage) {
	require.NoError(x.t, json.Unmarshal([]byte(x.does("history", "--json")), &all))
	return all
}

// answers has the nod commands with which tests answer requests. The value of a command is true if the tool
// call runs after it.
var answers = map[string]bool{"allow": true, "deny": false}

// touch is a shell command that creates the file "ran" in the project.
const touch = "echo yes > ran"

// The method shows checks the result of an answer after the agent has ended. After an allow, the command
// touch must have run. After a denial, it must not have run, and the model must have got a text that contains
// the string refusal.
func (x *machine) shows(answer, refusal string) {
	if answers[answer] {
		assert.FileExists(x.t, x.ran)
		assert.NotEmpty(x.t, x.model.heard())
		return
	}
	assert.NoFileExists(x.t, x.ran)
	assert.Contains(x.t, x.model.heard(), refusal)
}
