package tokenstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// Invalid returns invalid tokens that a job, another issuer or a thief could send instead of Token(nil).
// A service whose settings have the audience nod must refuse each of them.
func (i *Issuer) Invalid(other *Issuer) map[string]string {
	t := i.t
	id, key := i.Key()
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Public(), KeyID: id})
	require.NoError(t, err)
	valid := i.Token(nil)
	parts := strings.Split(valid, ".")
	header := func(alg string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","kid":"` + id + `","typ":"JWT"}`))
	}
	payload := func(changes map[string]any) string {
		text, err := json.Marshal(i.Claims(changes))
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	ownKey := &jose.JSONWebKey{Key: foreign.Public(), KeyID: id}
	return map[string]string{
		"its own key in the header":     signWith(t, jose.ES256, foreign, i.Claims(nil), map[jose.HeaderKey]any{"kid": id, "jwk": ownKey}),
		"its own key and no kid":        signWith(t, jose.ES256, foreign, i.Claims(nil), map[jose.HeaderKey]any{"jwk": ownKey}),
		"an address of keys":            signWith(t, jose.ES256, foreign, i.Claims(nil), map[jose.HeaderKey]any{"kid": id, "jku": other.URL + "/keys", "x5u": other.URL}),
		"a kid that is no text":         signWith(t, jose.ES256, foreign, i.Claims(nil), map[jose.HeaderKey]any{"kid": []string{id}}),
		"an unknown critical header":    signWith(t, jose.ES256, key, i.Claims(nil), map[jose.HeaderKey]any{"kid": id, "crit": []string{"nod"}, "nod": true}),
		"expired":                       i.Token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}),
		"without an end":                i.Token(map[string]any{"exp": nil}),
		"end is a text":                 i.Token(map[string]any{"exp": "2099-01-01"}),
		"end beyond all numbers":        i.Token(map[string]any{"exp": 1e300}),
		"not valid yet":                 i.Token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"another audience":              i.Token(map[string]any{"aud": "https://github.com/acme"}),
		"no audience":                   i.Token(map[string]any{"aud": nil}),
		"an audience that begins alike": i.Token(map[string]any{"aud": "nod-evil"}),
		"another issuer":                other.Token(nil),
		"another issuer that lies":      other.Token(map[string]any{"iss": i.URL}),
		"an issuer that is no text":     i.Token(map[string]any{"iss": []string{i.URL}}),
		"the issuer with a slash":       i.Token(map[string]any{"iss": i.URL + "/"}),
		"alg none":                      header("none") + "." + parts[1] + ".",
		"alg none with a signature":     header("none") + "." + parts[1] + "." + parts[2],
		"alg None":                      header("None") + "." + parts[1] + ".",
		"HS256 by the public PEM":       Sign(t, jose.HS256, public, id, i.Claims(nil)),
		"HS256 by the public DER":       Sign(t, jose.HS256, der, id, i.Claims(nil)),
		"HS256 by the public JWK":       Sign(t, jose.HS256, jwk, id, i.Claims(nil)),
		"an unknown kid":                Sign(t, jose.ES256, foreign, "unknown", i.Claims(nil)),
		"a foreign key, the known kid":  Sign(t, jose.ES256, foreign, id, i.Claims(nil)),
		"a foreign key, no kid":         Sign(t, jose.ES256, foreign, "", i.Claims(nil)),
		"changed claims":                parts[0] + "." + payload(map[string]any{"repository": "acme/other"}) + "." + parts[2],
		"no signature":                  parts[0] + "." + parts[1] + ".",
		"a cut signature":               valid[:len(valid)-8],
		"JSON":                          `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"two tokens":                    valid + "." + valid,
		"empty":                         "", "dots": "..", "text": "hunter2",
	}
}
