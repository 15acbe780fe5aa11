package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/testcollector"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces/otlp"
)

// measured is a nod with metrics.
type measured struct{ *used }

func startMeasured(t *testing.T) *measured {
	t.Helper()
	return &measured{start(t, embed.Options{DataDir: t.TempDir(), Metrics: "127.0.0.1:0", Version: "1.2.3"})}
}

func (m *measured) get(path, host string) (status int, body string) {
	m.Helper()
	r, err := http.NewRequestWithContext(m.Context(), http.MethodGet, "http://"+m.nod.Metrics()+path, nil)
	require.NoError(m, err)
	r.Host = host
	response, err := http.DefaultClient.Do(r)
	require.NoError(m, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(m, err)
	return response.StatusCode, string(text)
}

// showing waits until the text of the metrics contains these lines, and returns the whole text.
func (m *measured) showing(lines ...string) (all string) {
	m.Helper()
	require.Eventually(m, func() bool {
		_, all = m.get("/metrics", "")
		for _, line := range lines {
			if !strings.Contains(all, "\n"+line+"\n") {
				return false
			}
		}
		return true
	}, 30*time.Second, 20*time.Millisecond, lines)
	return all
}

func TestMetricsCountWhatHappened(t *testing.T) {
	t.Parallel()
	m := startMeasured(t)
	_, err := m.asker.Ask(t.Context(), call("Read", `{"file_path":"/x"}`))
	require.NoError(t, err)
	asked, err := m.asker.Submit(t.Context(), call("Bash", `{"command":"rm -rf build"}`))
	require.NoError(t, err)
	m.showing(
		`nod_build_info{version="1.2.3"} 1`,
		`nod_decisions_total{agent="local",by="rule",outcome="allowed",rule="default"} 1`,
		`nod_questions_total{agent="local"} 1`,
		`nod_pending_questions 1`,
		`nod_calls_total{endpoint="request"} 2`,
	)
	pending, err := m.desk.Pending(t.Context(), schemas.Query{})
	require.NoError(t, err)
	me, err := user.Current()
	require.NoError(t, err)
	_, err = m.desk.Answer(t.Context(), schemas.Answer{
		SessionID: "S", PendingID: pending[0].PendingID, Digest: pending[0].Digest,
		OptionID: "reject_once", From: schemas.From{UserID: me.Username},
	})
	require.NoError(t, err)
	_, err = asked.Await(t.Context())
	require.NoError(t, err)
	all := m.showing(
		`nod_decisions_total{agent="local",by="person",outcome="denied",rule=""} 1`,
		`nod_answer_seconds_count{channel="terminal",outcome="denied"} 1`,
	)
	require.NotContains(t, all, "rm -rf", "metrics contain no payload")
	dashboardNames(t, all)

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed, so the format was not checked by it")
		return
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(all)
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), promtool, "check", "rules", "../docs/alerts.yml").CombinedOutput()
	require.NoError(t, err, string(out))
}

// dashboardNames asserts that each metric and each label in docs/grafana.json is in the text that
// /metrics serves. The parameter all is this text.
func dashboardNames(t *testing.T, all string) {
	t.Helper()
	text, err := os.ReadFile("../docs/grafana.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &board))
	metric := regexp.MustCompile(`\b(?:nod|process|go)_\w+`)
	histogram := regexp.MustCompile(`_(?:bucket|count|sum)$`)
	label := regexp.MustCompile(`by \(([^)]*)\)`)
	require.NotEmpty(t, board.Panels)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			names := metric.FindAllString(target.Expr, -1)
			require.NotEmpty(t, names, target.Expr)
			for _, name := range names {
				require.Contains(t, all, "# TYPE "+histogram.ReplaceAllString(name, "")+" ", target.Expr)
			}
			for _, by := range label.FindAllStringSubmatch(target.Expr, -1) {
				for _, l := range strings.Split(by[1], ", ") {
					require.True(t, l == "instance" || strings.Contains(all, l+`="`), "%s: no metric has the label %s", target.Expr, l)
				}
			}
		}
	}
}

