package main

import (
	"context"
	"os"
	"time"

	"github.com/nodbus/nod/traces/otlp"
)

// flushWithin is how long a stopping process waits for the collector to take its last spans.
const flushWithin = 3 * time.Second

// openTraces starts the exporter that the variables OTEL_… describe, or returns nil if they describe none. If
// a variable is wrong, it logs a warning and returns nil, and nod runs without traces. The function done
// sends the last spans.
func (e *env) openTraces() (exporter *otlp.Exporter, done func()) {
	config, on, err := otlp.FromEnvironment(os.Getenv, version())
	if err != nil {
		e.log.Warn("traces are off", "error", err)
	}
	if !on {
		return nil, func() {}
	}
	exporter = otlp.Open(config, e.log)
	return exporter, func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
		defer cancel()
		exporter.Close(ctx)
	}
}
