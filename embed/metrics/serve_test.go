package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed/metrics"
	"github.com/nodbus/nod/schemas"
)

// slowEngine is an engine whose server lists the pending questions slowly.
type slowEngine struct{ counting, done chan struct{} }

func (e slowEngine) Ready(context.Context) error { return nil }

func (e slowEngine) Calls() []bus.CallStats { return nil }

func (e slowEngine) Pending(ctx context.Context) (int, error) {
	e.counting <- struct{}{}
	select {
	case <-e.done:
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// If a web page sends many requests at once, only a few of them make the server count the pending
// questions.
func TestManyRequestsStartFewCounts(t *testing.T) {
	t.Parallel()
	s, err := metrics.Serve(metrics.New("1"), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const requests = 20
	e := slowEngine{make(chan struct{}, requests), make(chan struct{})}
	s.Running(e)
	results := make(chan int, requests)
	get := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/metrics", nil)
		if err != nil {
			results <- 0
			return
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			results <- 0
			return
		}
		results <- response.StatusCode
		response.Body.Close()
	}
	for range requests {
		go get()
	}
	for range requests - 4 {
		require.Equal(t, http.StatusServiceUnavailable, <-results)
	}
	close(e.done)
	for range 4 {
		require.Equal(t, http.StatusOK, <-results)
	}
	require.LessOrEqual(t, len(e.counting), 4)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

func TestManyRulesTakeFewLabels(t *testing.T) {
	t.Parallel()
	m := metrics.New("1")
	for i := range 2000 {
		m.Logged(&schemas.LogEntry{Kind: schemas.LogDecided, Agent: "a", Actor: "policy", Outcome: schemas.Denied, Rule: fmt.Sprintf("Bash(x%d)", i)})
	}
	s, err := metrics.Serve(m, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 501, strings.Count(string(text), "\nnod_decisions_total{"))
	require.Contains(t, string(text), `rule="other"} 1500`)
	require.NoError(t, s.Stop(t.Context()))
}
