// Package otlp exports spans to an OpenTelemetry collector, by OTLP over HTTP. The standard
// environment variables OTEL_… configure it.
package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/traces"
)

const (
	// tries bounds the attempts to send one batch. The pauses between them double from retryFirst.
	tries      = 4
	retryFirst = time.Second
	// complainEvery is the shortest time between two warnings that the collector does not accept spans.
	complainEvery = time.Minute
	// maxResponse is how much of a collector's response is read, in bytes.
	maxResponse = 64 << 10
)

// Stats counts spans and requests since the start of an Exporter.
type Stats struct {
	Exported uint64 // spans that the collector has accepted
	Dropped  uint64 // spans for which the queue had no room
	Failed   uint64 // spans that the collector has not accepted
	Limited  uint64 // requests that were not traced, because their agent had too many traced requests
}

// Exporter sends spans to a collector, in batches and in the background. A slow or absent collector
// delays no request, because spans that do not fit into the bounded queue are dropped.
type Exporter struct {
	config   Config
	client   *http.Client
	chooser  *chooser
	queue    chan traces.Span
	stopping context.Context
	stop     context.CancelFunc
	ended    chan struct{}
	log      *slog.Logger

	closing                            sync.RWMutex // locked for writing while the queue is closed
	closed                             bool
	exported, dropped, failed, limited atomic.Uint64
}

var _ traces.Tracer = (*Exporter)(nil)

// Open starts an exporter. The caller must Close it.
func Open(c Config, log *slog.Logger) *Exporter {
	e := &Exporter{
		config: c, chooser: newChooser(c.Sampler),
		queue: make(chan traces.Span, c.Queue), ended: make(chan struct{}), log: log,
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true}
	e.client = &http.Client{Transport: transport, Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	e.stopping, e.stop = context.WithCancel(context.Background())
	go e.run()
	return e
}

// Begin implements traces.Tracer.
func (e *Exporter) Begin(agent string, parent trace.SpanContext) (traces.Root, bool) {
	root, ok, limited := e.chooser.begin(agent, parent)
	if limited {
		e.limited.Add(1)
	}
	return root, ok
}

// Write implements traces.Writer.
func (e *Exporter) Write(s traces.Span) {
	e.closing.RLock()
	defer e.closing.RUnlock()
	if !e.closed {
		select {
		case e.queue <- s:
			return
		default:
		}
	}
	e.dropped.Add(1)
}

// Stats returns the present counts.
func (e *Exporter) Stats() Stats {
	return Stats{e.exported.Load(), e.dropped.Load(), e.failed.Load(), e.limited.Load()}
}

// Endpoint returns the URL to which spans are posted, without a password or a query.
func (e *Exporter) Endpoint() string { return e.config.shown() }

// Close sends the spans that are still queued. When ctx ends, it drops the remaining spans.
func (e *Exporter) Close(ctx context.Context) {
	e.closing.Lock()
	if !e.closed {
		e.closed = true
		close(e.queue)
	}
	e.closing.Unlock()
	defer context.AfterFunc(ctx, e.stop)()
	<-e.ended
	e.stop()
	e.client.CloseIdleConnections()
}

// run sends batches until the queue is closed and empty.
func (e *Exporter) run() {
	defer close(e.ended)
	complained := time.Time{}
	for {
		batch, more := e.batch()
		if len(batch) > 0 {
			if err := e.export(batch); err != nil && time.Since(complained) > complainEvery {
				complained = time.Now()
				e.log.Warn("traces: the collector took no spans, and requests go on without them; check that it runs at OTEL_EXPORTER_OTLP_ENDPOINT", "endpoint", e.config.shown(), "error", err)
			}
		}
		if !more {
			return
		}
	}
}

// batch waits for the first span, and then for further spans, until the batch is full or the
// configured delay is over. The result more is false once the queue is closed and empty.
func (e *Exporter) batch() (batch []traces.Span, more bool) {
	first, more := <-e.queue
	if !more {
		return nil, false
	}
	batch = append(batch, first)
	delay := time.NewTimer(e.config.Delay)
	defer delay.Stop()
	for len(batch) < e.config.Batch {
		select {
		case s, more := <-e.queue:
			if !more {
				return batch, false
			}
			batch = append(batch, s)
		case <-delay.C:
			return batch, true
		}
	}
	return batch, true
}

// export sends a batch and counts its spans. If the collector is away or busy, it tries several times.
func (e *Exporter) export(batch []traces.Span) error {
	body, err := e.encode(batch)
	if err != nil {
		e.failed.Add(uint64(len(batch)))
		return err
	}
	pause := retryFirst
	for try := 1; ; try++ {
		refused, again, err := e.send(body)
		if err == nil {
			refused = min(refused, uint64(len(batch)))
			e.exported.Add(uint64(len(batch)) - refused)
			e.failed.Add(refused)
			return nil
		}
		if !again || try == tries || !e.sleep(pause) {
			e.failed.Add(uint64(len(batch)))
			return err
		}
		pause *= 2
	}
}

// sleep waits for the duration d. It returns false if the exporter has to stop earlier.
func (e *Exporter) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.stopping.Done():
		return false
	}
}

// send sends a batch once. The result refused is the number of spans in the batch that the collector
// did not accept. The result again means that another try may succeed.
func (e *Exporter) send(body []byte) (refused uint64, again bool, err error) {
	r, err := http.NewRequestWithContext(e.stopping, http.MethodPost, e.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("send spans: %w", err)
	}
	r.Header = e.config.Headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "nod/"+e.config.Version)
	response, err := e.client.Do(r)
	if err != nil {
		return 0, true, fmt.Errorf("send spans: %w", withoutURL(err))
	}
	defer response.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse)) // the collector has accepted the batch, even if its reply is broken
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return rejected(reply), false, nil
	case code == http.StatusTooManyRequests, code >= http.StatusBadGateway && code <= http.StatusGatewayTimeout:
		return 0, true, fmt.Errorf("send spans: the collector replied %s", response.Status)
	default:
		return 0, false, fmt.Errorf("send spans: the collector replied %s", response.Status)
	}
}
