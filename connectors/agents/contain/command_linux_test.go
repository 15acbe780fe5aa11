package contain

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
)

// soon is the time limit for an event that happens at once on an idle machine.
const soon = 30 * time.Second

func TestStreamsAndExitCodesAreTheCommandsOwn(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		cmd, file := r.nod("sh", "-c", `cat; echo "$0 $1" >&2; pwd; exit 7`, "a b", "$c")
		cmd.Stdin = strings.NewReader("through\x00")
		res := r.finish(cmd, file)
		assert.Equal(t, 7, res.code)
		assert.Equal(t, "through\x00"+r.project+"\n", res.out)
		assert.Equal(t, "a b $c\n", res.err)
		assert.Equal(t, 128+15, r.sh("kill -TERM $$").code)
		assert.Equal(t, agents.CodeNotFound, r.run("no-such-program").code)
		assert.Equal(t, agents.CodeNotFound, r.run("./no-such-program").code)
		r.file("data", "x")
		assert.Equal(t, agents.CodeCannot, r.run("./data").code)
		assert.Equal(t, agents.CodeNotFound, r.run(r.outside+"/tool").code)
	})
}

func TestSignalsReachTheCommandOnce(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		cmd, _ := r.nod("sh", "-c", `n=0; trap 'n=$((n+1)); echo got $n' INT; trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done`)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for _, step := range []struct {
			want string
			then syscall.Signal
		}{{"ready\n", syscall.SIGINT}, {"got 1\n", syscall.SIGINT}, {"got 2\n", syscall.SIGTERM}} {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, step.want, line)
			require.NoError(t, cmd.Process.Signal(step.then))
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		assert.Equal(t, 42, cmd.ProcessState.ExitCode())
	})
}

func TestAllProcessesEndWithNod(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		read, write, err := os.Pipe()
		require.NoError(t, err)
		cmd, _ := r.nod("sh", "-c", `(setsid sleep 1000 &) ; sh -c 'sleep 1000 & sleep 1000' & echo ready; sleep 1000`)
		cmd.Stdout = write
		require.NoError(t, cmd.Start())
		write.Close()
		in := bufio.NewReader(read)
		_, err = in.ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.NoError(t, read.SetReadDeadline(time.Now().Add(soon)))
		_, err = in.ReadString('\n') // EOF comes when no process has the pipe open any more
		assert.ErrorIs(t, err, io.EOF)
	})
}

func TestWhatTheCommandLeavesRunningEndsWithIt(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		res := r.sh(`(setsid sleep 1000 &); sleep 1000 & echo done`)
		assert.Equal(t, "done\n", res.out) // r.sh reads the output until EOF, which comes only when no process has the output open any more
		assert.Zero(t, res.code)
	})
}

func TestLimits(t *testing.T) {
	r := newRig(t)
	r.change = func(o *order) { o.Spec.Limits.Time = 3 * time.Second }
	res := r.sh("sleep 1000 & sleep 1000")
	assert.True(t, res.TimedOut, res.err)
	assert.Equal(t, 137, res.code)
	if raceEnabled {
		t.Log("the race detector itself needs more memory than the limit, so the limit of memory is not tested")
	} else {
		r.change = func(o *order) { o.Spec.Limits.Memory = 256 << 20 } // nod's own process needs 64 MiB before it becomes the command
		res = r.run("python3", "-c", "x = bytearray(500 << 20)")
		assert.Contains(t, res.err, "MemoryError")
	}
	r.change = func(o *order) { o.Spec.Limits.Processes = 10 }
	if os.Getuid() == 0 {
		t.Log("Linux does not limit root's processes, so the limit of processes is not tested")
		return
	}
	assert.NotZero(t, r.sh("for i in $(seq 30); do sleep 5 & done; wait").code)
}

