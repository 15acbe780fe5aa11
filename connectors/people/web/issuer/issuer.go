// Package issuer is nod's client of an issuer of OpenID Connect. It logs a person in by the authorization
// code flow with PKCE, and later asks the issuer whether the issuer still vouches for the person. Errors
// contain the issuer's name, but no token and nothing else of a response.
package issuer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/nodbus/nod/schemas"
)

const (
	askWithin   = 8 * time.Second
	maxResponse = 2 << 20 // the longest response of the issuer, in bytes
)

// ErrEnded means that the issuer no longer vouches for the person, who has to log in again. Any other
// error of Check tells nothing about the person.
var ErrEnded = errors.New("the issuer no longer vouches for this login")

// Tokens give access to the issuer's claims about one person. They are secret.
type Tokens struct {
	Subject    string    `json:"subject"`
	Refresh    string    `json:"refresh,omitempty"`
	Access     string    `json:"access,omitempty"` // only if the issuer gave no Refresh
	AccessEnds time.Time `json:"access_ends,omitzero"`
}

// Flow is a login that has begun. It is secret, and belongs to one browser.
type Flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// Client is nod's client of one issuer. Its methods are safe for concurrent use.
type Client struct {
	settings schemas.OIDC
	secret   string
	redirect string
	http     *http.Client

	mu    sync.Mutex
	found *endpoints
}

// endpoints are the issuer's endpoints, from its discovery document.
type endpoints struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	keys     string
	userinfo string
	logout   string
	namesIss bool // responses of the issuer to the browser name the issuer (RFC 9207)
}

// New returns a client of an issuer. After a login, the issuer sends people back to the URL redirect. New
// does not connect to the issuer yet.
func New(settings schemas.OIDC, secret, redirect string) *Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		DialContext: (&net.Dialer{Timeout: askWithin}).DialContext, TLSHandshakeTimeout: askWithin,
	}
	return &Client{
		settings: settings, secret: secret, redirect: redirect,
		http: &http.Client{
			Transport: bounded{transport}, Timeout: askWithin,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// bounded is a RoundTripper that limits the length of responses.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	}
	return resp, err
}

// discover returns the issuer's endpoints. After it has read the discovery document once, it returns the
// same endpoints.
func (c *Client) discover(ctx context.Context) (*endpoints, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil {
		return c.found, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The provider keeps this context to read keys later, so it must not end with ctx. c.http limits the
	// time of each call.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.http), c.settings.Issuer)
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		return nil, fmt.Errorf("the discovery document of %s is of the issuer %.200q: set connectors.web.oidc.issuer to exactly that, if you trust it", c.settings.Issuer, other.Discovered)
	}
	if err != nil {
		return nil, c.failed("read its discovery document", err)
	}
	var doc struct {
		Auth     string   `json:"authorization_endpoint"`
		Token    string   `json:"token_endpoint"`
		Keys     string   `json:"jwks_uri"`
		UserInfo string   `json:"userinfo_endpoint"`
		Logout   string   `json:"end_session_endpoint"`
		NamesIss bool     `json:"authorization_response_iss_parameter_supported"`
		Methods  []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&doc); err != nil {
		return nil, c.failed("read its discovery document", err)
	}
	for name, at := range map[string]string{"authorization_endpoint": doc.Auth, "token_endpoint": doc.Token, "jwks_uri": doc.Keys, "userinfo_endpoint": doc.UserInfo, "end_session_endpoint": doc.Logout} {
		if err := c.checkEndpoint(at); err != nil {
			return nil, fmt.Errorf("the discovery document of %s has no usable %s: %w", c.settings.Issuer, name, err)
		}
	}
	style := oauth2.AuthStyleInHeader
	if c.secret == "" || len(doc.Methods) > 0 && !slices.Contains(doc.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	scopes := c.settings.Scopes
	if scopes == nil {
		scopes = schemas.DefaultScopes
	}
	c.found = &endpoints{
		provider: provider, verifier: provider.Verifier(&oidc.Config{ClientID: c.settings.ClientID}),
		oauth: oauth2.Config{
			ClientID: c.settings.ClientID, ClientSecret: c.secret, RedirectURL: c.redirect,
			Endpoint: oauth2.Endpoint{AuthURL: doc.Auth, TokenURL: doc.Token, AuthStyle: style},
			Scopes:   append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == oidc.ScopeOpenID })...),
		},
		keys: doc.Keys, userinfo: doc.UserInfo, logout: doc.Logout, namesIss: doc.NamesIss,
	}
	return c.found, nil
}

// checkEndpoint refuses an address that does not use https, unless the issuer's own address uses http.
func (c *Client) checkEndpoint(at string) error {
	if at == "" {
		return nil // an optional endpoint may be missing; a missing required endpoint fails when it is used
	}
	u, err := url.Parse(at)
	switch issuer, _ := url.Parse(c.settings.Issuer); {
	case err != nil || u.Host == "" || u.Fragment != "":
		return errors.New("it is not an address")
	case u.Scheme != "https" && (u.Scheme != "http" || issuer == nil || issuer.Scheme != "http"):
		return errors.New("it does not begin with https://")
	}
	return nil
}

