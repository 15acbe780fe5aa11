// Package rig has the parts that nod's own tests share: a whole nod in the test's process (Env) or as a
// process (Machine), agents and approvers for both, a proxy that breaks connections (Wire), and a terminal
// (Pane). A helper for a single test directory is in that directory.
package rig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/nodbus/nod/internal/testprogram"
)

// Binary is the path of the nod program that MainWithNod has built.
var Binary string

// Long is the flag -long, which runs the storms in their long form, as .ci/run does.
var Long = flag.Bool("long", false, "run the storms in their long form")

// OnlyLong skips a test without -long. The reason names the shorter test of the same code.
func OnlyLong(t *testing.T, why string) {
	t.Helper()
	if !*Long {
		t.Skip("left out: " + why + "; -long runs it, as in .ci/run")
	}
}

// Times returns how often a test does something: the number usual or, with -long, the number long.
func Times(t *testing.T, usual, long int) int {
	t.Helper()
	if *Long {
		return long
	}
	t.Logf("%d times; -long: %d", usual, long)
	return usual
}

// Main runs a package's tests, up to 16 parallel ones at a time, or as many as the flag -parallel says.
func Main(m *testing.M) {
	prepare()
	os.Exit(m.Run())
}

// MainWithNod is like Main, for tests that run nod as a process. It first builds nod.
func MainWithNod(m *testing.M) {
	prepare()
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

func prepare() {
	_ = flag.Set("test.parallel", "16") // the tests wait for deadlines more than they use a CPU
	flag.Parse()
	if testing.Short() { // .ci/run gives -short with the race detector, which multiplies CPU time and memory
		_ = flag.Set("test.parallel", "6")
		return
	}
	// A nod in a test has little memory in use, so Go would collect garbage often.
	const percent = 400
	debug.SetGCPercent(percent)
	_ = os.Setenv("GOGC", fmt.Sprint(percent)) // the variable is for the processes that the tests start; Setenv cannot fail for this name
}
