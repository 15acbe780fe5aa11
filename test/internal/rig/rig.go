// Package rig is the equipment of nod's own tests: a whole nod in the test's process (Env) or
// as a process (Machine), the agents and approvers of each, a proxy that breaks connections
// (Wire), and a terminal (Pane). A helper that only one test directory uses is in that
// directory.
package rig

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Binary is the path of the nod program that MainWithNod has built.
var Binary string

// Long is the flag -long: the storms run in their long form, as in .ci/run.
var Long = flag.Bool("long", false, "run the storms in their long form")

// Main runs a package's tests, up to eight parallel ones at a time.
func Main(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests wait for deadlines more than they use a CPU
	os.Exit(m.Run())
}

// MainWithNod is Main for tests that run nod as a process. It builds nod with go run, whose
// option -exec cp copies the program instead of running it. Unlike go build, go run keeps the
// linked program in the build cache, so only the first package waits for the linker.
func MainWithNod(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "nod-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		Binary = filepath.Join(dir, "nod")
		if out, err := exec.Command("go", "run", "-exec", "cp", "../../cmd/nod", Binary).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}
