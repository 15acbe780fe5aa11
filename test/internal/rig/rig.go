// Package rig has the parts that nod's own tests share: a whole nod in the test's process (Env) or as a
// process (Machine), agents and approvers for both, a proxy that breaks connections (Wire), and a terminal
// (Pane). A helper for a single test directory is in that directory.
package rig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/internal/testprogram"
)

// Binary is the path of the nod program that MainWithNod has built.
var Binary string

// Long is the flag -long, which runs the storms in their long form, as .ci/run does.
var Long = flag.Bool("long", false, "run the storms in their long form")

// Main runs a package's tests. Up to 16 tests run in parallel, or as many as the flag -parallel says.
func Main(m *testing.M) {
	_ = flag.Set("test.parallel", "16") // tests wait for deadlines more than they use a CPU
	flag.Parse()
	os.Exit(m.Run())
}

// MainWithNod is like Main, for tests that run nod as a process. It first builds nod.
func MainWithNod(m *testing.M) {
	_ = flag.Set("test.parallel", "16")
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "nod-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		Binary = filepath.Join(dir, "nod")
		if err := testprogram.Build("../../cmd/nod", Binary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}
