package bench

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

var small = size{rounds: 1, one: 2, many: 8, sessions: []int{4}, pending: []int{6, 9}}

func TestAReportHasEveryMeasure(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	report, err := measure(t.Context(), Options{Dir: dir, Version: "1.2.3", Progress: func(step string) { steps = append(steps, step) }}, small)
	require.NoError(t, err)
	var names []string
	alone := 0
	for _, row := range report.Measured {
		names = append(names, row.Name)
		assert.Positive(t, row.Nod, row.Name)
		if row.Bare == 0 {
			alone++
			continue
		}
		assert.Positive(t, row.Bare, row.Name)
		assert.InEpsilon(t, row.Nod/row.Bare, row.Ratio, 1e-6, row.Name)
	}
	assert.Equal(t, []string{
		"automatic decision, one at a time", "automatic decision, 4 sessions at once",
		"a person's decision, one at a time", "a person's decision, 4 sessions at once",
		"requests that stay pending, up to 6", "a person's decision, 6 pending", "restart with 6 pending, to the first decision",
		"list of 6 pending, first page", "memory with 6 pending, after a restart",
		"requests that stay pending, up to 9", "a person's decision, 9 pending", "restart with 9 pending, to the first decision",
		"list of 9 pending, first page", "memory with 9 pending, after a restart",
		"freeze of 9 pending, until nod replies", "freeze of 9 pending, requests denied",
	}, names)
	assert.Equal(t, 4, alone, "measures without a counterpart on bare NATS")
	assert.Positive(t, report.Disk.Median)
	assert.GreaterOrEqual(t, report.Disk.Worst, report.Disk.Median)
	assert.Len(t, steps, len(names)) // the disk is a step without a row, and the freeze is one step with two rows, so the numbers are equal
	assertEmpty(t, dir)

	data, err := json.Marshal(report)
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, report, again)
}

func TestAStoppedRunLeavesNothing(t *testing.T) {
	for _, at := range []string{"the disk", "a person's decision, 4 sessions at once", "restart with 6 pending"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := measure(ctx, Options{Dir: dir, Progress: func(step string) {
			if step == at {
				cancel()
			}
		}}, small)
		require.ErrorIs(t, err, context.Canceled, at)
		assertEmpty(t, dir)
	}
}

func TestAnErrorOfTheApproverEndsTheRun(t *testing.T) {
	r := &run{Options: Options{Progress: func(string) {}}, size: small, dir: t.TempDir(), report: &Report{}}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	require.NoError(t, r.start(ctx, true))
	defer func() { require.NoError(t, r.stop()) }()
	r.nod.allow("bench", "no-such-request", "") // nod refuses this answer, so the work fails
	_, err := AtOnce(ctx, r.bare.Person, 2, 1000)
	var e *schemas.Error
	require.ErrorAs(t, err, &e)
}

func TestTheTableNamesTheMachineAndTheRatios(t *testing.T) {
	r := Report{
		Version: "1.2.3", Go: "go1.26", System: "linux/amd64", CPUs: 2, Load: [2]string{"0.10", "1.90"},
		Disk: Disk{Median: 120 * time.Microsecond, Worst: 900 * time.Microsecond}, Quick: true,
		Measured: []Row{
			{"automatic decision, one at a time", "µs", 1.1, 440, 400, 150, 100},
			{"automatic decision, 64 sessions at once", "/s", 3, 12000.4, 4000, 0, 0},
			{Name: "restart", Unit: "s", Ratio: 0.5, Nod: 1.234, Bare: 2.468},
			{Name: "freeze", Unit: "/s", Nod: 2000},
			{Name: "memory", Unit: "B", Ratio: 3, Nod: 58_500_000, Bare: 19_500_000},
			{Name: "list", Unit: "µs", Nod: 278_658},
		},
	}
	assert.Equal(t, `nod 1.2.3, go1.26, linux/amd64, 2 CPUs, load 0.10 to 1.90; a sync to disk takes 120 µs (99 of 100: at most 900 µs); quick run

| | nod / bare NATS | nod | bare NATS | CPU of nod / bare NATS |
|---|---|---|---|---|
| automatic decision, one at a time | 1.10 × | 440 µs | 400 µs | 1.5 × (150 / 100 µs) |
| automatic decision, 64 sessions at once | 3.00 × | 12000 per s | 4000 per s |  |
| restart | 0.50 × | 1.23 s | 2.47 s |  |
| freeze |  | 2000 per s |  |  |
| memory | 3.00 × | 58.5 MB | 19.5 MB |  |
| list |  | 279 ms |  |  |
`, r.Table())
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
