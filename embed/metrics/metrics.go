// Package metrics counts what an engine does, for Prometheus, and reports whether the engine can serve
// requests. docs/observe.md lists the metrics.
package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/nodbus/nod/schemas"
)

// Metrics counts the entries that an engine adds to the log. The sum of the counts of all engines
// counts each event once, because all events of nod are in the log, and only one engine adds each
// entry.
type Metrics struct {
	registry   *prometheus.Registry
	asked      *prometheus.CounterVec
	decided    *prometheus.CounterVec
	waited     *prometheus.HistogramVec
	events     *prometheus.CounterVec
	checkpoint prometheus.Gauge

	mu    sync.Mutex
	rules map[string]bool // the values that the label "rule" has had
}

// maxRules bounds the number of values of the label rule, because agents may be able to write rules
// into their project's settings. All further rules count as "other".
const maxRules = 500

// waitBuckets are the bounds, in seconds, of the histogram of waiting times. The shortest of them
// show answers that came too fast for a person to have read the request.
var waitBuckets = []float64{1, 2, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// New returns the metrics of an engine of this version.
func New(version string) *Metrics {
	m := &Metrics{
		rules:    map[string]bool{},
		registry: prometheus.NewRegistry(),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nod_questions_total", Help: "Requests that people were asked about.",
		}, []string{"agent"}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nod_decisions_total", Help: "Decisions, by the agent, the outcome, the decider (rule, person, clock or agent) and the rule.",
		}, []string{"agent", "outcome", "by", "rule"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nod_answer_seconds", Help: "Time from a question to a person's decision, by the channel of the answer.", Buckets: waitBuckets,
		}, []string{"channel", "outcome"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nod_log_entries_total", Help: "Entries of the log, by their kind.",
		}, []string{"kind"}),
		checkpoint: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nod_log_checkpoint_timestamp_seconds", Help: "Time of the newest checkpoint of the log that this engine has written.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "nod_build_info", Help: "Always 1; the label is nod's version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.asked, m.decided, m.waited, m.events, m.checkpoint, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Logged counts an entry of the log.
func (m *Metrics) Logged(e *schemas.LogEntry) {
	m.events.WithLabelValues(string(e.Kind)).Inc()
	switch e.Kind {
	case schemas.LogAsked:
		m.asked.WithLabelValues(e.Actor).Inc()
	case schemas.LogDecided:
		m.decision(e)
	case schemas.LogCheckpoint:
		m.checkpoint.Set(float64(e.At.Unix()))
	}
}

func (m *Metrics) decision(e *schemas.LogEntry) {
	agent, by, channel := e.Agent, e.Actor, ""
	if e.Decision != nil { // an entry with a whole decision is about a request that was decided at once, so the entry's actor is the agent
		agent, by = e.Actor, string(e.Decision.By.Kind)
	}
	if _, at, found := strings.Cut(by, "@"); found {
		by, channel = "person", at
	}
	if by == string(schemas.ByPolicy) {
		by = "rule"
	}
	m.decided.WithLabelValues(agent, string(e.Outcome), by, m.boundedRule(ruleLabel(e.Rule))).Inc()
	if channel != "" && !e.AskedAt.IsZero() {
		m.waited.WithLabelValues(channel, string(e.Outcome)).Observe(e.At.Sub(e.AskedAt).Seconds())
	}
}

// boundedRule returns the given rule, or "other" if the rule is new and maxRules different rules have
// been counted.
func (m *Metrics) boundedRule(rule string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rules[rule] && len(m.rules) >= maxRules {
		return "other"
	}
	m.rules[rule] = true
	return rule
}

// ruleLabel returns a rule without the parts that differ for each request, because each further value
// of a label costs memory.
func ruleLabel(rule string) string {
	for _, start := range []string{"approval of ", "denied by ", "frozen by "} {
		if strings.HasPrefix(rule, start) {
			word, _, _ := strings.Cut(rule, " ")
			return word
		}
	}
	return rule
}
