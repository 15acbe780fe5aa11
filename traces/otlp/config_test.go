package otlp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

func read(variables map[string]string) (Config, bool, error) {
	return FromEnvironment(func(name string) string { return variables[name] }, "1.2.3")
}

func TestTracesAreOffWithoutAnEndpoint(t *testing.T) {
	for _, variables := range []map[string]string{
		{},
		{"OTEL_TRACES_SAMPLER": "nonsense"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		_, on, err := read(variables)
		require.NoError(t, err)
		require.False(t, on, variables)
	}
}

func TestTheStandardVariablesConfigureTheExporter(t *testing.T) {
	c, on, err := read(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/base/"})
	require.NoError(t, err)
	require.True(t, on)
	require.Equal(t, "http://collector:4318/base/v1/traces", c.Endpoint)
	require.Equal(t, 10*time.Second, c.Timeout)
	require.Equal(t, 5*time.Second, c.Delay)
	require.Equal(t, []int{2048, 512}, []int{c.Queue, c.Batch})
	require.Contains(t, c.Sampler.Description(), "ParentBased{root:AlwaysOnSampler")

	c, on, err = read(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://collector/spans",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x=y, b=c", "OTEL_EXPORTER_OTLP_TIMEOUT": "1000", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2000",
		"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
	})
	require.NoError(t, err)
	require.True(t, on)
	require.Equal(t, "https://collector/spans", c.Endpoint)
	require.Equal(t, "Bearer x=y", c.Headers.Get("Authorization"))
	require.Equal(t, "c", c.Headers.Get("b"))
	require.Equal(t, 2*time.Second, c.Timeout)
	require.Equal(t, []int{10, 10}, []int{c.Queue, c.Batch})
	require.Contains(t, c.Sampler.Description(), "TraceIDRatioBased{0.25}")
}

func TestTheVariablesDescribeTheProcess(t *testing.T) {
	for service, expected := range map[string]string{"": "of the list", "of its own": "of its own"} {
		c, _, err := read(map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_RESOURCE_ATTRIBUTES": "service.name=of%20the list, deployment.environment = test", "OTEL_SERVICE_NAME": service,
		})
		require.NoError(t, err)
		require.ElementsMatch(t, []attribute.KeyValue{
			attribute.String("service.name", expected), attribute.String("service.version", "1.2.3"), attribute.String("deployment.environment", "test"),
		}, c.Resource)
	}
}

// The error names the faulty variable and shows no secret.
func TestAWrongVariableIsNamed(t *testing.T) {
	for variable, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_HEADERS": "sosecret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=sosecret%zz",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such/file", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/no/such/file", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon",
		"OTEL_BSP_MAX_QUEUE_SIZE": "1000000", "OTEL_BSP_SCHEDULE_DELAY": "0", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1",
		"OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_TRACES_EXPORTER": "zipkin", "OTEL_RESOURCE_ATTRIBUTES": "=sosecret",
	} {
		variables := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}
		if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			clear(variables)
		}
		variables[variable] = value
		_, on, err := read(variables)
		require.ErrorContains(t, err, variable)
		require.False(t, on)
		require.NotContains(t, err.Error(), "sosecret")
		require.NotContains(t, err.Error(), "\n")
	}
	for _, ratio := range []string{"2", "-1", "NaN", "half"} {
		_, _, err := read(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio})
		require.ErrorContains(t, err, "OTEL_TRACES_SAMPLER_ARG", ratio)
	}
}
