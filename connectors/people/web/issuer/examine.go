package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Result is the result of Examine for one part of the settings. Err is nil if that part works, or if Unsure
// is true: then only a login shows whether it works.
type Result struct {
	What   string
	Unsure bool
	Err    error
}

// Examine tries everything at the issuer that needs no login. It reads the issuer's discovery document and
// keys, and tries whether the issuer accepts the client with its redirect URI and with its secret. An error
// says what to change.
func (c *Client) Examine(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeout(ctx, 3*askWithin)
	defer cancel()
	at, err := c.discover(ctx)
	if err != nil {
		return []Result{{Err: fmt.Errorf("%w: see that this machine reaches %s, and that connectors.web.oidc.issuer is the issuer's own name", err, c.settings.Issuer)}}
	}
	return []Result{c.examineKeys(ctx, at), c.examineClient(ctx, at), c.examineSecret(ctx, at)}
}

// examineKeys reads the issuer's keys.
func (c *Client) examineKeys(ctx context.Context, at *endpoints) Result {
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
			Use  string `json:"use"`
		} `json:"keys"`
	}
	if err := c.read(ctx, at.keys, &set); err != nil {
		return Result{Err: fmt.Errorf("the keys of %s cannot be read, so every login fails: %w: see what jwks_uri in its discovery document leads to", c.settings.Issuer, err)}
	}
	sign := 0
	for _, k := range set.Keys {
		if k.Use != "enc" && slices.Contains([]string{"RSA", "EC", "OKP"}, k.Type) {
			sign++
		}
	}
	if sign == 0 {
		return Result{Err: fmt.Errorf("%s publishes no key that signs, so every login fails: let the client's id_tokens be signed with RS256 or ES256 there", c.settings.Issuer)}
	}
	return Result{What: fmt.Sprintf("%s is the issuer of its discovery document, and its keys can be read", c.settings.Issuer)}
}

// read reads JSON from the issuer.
func (c *Client) read(ctx context.Context, from string, into any) error {
	resp, err := c.get(ctx, from)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if json.NewDecoder(resp.Body).Decode(into) != nil { // the error may quote the issuer's text
		return errors.New("the response is no JSON of keys")
	}
	return nil
}

func (c *Client) get(ctx context.Context, from string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	resp, err := c.http.Do(r)
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return nil, unreachable.Err // without the address, which may be long
	}
	return resp, err
}

// withoutLogin are the errors with which an issuer refuses to log a person in without a page. They say
// nothing against the client.
var withoutLogin = []string{"login_required", "interaction_required", "consent_required", "account_selection_required"}

// examineClient begins a login in which the issuer may show no page (prompt=none). An issuer sends the
// browser back only to a redirect URI that it knows for the client.
func (c *Client) examineClient(ctx context.Context, at *endpoints) Result {
	client := fmt.Sprintf("the client %s with the redirect URI %s", c.settings.ClientID, c.redirect)
	register := ": register the redirect URI there, and set connectors.web.oidc.client_id to the name that it gave to the client"
	const state = "nod-doctor"
	verifier := oauth2.GenerateVerifier()
	resp, err := c.get(ctx, at.oauth.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", state), oauth2.SetAuthURLParam("prompt", "none")))
	if err != nil {
		return Result{Err: fmt.Errorf("%s cannot be reached to begin a login: %w: see what authorization_endpoint in its discovery document leads to", c.settings.Issuer, err)}
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		return Result{Err: fmt.Errorf("%s replied %s when a login began: see its log", c.settings.Issuer, resp.Status)}
	case resp.StatusCode >= http.StatusBadRequest:
		return Result{Err: fmt.Errorf("%s does not accept %s (%s)%s", c.settings.Issuer, client, resp.Status, register)}
	case err != nil || !strings.HasPrefix(back.String(), c.redirect+"?") || back.Query().Get("state") != state:
		return Result{Unsure: true, What: fmt.Sprintf("only a login shows whether %s accepts %s", c.settings.Issuer, client)}
	}
	if code := back.Query().Get("error"); code != "" && !slices.Contains(withoutLogin, code) {
		return Result{Err: fmt.Errorf("%s refuses logins of %s: %.80q: allow it the code flow and the scopes %s there, or set connectors.web.oidc.scopes",
			c.settings.Issuer, client, code, strings.Join(at.oauth.Scopes, " "))}
	}
	return Result{What: fmt.Sprintf("%s accepts %s", c.settings.Issuer, client)}
}

// examineSecret tries to exchange a code that the issuer has not given out. If the issuer refuses the
// client, the secret is wrong. If it refuses only the code, the secret is right.
func (c *Client) examineSecret(ctx context.Context, at *endpoints) Result {
	const what = "check the client's secret"
	_, err := at.oauth.Exchange(oidc.ClientContext(ctx, c.http), "nod-doctor", oauth2.VerifierOption(oauth2.GenerateVerifier()))
	var refused *oauth2.RetrieveError
	switch {
	case err == nil:
		return Result{Err: fmt.Errorf("%s gives tokens for a code that it has not given out: do not use it", c.settings.Issuer)}
	case !errors.As(err, &refused):
		return Result{Err: fmt.Errorf("%w: see what token_endpoint in its discovery document leads to", c.failed(what, err))}
	case refused.ErrorCode == "invalid_grant" && c.secret == "":
		return Result{What: fmt.Sprintf("%s accepts the client %s without a secret", c.settings.Issuer, c.settings.ClientID)}
	case refused.ErrorCode == "invalid_grant":
		return Result{What: fmt.Sprintf("%s accepts the secret of the client %s", c.settings.Issuer, c.settings.ClientID)}
	case refused.ErrorCode == "invalid_client" || refused.ErrorCode == "unauthorized_client" || refused.Response.StatusCode == http.StatusUnauthorized:
		return Result{Err: fmt.Errorf("%s does not accept the secret of the client %s: put the one that it gave to the client where connectors.web.oidc.client_secret_file or _env says", c.settings.Issuer, c.settings.ClientID)}
	}
	return Result{Unsure: true, What: fmt.Sprintf("only a login shows whether the client's secret is right: %v", c.failed(what, err))}
}
