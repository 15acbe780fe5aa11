package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// BenchmarkCheck reports the median time of one command over the corpus of
// real sessions, or over the seeds where that is missing.
func BenchmarkCheck(b *testing.B) {
	p := preset(b, policy.PresetReaders)
	var calls []policy.Call
	for _, s := range seeds {
		calls = append(calls, bash(b, s))
	}
	if corpusThere() {
		calls = calls[:0]
		for _, c := range realCalls(b) {
			if c.Kind == "shell" {
				calls = append(calls, policy.Call{ToolName: c.ToolName, Input: c.ToolInput, Cwd: c.Cwd, Home: home})
			}
		}
	}
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		for _, c := range calls {
			start := time.Now()
			p.Check(c)
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "median-ns/command")
	b.ReportMetric(float64(times[len(times)*9/10].Nanoseconds()), "p90-ns/command")
	b.ReportMetric(float64(len(calls)), "commands/op")
}