func TestTheEnvironmentHasNoSecretsAndNoSockets(t *testing.T) {
	r := newRig(t)
	r.change = func(o *order) {
		for _, name := range []string{"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DB_PASSWORD", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "NOD_CREDS", "OPENAI_API_KEY", "DATABASE_URL", "KUBECONFIG", "MY_URL"} {
			o.Spec.Env = append(o.Spec.Env, name+"=postgres://u:"+marker+"@h/x")
		}
		o.Spec.Env = append(o.Spec.Env, "EDITOR=vi", "CI=1", "KEYBOARD=us")
	}
	res := r.sh("env")
	assert.NotContains(t, res.out, marker)
	for _, kept := range []string{"EDITOR=vi", "CI=1", "KEYBOARD=us", "HOME=" + r.home, "TMPDIR=/tmp"} {
		assert.Contains(t, res.out, kept+"\n")
	}
}

func TestTheSessionsDirectoryKeepsTmpAndCaches(t *testing.T) {
	r := newRig(t)
	r.file(r.home+"/.cache/go-build/a", "old")
	r.change = func(o *order) { o.Spec.Scratch = r.top + "/scratch" }
	res := r.sh("echo kept > /tmp/x; cat ~/.cache/go-build/a; echo new > ~/.cache/go-build/a; echo more > ~/.cache/go-build/b")
	assert.Equal(t, "old", strings.TrimSpace(res.out), res.err)
	res = r.sh("cat /tmp/x ~/.cache/go-build/a ~/.cache/go-build/b; rm ~/.cache/go-build/a; ls ~/.cache/go-build")
	assert.Equal(t, "kept\nnew\nmore\nb\n", res.out, res.err)
	data, err := os.ReadFile(r.home + "/.cache/go-build/a")
	require.NoError(t, err)
	assert.Equal(t, "old", string(data), "the user's cache")
	assert.NoFileExists(t, r.home+"/.cache/go-build/b")
	r.change = nil
	assert.Equal(t, "old", r.sh("cat ~/.cache/go-build/a; echo x > ~/.cache/go-build/c; cat /tmp/x").out, "without a session")
	assert.NoFileExists(t, r.home+"/.cache/go-build/c")
}

func TestGrantsOfPathsAreHonoured(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		for _, dir := range []string{"read", "write"} {
			r.file(r.outside+"/"+dir+"/file", dir)
			r.file(r.outside+"/"+dir+"/.env", marker)
			r.file(r.outside+"/"+dir+"/sub/.vscode/tasks.json", "original")
		}
		r.change = func(o *order) {
			o.Spec.Read, o.Spec.Write = append(o.Spec.Read, r.outside+"/read"), []string{r.outside + "/write"}
		}
		res := r.sh(`cd ` + r.outside + `; cat read/file write/file; for d in read write; do cat $d/.env; echo bad > $d/sub/.vscode/tasks.json; echo bad >> $d/file; done; cat write/file`)
		assert.Equal(t, "readwritewritebad\n", res.out, res.err)
		for name, want := range map[string]string{"read/file": "read", "write/file": "writebad\n", "write/sub/.vscode/tasks.json": "original", "write/.env": marker} {
			data, err := os.ReadFile(r.outside + "/" + name)
			require.NoError(t, err)
			assert.Equal(t, want, string(data), name)
		}
	})
}

