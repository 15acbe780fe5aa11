package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nodbus/nod/internal/testprogram"
)

type programs struct{ nod, natsServer string }

// scratch is the temporary directory of this test process. TestMain creates and removes it.
var scratch string

// plain builds the programs as they are built for a release.
var plain = sync.OnceValues(func() (programs, error) { return build("plain") })

// stepped builds the programs with a wall clock that the test can change through a file (see clockFile).
var stepped = sync.OnceValues(func() (programs, error) {
	overlay, err := clockOverlay()
	if err != nil {
		return programs{}, err
	}
	return build("stepped", "-overlay", overlay)
})

func build(name string, flags ...string) (programs, error) {
	dir := filepath.Join(scratch, name)
	p := programs{nod: filepath.Join(dir, "nod"), natsServer: filepath.Join(dir, "nats-server")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, err
	}
	for out, what := range map[string]string{p.nod: "../../cmd/nod", p.natsServer: "github.com/nats-io/nats-server/v2"} {
		if err := testprogram.Build(what, out, flags...); err != nil {
			return p, err
		}
	}
	return p, nil
}

// clockFile is the environment variable with the path of a process's clock file. The file contains the
// number of seconds by which the process's wall clock is ahead. The process reads the file every 50 ms.
// The monotonic clock does not change, as in a real clock step.
const clockFile = "NOD_CHAOS_CLOCK"

// clockOverlay returns the path of a build overlay that replaces time.Now in the standard library and leaves
// nod's own code unchanged. Two other methods do not work: libfaketime needs libc, which Go programs do not
// use for the clock, and time namespaces do not change the wall clock.
func clockOverlay() (path string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the standard library: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", fmt.Errorf("read time.Now: %w", err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) != 1 {
		return "", fmt.Errorf("time.Now of this Go release reads the clock differently: adapt clockOverlay")
	}
	dir := filepath.Join(scratch, "clock")
	files := map[string]string{
		"time.go": strings.Replace(string(source), reads, reads+"\tsec += chaosStep.Load()\n", 1),
		"step.go": strings.ReplaceAll(clockSource, "CLOCKFILE", clockFile),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(std, "time.go"):      filepath.Join(dir, "time.go"),
		filepath.Join(std, "chaosstep.go"): filepath.Join(dir, "step.go"),
	}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
)

var chaosStep atomic.Int64

func init() {
	path, set := syscall.Getenv("CLOCKFILE")
	if !set {
		return
	}
	go func() {
		for ; ; Sleep(50 * Millisecond) {
			f, err := open(path)
			if err != nil {
				continue
			}
			var text [32]byte
			n, _ := read(f, text[:])
			closefd(f)
			if seconds, err := atoi(string(text[:n])); err == nil {
				chaosStep.Store(int64(seconds))
			}
		}
	}()
}
`
