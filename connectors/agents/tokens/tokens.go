package tokens

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// admittedFor is the longest time after which a client must send its token again. Only then do changed
// settings and withdrawn keys affect the client.
const admittedFor = time.Hour

// Service checks tokens against settings.
type Service struct {
	settings *Settings
	issuers  map[string]*issuer
	log      *slog.Logger
}

// New returns a service with the settings s. It returns an error if it cannot read the CAFile of a job.
func New(s *Settings, log *slog.Logger) (*Service, error) {
	service := &Service{settings: s, issuers: map[string]*issuer{}, log: log}
	for _, j := range s.Jobs {
		if service.issuers[j.Issuer] != nil {
			continue
		}
		i, err := newIssuer(j.Issuer, j.CAFile)
		if err != nil {
			return nil, err
		}
		service.issuers[j.Issuer] = i
	}
	return service, nil
}

// Reach asks every issuer for its description, and logs each issuer that does not reply. The service
// refuses the tokens of such an issuer until the issuer replies.
func (s *Service) Reach(ctx context.Context) {
	for url, i := range s.issuers {
		if _, err := i.current(ctx); err != nil {
			s.log.Warn("tokens of this issuer are refused until it replies", "issuer", url, "error", err)
		}
	}
}

// Check returns the time until which the bearer of a token may act as the agent with this name. It
// returns an error if the token is invalid, or if no job has its issuer, its audience and its claims,
// and this agent name.
func (s *Service) Check(ctx context.Context, agent, token string) (until time.Time, err error) {
	url, err := issuerOf(token)
	if err != nil {
		return until, err
	}
	i := s.issuers[url]
	if i == nil {
		return until, fmt.Errorf("no job of the settings has the token's issuer %.120q", url)
	}
	t, err := i.verify(ctx, token)
	if err != nil {
		return until, fmt.Errorf("the token of %s is not valid: %w", url, err)
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return until, fmt.Errorf("the claims of the token cannot be read: %w", err)
	}
	job, err := s.find(agent, t, claims)
	if err != nil {
		return until, err
	}
	s.log.Info("a token is valid", "agent", agent, "job", job, "issuer", url, "subject", t.Subject)
	if latest := time.Now().Add(admittedFor); t.Expiry.After(latest) {
		return latest, nil
	}
	return t.Expiry, nil
}

// find returns the first job that has the token's audience and claims and this agent name. For each
// job of the token's issuer, the error contains the first mismatch.
func (s *Service) find(agent string, t *oidc.IDToken, claims map[string]any) (job int, err error) {
	var reasons []string
	for i, j := range s.settings.Jobs {
		if j.Issuer != t.Issuer {
			continue
		}
		err := j.admits(agent, t.Audience, claims)
		if err == nil {
			return i, nil
		}
		reasons = append(reasons, fmt.Sprintf("jobs[%d]: %v", i, err))
	}
	return 0, fmt.Errorf("the valid token of %s admits no such agent: %s", t.Issuer, strings.Join(reasons, "; "))
}

func (j *Job) admits(agent string, audience []string, claims map[string]any) error {
	if !slices.Contains(audience, j.Audience) {
		return fmt.Errorf("its audience is %.80q", audience)
	}
	for claim, p := range j.match {
		value, err := claimText(claims, claim)
		if err != nil {
			return err
		}
		if !p.matches(value) {
			return fmt.Errorf("its claim %s is %.80q", claim, value)
		}
	}
	name, err := j.agent.of(claims)
	if err != nil {
		return err
	}
	if name != agent {
		return fmt.Errorf("its agent is %s: set NOD_AGENT", name)
	}
	return nil
}

// issuerOf returns the issuer in a token. It does not check the token.
func issuerOf(token string) (string, error) {
	malformed := errors.New("the token is no OIDC token")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", malformed
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer == "" {
		return "", malformed
	}
	return claims.Issuer, nil
}
