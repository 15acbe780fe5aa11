package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/loopback"
)

const (
	// readyWithin bounds the test of GET /readyz, and pendingWithin the count of pending
	// questions.
	readyWithin   = 2 * time.Second
	pendingWithin = 5 * time.Second
	// pendingEvery is the shortest time between two counts of the pending questions, because the server
	// lists all of them for a count.
	pendingEvery = 15 * time.Second
	// maxScrapes bounds the concurrent requests for metrics. Further requests get 503. Otherwise a web
	// page could make the server count the pending questions many times at once.
	maxScrapes = 4
)

// Engine is the running engine about which a Server reports.
type Engine interface {
	Ready(context.Context) error
	Pending(context.Context) (int, error)
	Calls() []bus.CallStats
}

// Server serves GET /metrics, /healthz and /readyz.
type Server struct {
	metrics *Metrics
	http    *http.Server
	addr    string
	local   bool // whether only requests that name a loopback host are answered
	served  chan struct{}
	log     *slog.Logger

	mu        sync.Mutex
	engine    Engine // nil before the engine runs, and after it stops
	pending   float64
	pendingAt time.Time
}

// Serve starts a Server that listens on an address. Until Running is called, GET /readyz replies 503.
func Serve(m *Metrics, addr string, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics on %s: %w: name another address with --metrics", addr, err)
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String()) // an address of a listener always has a host and a port
	s := &Server{metrics: m, addr: listener.Addr().String(), local: loopback.Is(host), served: make(chan struct{}), log: log}
	m.registry.MustRegister(collector{s})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	s.http = &http.Server{Handler: s.guard(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics: no longer served", "error", err)
		}
	}()
	return s, nil
}

// guard refuses requests whose host name is not a loopback name, if the server listens on a loopback
// address. Otherwise a web page could make its own host name resolve to this machine, and read the
// metrics.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if s.local && !loopback.Is(host) {
			http.Error(w, "this server answers on a loopback address only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() string { return s.addr }

// Running tells the server that the engine e runs. If e is nil, the engine stops.
func (s *Server) Running(e Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine = e
}

func (s *Server) running() Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}

// Stop ends the server. When ctx ends, it also ends the requests that are still open.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.served
	return err
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	engine := s.running()
	if engine == nil {
		http.Error(w, "the engine does not run", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := engine.Ready(ctx); err != nil {
		s.log.Info("metrics: the engine is not ready", "error", err)
		http.Error(w, "the engine cannot serve requests now: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

var (
	pendingDesc = prometheus.NewDesc("nod_pending_questions", "Pending questions of all engines, at most 15 s old.", nil, nil)
	callsDesc   = prometheus.NewDesc("nod_calls_total", "Calls of agents and connectors that this engine has received, by the endpoint.", []string{"endpoint"}, nil)
)

// collector measures values at each request for metrics.
type collector struct{ *Server }

func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- pendingDesc
	to <- callsDesc
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	engine := c.running()
	if engine == nil {
		return
	}
	for _, call := range engine.Calls() {
		to <- prometheus.MustNewConstMetric(callsDesc, prometheus.CounterValue, float64(call.Calls), call.Endpoint)
	}
	if n, err := c.countPending(engine); err == nil {
		to <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, n)
	} else { // to show no value is better than to show an old value
		c.log.Info("metrics: pending questions were not counted", "error", err)
	}
}

func (c collector) countPending(engine Engine) (float64, error) {
	c.mu.Lock()
	n, at := c.pending, c.pendingAt
	c.mu.Unlock()
	if time.Since(at) < pendingEvery {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pendingWithin)
	defer cancel()
	count, err := engine.Pending(ctx)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending, c.pendingAt = float64(count), time.Now()
	return c.pending, nil
}
