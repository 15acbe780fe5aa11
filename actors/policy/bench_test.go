package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// BenchmarkCheck measures how long Check takes for one command, and reports the median and the 90th
// percentile. The commands are the seeds of the fuzz tests. If the corpora of commands and of real sessions
// are present, their commands are measured too.
func BenchmarkCheck(b *testing.B) {
	var short []policy.Call
	for _, s := range seeds {
		short = append(short, bash(b, s))
	}
	b.Run("seeds", func(b *testing.B) { measure(b, short) })
	b.Run("shell", func(b *testing.B) {
		var calls []policy.Call
		for _, c := range shellCases(b) {
			calls = append(calls, bash(b, c.command))
		}
		measure(b, calls)
	})
	b.Run("real", func(b *testing.B) {
		var calls []policy.Call
		for _, c := range realCalls(b) {
			if c.Kind == "shell" {
				calls = append(calls, policy.Call{ToolName: c.ToolName, Input: c.ToolInput, Cwd: c.Cwd, Home: home})
			}
		}
		measure(b, calls)
	})
}

func measure(b *testing.B, calls []policy.Call) {
	p := preset(b, policy.PresetReaders)
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