// Begin begins a login. It returns the login and the issuer's address that the browser must open.
func (c *Client) Begin(ctx context.Context) (Flow, string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	at, err := c.discover(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	if at.oauth.Endpoint.AuthURL == "" {
		return Flow{}, "", fmt.Errorf("the discovery document of %s has no authorization_endpoint", c.settings.Issuer)
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce)}
	if asks := c.settings.Consent; slices.Contains(at.oauth.Scopes, oidc.ScopeOfflineAccess) && (asks == nil || *asks) {
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return f, at.oauth.AuthCodeURL(f.State, options...), nil
}

// Finish completes a login with the parameters that the browser has brought from the issuer: the code,
// and the issuer's name if the response has one. The caller must already have compared the parameter
// state with that of f.
func (c *Client) Finish(ctx context.Context, f Flow, code, iss string) (Tokens, Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), 2*askWithin)
	defer cancel()
	at, err := c.discover(ctx)
	if err != nil {
		return Tokens{}, Person{}, err
	}
	if iss != "" && iss != c.settings.Issuer || iss == "" && at.namesIss {
		return Tokens{}, Person{}, errors.New("the response is of another issuer than the one that was asked")
	}
	token, err := at.oauth.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Tokens{}, Person{}, c.failed("exchange the code", err)
	}
	claims, subject, err := c.verify(ctx, at, token, f.Nonce)
	if err != nil {
		return Tokens{}, Person{}, err
	}
	t := Tokens{Subject: subject}
	t.keep(token)
	if t.Refresh == "" && at.userinfo == "" {
		return Tokens{}, Person{}, fmt.Errorf("%s gives no refresh token and has no userinfo_endpoint, so nod could not ask it again: request offline_access in connectors.web.oidc.scopes", c.settings.Issuer)
	}
	p, err := c.person(ctx, at, token.AccessToken, subject, claims)
	return t, p, err
}

// keep stores the secrets of a response in t. If the response has no new refresh token, the present one
// stays valid.
func (t *Tokens) keep(token *oauth2.Token) {
	if token.RefreshToken != "" {
		t.Refresh = token.RefreshToken
	}
	if t.Refresh == "" {
		t.Access, t.AccessEnds = token.AccessToken, token.Expiry
	}
}

// Check asks the issuer about a person who has logged in. The returned tokens replace the given tokens,
// which may no longer work, even after an error other than ErrEnded.
func (c *Client) Check(ctx context.Context, t Tokens) (Tokens, Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), askWithin)
	defer cancel()
	at, err := c.discover(ctx)
	if err != nil {
		return t, Person{}, err
	}
	if t.Refresh == "" {
		if !t.AccessEnds.IsZero() && !time.Now().Before(t.AccessEnds) {
			return t, Person{}, ErrEnded
		}
		p, err := c.person(ctx, at, t.Access, t.Subject, nil)
		return t, p, err
	}
	token, err := at.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.ErrorCode == "invalid_grant" {
			return t, Person{}, ErrEnded
		}
		return t, Person{}, c.failed("refresh a login", err)
	}
	t.keep(token)
	var claims map[string]any
	if _, has := token.Extra("id_token").(string); has {
		var subject string
		if claims, subject, err = c.verify(ctx, at, token, ""); err != nil {
			return t, Person{}, err
		}
		if subject != t.Subject {
			return t, Person{}, ErrEnded
		}
	} else if at.userinfo == "" {
		return t, Person{}, fmt.Errorf("%s says nothing about the person: it has no userinfo_endpoint, and gives no id_token for a refresh token", c.settings.Issuer)
	}
	p, err := c.person(ctx, at, token.AccessToken, t.Subject, claims)
	return t, p, err
}

// LogoutURL returns the address at which a browser also logs out at the issuer. From there the issuer
// sends the browser to the URL back. The address is empty if the issuer offers no logout, or cannot be
// asked.
func (c *Client) LogoutURL(ctx context.Context, back string) string {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	at, err := c.discover(ctx)
	if err != nil || at.logout == "" {
		return ""
	}
	u, err := url.Parse(at.logout)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", c.settings.ClientID) // in place of id_token_hint, which would show the browser a token
	q.Set("post_logout_redirect_uri", back)
	u.RawQuery = q.Encode()
	return u.String()
}

// failed returns an error without the issuer's response.
func (c *Client) failed(what string, err error) error {
	var refused *oauth2.RetrieveError
	var unreachable *url.Error
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%s replied %s when asked to %s", c.settings.Issuer, refused.Response.Status, what)
	case errors.As(err, &refused):
		code := refused.ErrorCode
		if !known[code] {
			code = "no known error code"
		}
		return fmt.Errorf("%s refused to %s: %s (%s)", c.settings.Issuer, what, code, refused.Response.Status)
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s cannot be reached to %s: %w", c.settings.Issuer, what, unreachable.Err)
	}
	return fmt.Errorf("%s gave no usable response to %s", c.settings.Issuer, what)
}

// known contains the error codes that RFC 6749 defines for a token endpoint.
var known = map[string]bool{"invalid_request": true, "invalid_client": true, "invalid_grant": true, "unauthorized_client": true, "unsupported_grant_type": true, "invalid_scope": true}
