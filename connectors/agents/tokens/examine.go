package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Examine reads the description and the keys of every issuer. The result has one entry for each issuer.
// The entry is nil if the service can check the issuer's tokens, and otherwise the reason why it cannot.
func (s *Service) Examine(ctx context.Context) map[string]error {
	all := map[string]error{}
	for name, i := range s.issuers {
		all[name] = i.examine(ctx)
	}
	return all
}

func (i *issuer) examine(ctx context.Context) error {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		return fmt.Errorf("the description at %s is of the issuer %.200q: write the issuer in tokens.json as the token's claim iss has it", i.url, other.Discovered)
	}
	if err != nil {
		return fmt.Errorf("the description of %s cannot be read: %w: see that this machine reaches it, and that ca_file has its authority", i.url, withoutURL(err))
	}
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&doc); err != nil {
		return fmt.Errorf("the description of %s names no keys: see its jwks_uri", i.url)
	}
	keys, err := i.signingKeys(ctx, doc.Keys)
	if err != nil {
		return fmt.Errorf("the keys of %s at %s cannot be read: %w: see that this machine reaches them", i.url, doc.Keys, withoutURL(err))
	}
	if keys == 0 {
		return fmt.Errorf("%s publishes no key that signs tokens: see %s", i.url, doc.Keys)
	}
	return nil
}

// signingKeys reads the keys at the URL from, and returns how many of these keys can check a signature.
func (i *issuer) signingKeys(ctx context.Context, from string) (n int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return 0, errors.New("the address is malformed")
	}
	reply, err := i.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return 0, errors.New(reply.Status)
	}
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
			Use  string `json:"use"`
		} `json:"keys"`
	}
	if json.NewDecoder(reply.Body).Decode(&set) != nil { // the error may quote the reply
		return 0, errors.New("the reply is no JSON of keys")
	}
	for _, k := range set.Keys {
		if k.Use != "enc" && slices.Contains([]string{"RSA", "EC", "OKP"}, k.Type) {
			n++
		}
	}
	return n, nil
}

// withoutURL removes the URL from an error of the HTTP client, because the caller's message
// contains the URL already.
func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
