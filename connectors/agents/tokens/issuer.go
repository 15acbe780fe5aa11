package tokens

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

const (
	// askWithin is the time limit of one HTTP request to an issuer.
	askWithin = 5 * time.Second
	// After keysFresh, the service reads an issuer's description and keys again. After keysKept, it
	// no longer uses keys that it could not read again. A key that an issuer has withdrawn is
	// therefore valid for at most keysKept.
	keysFresh = 10 * time.Minute
	keysKept  = 20 * time.Minute
	// askEvery and askBurst limit the requests to one issuer, because anybody can cause such a request
	// by a token with an unknown key.
	askEvery = time.Second
	askBurst = 6
	// maxReply is the largest reply, in bytes, that the service reads from an issuer.
	maxReply = 1 << 20
)

// issuer verifies the tokens of one OIDC issuer.
type issuer struct {
	url    string
	client *http.Client
	now    func() time.Time
	asking singleflight.Group

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil before the issuer has replied
	read     time.Time
}

func newIssuer(url, caFile string) (*issuer, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file of the issuer %s: %w", url, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_file of the issuer %s, %s, has no certificate: name a file in PEM", url, caFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	client := &http.Client{
		Timeout:       askWithin,
		Transport:     limited{transport, rate.NewLimiter(rate.Every(askEvery), askBurst)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &issuer{url: url, client: client, now: time.Now}, nil
}

// verify checks a token's signature, issuer and times, but not its audience.
func (i *issuer) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	v, err := i.current(ctx)
	if err != nil {
		return nil, err
	}
	return v.Verify(ctx, token)
}

// current returns the verifier for the issuer's keys. If the stored keys are younger than keysKept,
// current does not wait for the issuer.
func (i *issuer) current(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	v, age := i.verifier, i.now().Sub(i.read)
	i.mu.Unlock()
	if v != nil && age < keysFresh {
		return v, nil
	}
	asked := i.asking.DoChan("", i.ask)
	if v != nil && age < keysKept {
		return v, nil
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("the issuer %s does not reply in time: %w", i.url, ctx.Err())
	case r := <-asked:
		if r.Err != nil {
			return nil, fmt.Errorf("the issuer %s cannot be asked for its keys: %w", i.url, r.Err)
		}
		return r.Val.(*oidc.IDTokenVerifier), nil
	}
}

// ask reads the issuer's description. It continues after its client has gone, so that the next client
// finds the result.
func (i *issuer) ask() (any, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), i.client), askWithin)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, i.url)
	if err != nil {
		return nil, err
	}
	v := provider.VerifierContext(oidc.ClientContext(context.Background(), i.client), &oidc.Config{
		SkipClientIDCheck: true, // Service.Check requires the audience of each job
		Now:               i.now,
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.verifier, i.read = v, i.now()
	return v, nil
}

// limited sends requests to an issuer. It limits their rate and the size of the replies, and
// refuses unsafe URLs.
type limited struct {
	next http.RoundTripper
	rate *rate.Limiter
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if !safeURL(r.URL) {
		return nil, fmt.Errorf("%s is not reached over TLS", r.URL.Host)
	}
	if !l.rate.Allow() {
		return nil, errors.New("it was asked too often just now")
	}
	reply, err := l.next.RoundTrip(r)
	if err == nil {
		reply.Body = http.MaxBytesReader(nil, reply.Body, maxReply)
	}
	return reply, err
}
