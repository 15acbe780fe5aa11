package metrics

import "github.com/prometheus/client_golang/prometheus"

// Spans counts the spans of an exporter by what became of them. It also counts the requests that were
// not traced because their agent had sent too many.
type Spans struct{ Exported, Dropped, Failed, Limited uint64 }

// Traces adds the counts of spans to the metrics. The function read returns these counts.
func (m *Metrics) Traces(read func() Spans) { m.registry.MustRegister(spanCollector(read)) }

type spanCollector func() Spans

var (
	spansDesc   = prometheus.NewDesc("nod_trace_spans_total", "Spans, by their fate: exported, dropped (the queue was full) or failed (the collector did not take them).", []string{"result"}, nil)
	limitedDesc = prometheus.NewDesc("nod_traces_limited_total", "Requests that were not traced, because their agent had sent too many traced ones.", nil, nil)
)

func (spanCollector) Describe(to chan<- *prometheus.Desc) {
	to <- spansDesc
	to <- limitedDesc
}

func (read spanCollector) Collect(to chan<- prometheus.Metric) {
	s := read()
	for result, n := range map[string]uint64{"exported": s.Exported, "dropped": s.Dropped, "failed": s.Failed} {
		to <- prometheus.MustNewConstMetric(spansDesc, prometheus.CounterValue, float64(n), result)
	}
	to <- prometheus.MustNewConstMetric(limitedDesc, prometheus.CounterValue, float64(s.Limited))
}
