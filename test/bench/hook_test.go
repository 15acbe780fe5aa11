package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkHook measures the process nod hook from its start to its exit, as an agent program sees it:
// for a call that a rule allows, and for the report about the call's end. /bin/true shows the cost of
// any process:
//
//	go test -run xxx -bench Hook$ -benchtime 200x ./test/bench
func BenchmarkHook(b *testing.B) {
	nod := filepath.Join(b.TempDir(), "nod")
	out, err := exec.Command("go", "build", "-o", nod, "github.com/nodbus/nod/cmd/nod").CombinedOutput()
	require.NoError(b, err, "%s", out)
	data := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(data, "settings.json"), []byte(`{"permissions":{"allow":["Bash(ls)"]}}`), 0o600))
	env := append(os.Environ(), "NOD_DATA="+data, "NOD_URL=", "NOD_CREDS=")
	startUp(b, nod, env)

	call := `{"session_id":"bench","cwd":"/","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"ls"},"duration_ms":1}`
	hook := func(event, want string) func() {
		input := fmt.Sprintf(call, event)
		return func() {
			c := exec.Command(nod, "hook", "claude-code", "--host-timeout", "86400s")
			c.Env, c.Stdin = env, bytes.NewReader([]byte(input))
			out, err := c.Output()
			require.NoError(b, err)
			require.Contains(b, string(out), want)
		}
	}
	works := map[string]func(){
		"allowed": hook("PreToolUse", `"permissionDecision":"allow"`),
		"report":  hook("PostToolUse", "{}"),
		"true":    func() { require.NoError(b, exec.Command("/bin/true").Run()) },
	}
	times := map[string][]time.Duration{}
	for b.Loop() {
		for name, work := range works { // the programs take turns, so that a change in the machine's speed affects all of them
			start := time.Now()
			work()
			times[name] = append(times[name], time.Since(start))
		}
	}
	for name, all := range times {
		slices.Sort(all)
		for suffix, at := range map[string]int{"p50": len(all) / 2, "p95": len(all) * 95 / 100} {
			b.ReportMetric(float64(all[at].Microseconds())/1000, name+"-"+suffix+"-ms")
		}
	}
}

// startUp starts the process nod up and waits until it is ready. The process ends with the benchmark.
func startUp(b *testing.B, nod string, env []string) {
	up := exec.Command(nod, "up", "-q", "--listen", "127.0.0.1:0")
	up.Env = env
	out, err := up.StdoutPipe()
	require.NoError(b, err)
	var errs bytes.Buffer
	up.Stderr = &errs
	require.NoError(b, up.Start())
	b.Cleanup(func() {
		_ = up.Process.Kill() // Kill fails if the process has ended
		_ = up.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err, "nod up said: %s", &errs)
	require.Contains(b, line, "nod is up on")
}
