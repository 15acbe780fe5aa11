package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Config is an exporter's configuration, which FromEnvironment makes.
type Config struct {
	Endpoint string // the URL to which spans are posted
	Headers  http.Header
	TLS      *tls.Config
	Timeout  time.Duration // the time limit of one attempt to send a batch
	Queue    int           // the largest number of spans that wait
	Batch    int           // the largest number of spans in one message
	Delay    time.Duration // the longest time for which a span waits for further spans
	Sampler  sdktrace.Sampler
	Resource []attribute.KeyValue
	Version  string // nod's version
}

// The defaults of OpenTelemetry's specification.
const (
	defaultTimeout = 10 * time.Second
	defaultDelay   = 5 * time.Second
	defaultQueue   = 2048
	defaultBatch   = 512

	maxQueue = 1 << 16 // in spans; a larger queue would take more memory than all of nod
)

// environment returns the value of a named environment variable.
type environment func(name string) string

// FromEnvironment reads the variables OTEL_… by the function get, which is os.Getenv except in tests.
// If they name no endpoint or turn traces off, the result on is false, and FromEnvironment reads no
// further variable. The error is one line that names the variable.
func FromEnvironment(get func(string) string, version string) (c Config, on bool, err error) {
	env := environment(get)
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return c, false, nil
	}
	if c.Endpoint, err = env.endpoint(); c.Endpoint == "" || err != nil {
		return c, false, err
	}
	c.Version = version
	for _, read := range []func(*Config) error{
		env.protocol, env.readHeaders, env.certificates, env.sizes, env.sampler, env.resource,
	} {
		if err := read(&c); err != nil {
			return c, false, err
		}
	}
	return c, true, nil
}

// ofTraces returns a variable of the exporter. If there are two variables, it prefers the variable
// for traces alone to the variable for all kinds of telemetry.
func (env environment) ofTraces(name string) (variable, value string) {
	if variable = "OTEL_EXPORTER_OTLP_TRACES_" + name; env(variable) != "" {
		return variable, env(variable)
	}
	variable = "OTEL_EXPORTER_OTLP_" + name
	return variable, env(variable)
}

func (env environment) endpoint() (string, error) {
	variable, value := env.ofTraces("ENDPOINT")
	if value == "" {
		return "", nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s is no URL of http or https: name a collector such as http://127.0.0.1:4318", variable)
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

func (env environment) protocol(*Config) error {
	if value := env("OTEL_TRACES_EXPORTER"); value != "" && value != "otlp" {
		return fmt.Errorf("OTEL_TRACES_EXPORTER is %q: nod exports by otlp only; use otlp or none", value)
	}
	variable, value := env.ofTraces("PROTOCOL")
	if value != "" && value != "http/protobuf" {
		return fmt.Errorf("%s is %q: nod speaks http/protobuf only; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf and an endpoint for it", variable, value)
	}
	if variable, value = env.ofTraces("COMPRESSION"); value != "" && value != "none" {
		return fmt.Errorf("%s is %q: nod sends spans uncompressed; set OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none", variable, value)
	}
	return nil
}

func (env environment) readHeaders(c *Config) error {
	variable, value := env.ofTraces("HEADERS")
	all, err := pairs(variable, value)
	c.Headers = http.Header{}
	for _, p := range all {
		c.Headers.Add(p.name, p.value)
	}
	return err
}

type pair struct{ name, value string }

// pairs reads a variable that lists names with escaped values. The error does not quote the list,
// because the list may contain secrets.
func pairs(variable, list string) (all []pair, err error) {
	for one := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		name, escaped, found := strings.Cut(one, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if !found || name == "" || err != nil || !utf8.ValidString(name+value) {
			return nil, fmt.Errorf("%s is not a list such as name=value,name=value", variable)
		}
		all = append(all, pair{name, value})
	}
	return all, nil
}

func (env environment) certificates(c *Config) error {
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if variable, path := env.ofTraces("CERTIFICATE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: %s holds no certificate in PEM", variable, path)
		}
	}
	variable, path := env.ofTraces("CLIENT_CERTIFICATE")
	if path == "" {
		return nil
	}
	_, key := env.ofTraces("CLIENT_KEY")
	pair, err := tls.LoadX509KeyPair(path, key)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

func (env environment) sizes(c *Config) error {
	timeoutName, _ := env.ofTraces("TIMEOUT")
	var err1, err2, err3, err4 error
	c.Timeout, err1 = env.duration(timeoutName, defaultTimeout)
	c.Delay, err2 = env.duration("OTEL_BSP_SCHEDULE_DELAY", defaultDelay)
	c.Queue, err3 = env.number("OTEL_BSP_MAX_QUEUE_SIZE", "spans", defaultQueue, maxQueue)
	c.Batch, err4 = env.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "spans", min(defaultBatch, c.Queue), maxQueue)
	return cmp.Or(err1, err2, err3, err4)
}

func (env environment) duration(variable string, otherwise time.Duration) (time.Duration, error) {
	ms, err := env.number(variable, "milliseconds", int(otherwise.Milliseconds()), 600_000)
	return time.Duration(ms) * time.Millisecond, err
}

func (env environment) number(variable, unit string, otherwise, most int) (int, error) {
	value := env(variable)
	if value == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s is %q: use a number of %s from 1 to %d", variable, value, unit, most)
	}
	return n, nil
}

func (env environment) sampler(c *Config) error {
	name := cmp.Or(env("OTEL_TRACES_SAMPLER"), "parentbased_always_on")
	base, ofParent := strings.CutPrefix(name, "parentbased_")
	switch base {
	case "always_on":
		c.Sampler = sdktrace.AlwaysSample()
	case "always_off":
		c.Sampler = sdktrace.NeverSample()
	case "traceidratio":
		text := cmp.Or(env("OTEL_TRACES_SAMPLER_ARG"), "1")
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: use a ratio from 0 to 1", text)
		}
		c.Sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		return fmt.Errorf("OTEL_TRACES_SAMPLER is %q: use always_on, always_off or traceidratio, each also with parentbased_ before it", name)
	}
	if ofParent {
		c.Sampler = sdktrace.ParentBased(c.Sampler)
	}
	return nil
}

// resource describes this process by the variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
func (env environment) resource(c *Config) error {
	all, err := pairs("OTEL_RESOURCE_ATTRIBUTES", env("OTEL_RESOURCE_ATTRIBUTES"))
	attributes := []attribute.KeyValue{attribute.String("service.name", "nod"), attribute.String("service.version", c.Version)}
	for _, p := range all {
		attributes = append(attributes, attribute.String(p.name, p.value))
	}
	if name := env("OTEL_SERVICE_NAME"); name != "" {
		attributes = append(attributes, attribute.String("service.name", name))
	}
	set := attribute.NewSet(attributes...) // if a name occurs several times, its last value counts
	c.Resource = set.ToSlice()
	return err
}

// shown returns the endpoint for the log, without a password or a query.
func (c *Config) shown() string {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "the collector"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// withoutURL returns only the cause of an HTTP client's error, because the text of the error itself
// contains the whole URL.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
