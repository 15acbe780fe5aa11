// Package tokenstest contains an OIDC issuer for tests. The issuer serves its description and its keys,
// and signs tokens.
package tokenstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// Issuer is an OIDC issuer on this machine.
type Issuer struct {
	URL string

	t      testing.TB
	mu     sync.Mutex
	keys   []key
	made   int
	asked  int
	status int           // the HTTP status of each reply; 0 means 200
	hang   chan struct{} // if this channel is not nil, requests wait until it is closed
}

type key struct {
	id      string
	private *ecdsa.PrivateKey
}

// New starts an issuer with one key. The issuer stops at the end of the test.
func New(t testing.TB) *Issuer {
	i := &Issuer{t: t}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	i.URL = server.URL
	t.Cleanup(func() { i.Reply(http.StatusOK); server.Close() })
	i.AddKey()
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked++
	hang, status := i.hang, i.status
	set := jose.JSONWebKeySet{}
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(jose.ES256), Use: "sig"})
	}
	i.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{ // Encode fails only if the client is gone
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		})
	case "/keys":
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

// AddKey adds a key. From now on, the issuer signs its tokens with this key.
func (i *Issuer) AddKey() {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(i.t, err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	i.keys = append(i.keys, key{fmt.Sprint("k", i.made), private})
}

// DropOldKeys withdraws all keys except the newest.
func (i *Issuer) DropOldKeys() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = i.keys[len(i.keys)-1:]
}

// Key returns the newest key, with which the issuer signs tokens.
func (i *Issuer) Key() (id string, private *ecdsa.PrivateKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	k := i.keys[len(i.keys)-1]
	return k.id, k.private
}

// Hang makes the issuer leave all requests without a reply, until the test calls Reply.
func (i *Issuer) Hang() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hang == nil {
		i.hang = make(chan struct{})
	}
}

// Reply makes the issuer reply to each request with this HTTP status.
func (i *Issuer) Reply(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hang != nil {
		close(i.hang)
		i.hang = nil
	}
	i.status = status
}

// Asked returns the number of HTTP requests that the issuer has received.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Claims returns the claims of a token that is valid for an hour and has the audience nod. The map
// changes replaces claims, or removes them by the value nil.
func (i *Issuer) Claims(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": "nod", "sub": "repo:acme/web:ref:refs/heads/main", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"repository": "acme/web", "repository_id": "7", "ref": "refs/heads/main",
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// Token returns a token that the newest key has signed. The claims are those of Claims.
func (i *Issuer) Token(changes map[string]any) string {
	id, private := i.Key()
	return Sign(i.t, jose.ES256, private, id, i.Claims(changes))
}

// Sign returns a token with these claims, signed with the given key.
func Sign(t testing.TB, alg jose.SignatureAlgorithm, with any, keyID string, claims map[string]any) string {
	return signWith(t, alg, with, claims, map[jose.HeaderKey]any{"kid": keyID})
}

func signWith(t testing.TB, alg jose.SignatureAlgorithm, with any, claims map[string]any, header map[jose.HeaderKey]any) string {
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: with}, (&jose.SignerOptions{ExtraHeaders: header}).WithType("JWT"))
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}