func TestOnlyGrantedHostsAreReached(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "hello from "+q.URL.Path) }))
	defer server.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at, err := ParseEndpoint(server.Listener.Addr().String())
	require.NoError(t, err)
	refused := other.Listener.Addr().String()
	r.change = func(o *order) { o.Spec.Network, o.Near = []Endpoint{at}, true }
	script := `unset no_proxy NO_PROXY; get() { python3 - "$@" <<'P'
import sys, urllib.request
try: print(urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:61280"})).open(sys.argv[1], timeout=20).read().decode())
except Exception as e: print(e, e.read().decode() if hasattr(e, "read") else "")
P
}
get ` + server.URL + `/granted; get http://` + refused + `/x; get http://example.invalid/y
python3 -c 'import socket; socket.create_connection(("` + at.Host + `", ` + fmt.Sprint(at.Port) + `))' 2>&1 | tail -1; env | grep -i proxy | sort | head -3`
	res := r.sh(script)
	assert.Contains(t, res.out, "hello from /granted\n", res.err)
	assert.Contains(t, res.out, "the permission is @network:"+refused)
	assert.Contains(t, res.out, "ConnectionRefusedError", "the machine's own loopback is another one")
	require.Len(t, res.Refused, 2)
	assert.Equal(t, refused, res.Refused[0].String())
	assert.Equal(t, "example.invalid:80", res.Refused[1].String())

	r.change = func(o *order) { o.Spec.Network = []Endpoint{at} } // the command may reach the endpoint, but the endpoint's address is on this machine
	res = r.sh(script)
	assert.NotContains(t, res.out, "hello")
	require.NotEmpty(t, res.Refused)
	assert.Contains(t, res.Refused[0].Reason, "not public")

	r.change = func(o *order) { o.Spec.AnyNetwork = true }
	res = r.run("python3", "-c", "import urllib.request; print(urllib.request.urlopen('"+server.URL+"/whole').read().decode())")
	assert.Equal(t, "hello from /whole\n", res.out, res.err)
}

// If a program looks up a name without the proxy, the lookup fails at once, and nod notes the name.
func TestLookedUpNamesAreNoted(t *testing.T) {
	r := newRig(t)
	script := `
import socket
for name in ("db.example.com", "DB.example.com", "queue.example.org", "printer.local", "buildhost", "localhost", socket.gethostname()):
    try: print(name, "resolves", socket.getaddrinfo(name, 5432, type=socket.SOCK_STREAM)[0][4][0])
    except socket.gaierror as e: print(name, e.errno == socket.EAI_AGAIN)
try: socket.create_connection(("192.0.2.1", 443))
except OSError as e: print(e.strerror)
for sent in (b"", b"x", b"\xff" * 600, b"\0\1" + b"\0" * 10, b"\0\1\1\0\0\1" + b"\0" * 6 + b"\xc0\x0c\0\1\0\1"):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sent, ("127.0.0.1", 53))
try: socket.getaddrinfo("last.example.org", 80)
except socket.gaierror: print("still answered")
`
	res := r.run("python3", "-c", script)
	assert.Equal(t, []string{"db.example.com", "queue.example.org", "last.example.org"}, res.LookedUp, res.out+res.err)
	assert.Contains(t, res.out, "db.example.com True\n")
	assert.Contains(t, res.out, "buildhost True\n")
	assert.Contains(t, res.out, "localhost resolves")
	assert.Contains(t, res.out, "Network is unreachable\n")
	assert.Contains(t, res.out, "still answered\n")

	r.change = func(o *order) { o.Spec.AnyNetwork = true }
	res = r.sh("cat /etc/resolv.conf")
	own, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	assert.Equal(t, string(own), res.out)
	assert.Empty(t, res.LookedUp)
}

func TestTestsMayListenAndConnectInside(t *testing.T) {
	r := newRig(t)
	res := r.run("python3", "-c", `
import socket
for family, at in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0)), (socket.AF_UNIX, "/tmp/s"), (socket.AF_UNIX, "\0abstract")):
    s = socket.socket(family); s.bind(at); s.listen(); c = socket.socket(family); c.connect(s.getsockname()); s.accept()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"x", u.getsockname()); print(u.recv(1))
`)
	assert.Equal(t, "b'x'\n", res.out, res.err)
}

// terminal is a pseudo-terminal with a shell.
type terminal struct {
	t      *testing.T
	master *os.File
	said   chan string
	all    string
}

func newTerminal(t *testing.T, cmd *osexec.Cmd) *terminal {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	term := &terminal{t: t, master: master, said: make(chan string, 1000)}
	go func() {
		defer close(term.said)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			term.said <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		master.Close()
	})
	return term
}

func (term *terminal) types(text string) {
	_, err := term.master.WriteString(text)
	require.NoError(term.t, err)
}

