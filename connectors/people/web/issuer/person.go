package issuer

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/nodbus/nod/schemas"
)

// Person is what the issuer's claims say about a person at one time.
type Person struct {
	Subject string
	User    string // the value of the claim that identifies the person
	Name    string
	Groups  []string
}

// verify checks the id_token of a response, and returns its claims and its subject. nonce is
// empty for a response to a refresh token.
func (c *Client) verify(ctx context.Context, at *endpoints, token *oauth2.Token, nonce string) (map[string]any, string, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, "", fmt.Errorf("%s gave no id_token", c.settings.Issuer)
	}
	id, err := at.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, "", fmt.Errorf("the id_token of %s is not valid: %w", c.settings.Issuer, reason(err))
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, "", fmt.Errorf("the claims of the id_token of %s cannot be read", c.settings.Issuer)
	}
	party, named := claims["azp"]
	switch {
	case nonce != "" && subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		err = errors.New("it is for another login (nonce)")
	case named && party != c.settings.ClientID, len(id.Audience) > 1 && !named:
		err = errors.New("it is for another client (azp)")
	case id.Subject == "":
		err = errors.New("it has no subject")
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		err = errors.New("it is for another access token (at_hash)")
	}
	if err != nil {
		return nil, "", fmt.Errorf("the id_token of %s is not valid: %w", c.settings.Issuer, err)
	}
	return claims, id.Subject, nil
}

// reason returns the reason of an id_token's refusal in words of nod, because the library's
// words can contain claims.
func reason(err error) error {
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		return errors.New("it has expired")
	}
	return errors.New("its issuer, audience, algorithm or signature is wrong")
}

// person makes a Person from the claims of the id_token, if there is one, and of the issuer's
// userinfo_endpoint. If both have a claim, that of the userinfo_endpoint counts.
func (c *Client) person(ctx context.Context, at *endpoints, access, subject string, claims map[string]any) (Person, error) {
	all := maps.Clone(claims)
	if at.userinfo != "" {
		more, err := c.userInfo(ctx, at.userinfo, access)
		if err != nil {
			return Person{}, err
		}
		if more["sub"] != subject {
			return Person{}, ErrEnded // the claims are about another person than the login
		}
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, more)
	}
	p := Person{Subject: subject, Groups: texts(all[c.settings.Groups()])}
	p.Name, _ = all[c.settings.DisplayName()].(string)
	if p.User, _ = all[c.settings.User()].(string); p.User == "" {
		return Person{}, fmt.Errorf("%s does not say the claim %q (connectors.web.oidc.user_claim)", c.settings.Issuer, c.settings.User())
	}
	if verified := all[schemas.ClaimVerified]; c.settings.User() == schemas.ClaimEmail && verified != true && verified != "true" {
		return Person{}, fmt.Errorf("%s has not verified the person's e-mail address, so it identifies nobody", c.settings.Issuer)
	}
	return p, nil
}

// userInfo reads the userinfo_endpoint. The error is ErrEnded if the issuer refuses the token.
func (c *Client) userInfo(ctx context.Context, at, access string) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("read the userinfo_endpoint of %s: %w", c.settings.Issuer, err)
	}
	req.Header.Set("Authorization", "Bearer "+access)
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed("read its userinfo_endpoint", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, ErrEnded
	default:
		return nil, fmt.Errorf("the userinfo_endpoint of %s replied %d", c.settings.Issuer, resp.StatusCode)
	}
	var claims map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&claims); err != nil || claims == nil {
		return nil, fmt.Errorf("the userinfo_endpoint of %s did not reply with a JSON object", c.settings.Issuer)
	}
	return claims, nil
}

// texts returns the texts in a claim, which is a list of texts or a single text. It skips all other
// values, because a group that cannot be read must not make anybody an approver.
func texts(claim any) []string {
	var all []string
	switch v := claim.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			if text, ok := e.(string); ok {
				all = append(all, text)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
