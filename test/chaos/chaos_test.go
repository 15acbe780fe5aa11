package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	flagDuration   = flag.Duration("duration", 0, "total duration of the scenarios; without it, two of them run in a short form")
	flagSeed       = flag.Uint64("seed", 0, "seed of the load and the faults, to replay them; without it, each run has another")
	flagScenario   = flag.String("scenario", "", "run this scenario alone")
	flagRequests   = flag.Int("requests", 0, "end each scenario after this many requests")
	flagNamespaces = flag.Bool("namespaces", false, "use a network namespace for each server and engine instead of proxies; needs root")
	flagKeep       = flag.String("keep", "", "directory to keep the logs and stores of each scenario in; without it they are deleted")
	flagStories    = flag.Int("stories", 6, "number of stories told at a time")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "nod-chaos-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		return m.Run()
	}())
}

// scenario is a place, which is a nod under test, with the faults that the test causes there.
type scenario struct {
	name  string
	open  func(ctx context.Context, dir string) (place, error)
	gap   [2]time.Duration // the limits of the random pause between two faults
	fault func(place) []fault
	// short is the duration of the scenario in runs without -duration. If short is 0, such runs skip the
	// scenario, except that .ci/run gives the scenario "mixed" 40 s.
	short time.Duration
}

// Limits of the random pause between two faults, for the field gap.
var (
	soon = [2]time.Duration{100 * time.Millisecond, 3 * time.Second}
	near = [2]time.Duration{500 * time.Millisecond, 5 * time.Second}
	far  = [2]time.Duration{2 * time.Second, 20 * time.Second}
)

var scenarios = []scenario{
	{"embedded", openEmbedded, soon, func(p place) []fault { return p.(*embedded).crashes() }, 8 * time.Second},
	{"mixed", openCluster, near, func(p place) []fault {
		c := p.(*cluster)
		all := append(append(c.crashes(), c.stops()...), append(c.splits(), c.stepDowns()...)...)
		return all
	}, 0},
	{"calm", openCluster, near, func(place) []fault { return nil }, 0},
	{"crashes", openCluster, far, func(p place) []fault { return p.(*cluster).crashes() }, 0},
	{"stops", openCluster, far, func(p place) []fault { return p.(*cluster).stops() }, 0},
	{"splits", openCluster, far, func(p place) []fault { return p.(*cluster).splits() }, 0},
	{"leaders", openCluster, near, func(p place) []fault { return p.(*cluster).stepDowns() }, 0},
	{"rolling", openCluster, far, func(p place) []fault { return p.(*cluster).rolling() }, 0},
	{"clocks", openStepped, near, func(p place) []fault { return p.(*cluster).clocks() }, 0},
	{"disks", openSmall, far, func(p place) []fault { return p.(*cluster).fullDisks() }, 0},
}

func openEmbedded(ctx context.Context, dir string) (place, error) {
	p, err := plain()
	if err != nil {
		return nil, err
	}
	return newEmbedded(ctx, dir, p)
}

func openCluster(ctx context.Context, dir string) (place, error) {
	p, err := plain()
	if err != nil {
		return nil, err
	}
	return newCluster(ctx, dir, p, 0)
}

func openStepped(ctx context.Context, dir string) (place, error) {
	p, err := stepped()
	if err != nil {
		return nil, err
	}
	return newCluster(ctx, dir, p, 0)
}

// diskBytes is the size of the disk of each server in the scenario "disks".
const diskBytes = 96 << 20

func openSmall(ctx context.Context, dir string) (place, error) {
	p, err := plain()
	if err != nil {
		return nil, err
	}
	return newCluster(ctx, dir, p, diskBytes)
}

func TestChaos(t *testing.T) {
	seed := *flagSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	chosen, each := choose(t)
	for _, sc := range chosen {
		lasts := each
		if lasts == 0 {
			lasts = sc.short
			if testing.Short() {
				lasts /= 2
			}
		}
		t.Run(sc.name, func(t *testing.T) {
			if *flagDuration == 0 {
				t.Parallel() // most of the time a short scenario only waits for faults, or for deadlines after the last fault
			}
			sc.run(t, seed, lasts)
		})
	}
}

// choose returns the scenarios to run and their duration. With the duration 0, each scenario runs as long
// as its field short says.
func choose(t *testing.T) (chosen []scenario, each time.Duration) {
	for _, sc := range scenarios {
		switch {
		case *flagScenario != "":
			if sc.name != *flagScenario {
				continue
			}
		case *flagDuration == 0 && sc.short == 0:
			continue
		}
		chosen = append(chosen, sc)
	}
	require.NotEmpty(t, chosen, "there is no scenario %q", *flagScenario)
	each = *flagDuration / time.Duration(len(chosen))
	if each == 0 && chosen[0].short == 0 {
		each = 30 * time.Second
	}
	return chosen, each
}

func (sc scenario) run(t *testing.T, seed uint64, lasts time.Duration) {
	if sc.name == "disks" && os.Getuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts+5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if *flagKeep != "" {
		dir = filepath.Join(*flagKeep, fmt.Sprint(sc.name, "-", seed))
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	p, err := sc.open(ctx, dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.close()) }()
	w, err := newWorld(ctx, p, t.Log)
	require.NoError(t, err)
	defer w.close()
	t.Log("the place is up after", time.Since(began).Round(time.Millisecond))

	faults := &schedule{rng: rand.New(rand.NewPCG(seed, 1)), faults: sc.fault(p), gap: sc.gap}
	e, err := w.endure(ctx, seed, faults, time.Now().Add(lasts))
	require.NoError(t, err)
	found := e.inspect()
	w.log("the history is checked")
	t.Logf("%s (seed %d): %s\n| %s | %s |", sc.name, seed, count(found), sc.name, e.figures(len(found)))
	for _, p := range p.processes() {
		if !p.running() {
			t.Errorf("%s ended by itself; its log ends:\n%s", p.name, p.said())
		}
	}
	told := map[string]int{}
	for _, v := range found {
		if told[v.Check]++; told[v.Check] > reported {
			continue // further violations of a check are only counted, in the log line above
		}
		t.Errorf("%s\n%s\nreplay: go test ./test/chaos -run TestChaos -scenario %s -seed %d -duration %s", v, e.story(v), sc.name, seed, lasts)
	}
}

// reported is the largest number of violations of one check for which the test prints the history.
const reported = 3

// count returns the number of violations of each check, as text.
func count(found []violation) string {
	var counted []string
	for _, c := range checks {
		n := 0
		for _, v := range found {
			if v.Check == c.name {
				n++
			}
		}
		if n > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", n, c.name))
		}
	}
	if len(counted) == 0 {
		return "0 violations"
	}
	return fmt.Sprintf("%d violations (%s)", len(found), strings.Join(counted, ", "))
}