// expects waits until the terminal shows a text. It then discards the output up to the end of that
// text.
func (term *terminal) expects(text string) {
	term.t.Helper()
	end := time.After(soon)
	for !strings.Contains(term.all, text) {
		select {
		case s, ok := <-term.said:
			require.True(term.t, ok, "the terminal ended before it showed %q: %s", text, term.all)
			term.all += s
		case <-end:
			require.Fail(term.t, "no "+text, term.all)
		}
	}
	_, term.all, _ = strings.Cut(term.all, text)
}

func TestJobControlOnATerminal(t *testing.T) {
	r := newRig(t)
	nod, _ := r.nod("sh", "-c", `trap 'echo inter""rupted; exit 3' INT; echo rea""dy; while read -r l; do echo "line ""$l"; done`)
	shell := osexec.Command("bash", "--norc", "-i")
	shell.Env, shell.Dir = append(nod.Env, "PS1=$ ", "TERM=dumb", "NODBIN="+r.self), r.project
	term := newTerminal(t, shell)
	term.types("$NODBIN\n")
	term.expects("ready")
	term.types("one\n")
	term.expects("line one")
	term.types("\x1a") // Ctrl-Z
	term.expects("Stopped")
	term.types("echo shell $((40+2))\n")
	term.expects("shell 42")
	term.types("fg\n")
	term.types("two\n")
	term.expects("line two")
	term.types("\x03") // Ctrl-C
	term.expects("interrupted")
	term.types("echo code $?\n")
	term.expects("code 3")
	term.types("$NODBIN | cat\n") // NOD is the first program of a pipeline
	term.expects("ready")
	term.types("\x03")
	term.expects("$ ")
	term.types("echo shell $((50+2))\n")
	term.expects("shell 52")
}

func TestSupportSaysWhatTheMachineCanHold(t *testing.T) {
	level, err := Support()
	if level == Namespaces {
		assert.NoError(t, err)
		return
	}
	assert.Error(t, err)
	t.Logf("this machine supports %s: %v", level, err)
}

func TestAMachineWithoutNamespacesIsRefusedUnlessAllowed(t *testing.T) {
	r := newRig(t)
	r.change = func(o *order) { o.NoNamespaces = true }
	res := r.sh("echo it ran")
	assert.Equal(t, agents.CodeRefused, res.code)
	assert.Empty(t, res.out)
	assert.Contains(t, res.err, "this machine cannot contain the command: start in namespaces")
}

func TestBadSpecsAreRefused(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.Symlink(r.project, r.top+"/link"))
	for _, c := range []struct {
		change func(*Spec)
		says   string
	}{
		{func(s *Spec) { s.Project = "/" }, "is a home directory, holds one or belongs to the system"},
		{func(s *Spec) { s.Project = r.top; s.Dir = r.top }, "is a home directory, holds one or belongs to the system"},
		{func(s *Spec) { s.Write = []string{r.home} }, "is a home directory, holds one or belongs to the system"},
		{func(s *Spec) { s.Project = r.top + "/link" }, "leads to"},
		{func(s *Spec) { s.Project = "project" }, "no such file"},
		{func(s *Spec) { s.Dir = r.outside }, "is outside the project"},
		{func(s *Spec) { s.Read = []string{r.top + "/nothing"} }, "create it first"},
		{func(s *Spec) { s.Command = nil }, "no command"},
	} {
		r.change = func(o *order) { c.change(&o.Spec) }
		res := r.sh("echo it ran")
		assert.Equal(t, agents.CodeRefused, res.code, c.says)
		assert.Contains(t, res.err, c.says)
		assert.NotContains(t, res.out, "it ran")
	}
}

func TestCommandsCanRunAtTheSameTime(t *testing.T) {
	r := newRig(t)
	r.change = func(o *order) { o.Spec.Scratch = r.top + "/scratch" }
	first, _ := r.nod("sh", "-c", "echo ready; read x; echo $x")
	in, err := first.StdinPipe()
	require.NoError(t, err)
	out, err := first.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, first.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "second\n", r.sh("echo second").out)
	_, err = io.WriteString(in, "first\n")
	require.NoError(t, err)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "first\n", line)
	require.NoError(t, first.Wait())
}
