package web_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

const (
	clientID     = "nod"
	clientSecret = "a secret of the tests: 1%&"
)

// testIssuer is a strict issuer of OpenID Connect. It enforces PKCE, the redirect URI and the
// client's secret, takes each code and each refresh token once, and logs a person in without a form.
type testIssuer struct {
	*httptest.Server
	t      *testing.T
	key    *rsa.PrivateKey
	signer jose.Signer

	mu      sync.Mutex
	person  map[string]any // the claims of the person who logs in, for the id_token and for userinfo
	codes   map[string]url.Values
	refresh map[string]bool
	access  map[string]bool
	calls   int
	down    bool
	replies map[string]int // a path that replies only with this status
	// forge changes the claims of the next id_tokens; sign replaces their signature.
	forge       func(claims map[string]any)
	sign        func(claims map[string]any) string
	noRefresh   bool
	iss         string // the parameter iss of responses to the browser
	redirectURI string
}

// issuerKey returns the key that most issuers share, because a key takes long to make.
var issuerKey = sync.OnceValues(newIssuerKey)

func newIssuerKey() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }

func newIssuer(t *testing.T, makeKey func() (*rsa.PrivateKey, error)) *testIssuer {
	key, err := makeKey()
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	require.NoError(t, err)
	i := &testIssuer{
		t: t, key: key, signer: signer, codes: map[string]url.Values{}, refresh: map[string]bool{}, access: map[string]bool{},
		person: map[string]any{"sub": "s-ann", "name": "Ann", "groups": []any{"nod-ops", "staff"}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.reply(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /userinfo", i.userinfo)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down, status := i.down, i.replies[r.URL.Path]
		i.calls++
		i.mu.Unlock()
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	i.iss = i.URL
	return i
}

func (i *testIssuer) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *testIssuer) discovery(w http.ResponseWriter, _ *http.Request) {
	i.reply(w, 200, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri": i.URL + "/keys", "userinfo_endpoint": i.URL + "/userinfo", "end_session_endpoint": i.URL + "/logout",
		"id_token_signing_alg_values_supported": []string{"RS256", "none"}, "authorization_response_iss_parameter_supported": true,
	})
}

func (i *testIssuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	if q.Get("client_id") != clientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("nonce") == "" || q.Get("state") == "" || q.Get("redirect_uri") != i.redirectURI || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "not a request that this issuer takes", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if i.iss != "" {
		back.Set("iss", i.iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *testIssuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	refuse := func(code string) { i.reply(w, http.StatusBadRequest, map[string]any{"error": code}) }
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if id != clientID || secret != clientSecret {
		refuse("invalid_client")
		return
	}
	nonce := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		q := i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if q == nil || r.FormValue("redirect_uri") != q.Get("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
			refuse("invalid_grant")
			return
		}
		nonce = q.Get("nonce")
	case "refresh_token":
		if !i.refresh[r.FormValue("refresh_token")] {
			refuse("invalid_grant")
			return
		}
		delete(i.refresh, r.FormValue("refresh_token"))
	}
	access := rand.Text()
	i.access[access] = true
	reply := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "id_token": i.idToken(nonce)}
	if !i.noRefresh {
		refresh := rand.Text()
		i.refresh[refresh] = true
		reply["refresh_token"] = refresh
	}
	i.reply(w, 200, reply)
}

func (i *testIssuer) idToken(nonce string) string {
	claims := maps.Clone(i.person)
	maps.Copy(claims, map[string]any{"iss": i.URL, "aud": clientID, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()})
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if i.forge != nil {
		i.forge(claims)
	}
	if i.sign != nil {
		return i.sign(claims)
	}
	return i.signed(claims)
}

func (i *testIssuer) signed(claims map[string]any) string {
	data, err := json.Marshal(claims)
	require.NoError(i.t, err)
	signed, err := i.signer.Sign(data)
	require.NoError(i.t, err)
	text, err := signed.CompactSerialize()
	require.NoError(i.t, err)
	return text
}

func (i *testIssuer) userinfo(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		i.reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return
	}
	i.reply(w, 200, i.person)
}

// change calls f, which alters the issuer. Meanwhile the issuer handles no request.
func (i *testIssuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// says changes a claim of the person. The value nil removes the claim.
func (i *testIssuer) says(claim string, value any) {
	i.change(func() {
		i.person = maps.Clone(i.person)
		if i.person[claim] = value; value == nil {
			delete(i.person, claim)
		}
	})
}

// disables makes all refresh and access tokens of the issuer invalid.
func (i *testIssuer) disables() {
	i.change(func() { i.refresh, i.access = map[string]bool{}, map[string]bool{} })
}
