package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain"
)

// BenchmarkContained starts `nod exec --contain -- true` and `true` alone, in turn, in projects of two sizes.
// It reports the medians of the elapsed time and of the CPU time, which other programs disturb less:
//
//	go test -run xxx -bench BenchmarkContained -benchtime 100x ./test/bench
func BenchmarkContained(b *testing.B) {
	if level, why := contain.Support(); level != contain.Namespaces {
		b.Skipf("left out: this machine cannot contain commands: %v", why)
	}
	dir, err := filepath.EvalSymlinks(b.TempDir())
	require.NoError(b, err)
	nod := filepath.Join(dir, "nod")
	out, err := exec.Command("go", "build", "-o", nod, "../../cmd/nod").CombinedOutput()
	require.NoError(b, err, string(out))
	for _, files := range []int{10, 10_000} {
		project := filepath.Join(dir, fmt.Sprint("project", files))
		for i := range files {
			sub := filepath.Join(project, fmt.Sprint("package", i/50))
			require.NoError(b, os.MkdirAll(sub, 0o755))
			require.NoError(b, os.WriteFile(filepath.Join(sub, fmt.Sprint("file", i, ".go")), []byte("package x\n"), 0o644))
		}
		b.Run(fmt.Sprint(files, " files"), func(b *testing.B) {
			var elapsed, cpu [2][]time.Duration
			for b.Loop() {
				for i, words := range [][]string{{"true"}, {nod, "exec", "--contain", "--", "true"}} {
					c := exec.Command(words[0], words[1:]...)
					c.Dir = project
					began := time.Now()
					out, err := c.CombinedOutput()
					elapsed[i] = append(elapsed[i], time.Since(began))
					require.NoError(b, err, string(out))
					cpu[i] = append(cpu[i], c.ProcessState.UserTime()+c.ProcessState.SystemTime())
				}
			}
			b.ReportMetric(beside(elapsed), "p50-ms")
			b.ReportMetric(beside(cpu), "cpu-p50-ms")
		})
	}
}

// The function beside returns, in milliseconds, by how much the median of times[1] is greater than the median
// of times[0].
func beside(times [2][]time.Duration) float64 {
	for i := range times {
		slices.Sort(times[i])
	}
	return float64((times[1][len(times[1])/2] - times[0][len(times[0])/2]).Microseconds()) / 1000
}