func TestHealthSaysWhetherNodServes(t *testing.T) {
	t.Parallel()
	m := startMeasured(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		status, body := m.get(path, "")
		require.Equal(t, http.StatusOK, status, body)
	}
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example"} {
		status, _ := m.get("/metrics", host)
		require.Equal(t, http.StatusForbidden, status, host)
	}
	status, _ := m.get("/metrics", "localhost:9464")
	require.Equal(t, http.StatusOK, status)
	status, _ = m.get("/other", "")
	require.Equal(t, http.StatusNotFound, status)
}

// An engine without its NATS servers is not ready, but the process is healthy, because a restart would
// not help.
func TestAnEngineWithoutServersIsNotReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir})
	require.NoError(t, err)
	n, err := embed.Start(t.Context(), embed.Options{URL: server.URL(), Metrics: "127.0.0.1:0", EngineAlone: true, KeepSettings: true})
	require.NoError(t, err)
	defer func() {
		brief, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.Stop(brief) // Stop returns an error, because the servers are gone
	}()
	m := &measured{&used{T: t, nod: n}}
	status, body := m.get("/readyz", "")
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, server.Close())
	require.Eventually(t, func() bool {
		status, body = m.get("/readyz", "")
		return status == http.StatusServiceUnavailable
	}, 30*time.Second, 20*time.Millisecond)
	require.Contains(t, body, "the engine cannot serve requests now: ")
	status, _ = m.get("/healthz", "")
	require.Equal(t, http.StatusOK, status)
}

// If the address is taken, the start fails with an error that names the flag.
func TestATakenAddressOfMetricsIsNamed(t *testing.T) {
	t.Parallel()
	m := startMeasured(t)
	_, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), Metrics: m.nod.Metrics()})
	require.ErrorContains(t, err, "name another address with --metrics")
}

// The metrics count the spans of an exporter, even while the collector cannot be reached.
func TestMetricsCountSpans(t *testing.T) {
	t.Parallel()
	collector := testcollector.Start(t)
	config, on, err := otlp.FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_BSP_SCHEDULE_DELAY": "1"}[name]
	}, "1.2.3")
	require.NoError(t, err)
	require.True(t, on)
	exporter := otlp.Open(config, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { exporter.Close(context.Background()) })
	m := &measured{start(t, embed.Options{DataDir: t.TempDir(), Metrics: "127.0.0.1:0", Traces: exporter})}
	_, err = m.asker.Ask(t.Context(), call("Read", `{"file_path":"/x"}`))
	require.NoError(t, err)
	collector.Await("permission request", 1)
	require.Eventually(t, func() bool { return exporter.Stats().Exported >= uint64(len(collector.Spans())) }, 30*time.Second, 10*time.Millisecond)
	m.showing(fmt.Sprintf(`nod_trace_spans_total{result="exported"} %d`, exporter.Stats().Exported),
		`nod_trace_spans_total{result="dropped"} 0`, `nod_trace_spans_total{result="failed"} 0`, `nod_traces_limited_total 0`)
	plain := startMeasured(t)
	_, all := plain.get("/metrics", "")
	require.NotContains(t, all, "nod_trace")
}

// The alert rules name only metrics that exist.
func TestAlertsNameRealMetrics(t *testing.T) {
	t.Parallel()
	m := startMeasured(t)
	_, err := m.asker.Submit(t.Context(), call("Bash", `{"command":"rm -rf build"}`))
	require.NoError(t, err)
	all := m.showing(`nod_questions_total{agent="local"} 1`)
	rules, err := os.ReadFile("../docs/alerts.yml")
	require.NoError(t, err)
	seen := 0
	for _, word := range strings.FieldsFunc(string(rules), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_", r) }) {
		name, isMetric := strings.CutPrefix(word, "nod_")
		if !isMetric || strings.HasPrefix(name, "answer_seconds") || strings.HasPrefix(name, "decisions_total") { // these two metrics have no value before the first decision
			continue
		}
		seen++
		require.Contains(t, all, "# TYPE "+word+" ")
	}
	require.Positive(t, seen)
}
