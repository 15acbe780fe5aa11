package bus

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/loopback"
)

// tokenLogin returns the options with which an agent connects by the token in a file. Each connection
// reads the file again, because the token in it is replaced before the token ends.
//
// A token is sent only to servers on this machine or over TLS, because anyone who reads it on its way can
// use it.
func (c *Conn) tokenLogin(o Options) ([]nats.Option, error) {
	if o.Creds != "" {
		return nil, errors.New("a key file and a token file are named: name one of them")
	}
	if o.Agent == "" {
		return nil, errors.New("a token admits agents only: for another role, name its key with --creds")
	}
	if _, err := readToken(o.TokenFile); err != nil {
		return nil, err
	}
	user := nats.UserInfoHandler(func() (string, string) {
		token, err := readToken(o.TokenFile)
		if err != nil {
			c.log.Warn("bus: no token for the next connection", "connection", o.Name, "error", err)
		}
		return o.Agent, token
	})
	login := []nats.Option{user, nats.CustomReconnectDelay(tokenRetry)}
	if o.Server != nil {
		return login, nil
	}
	for _, address := range strings.Split(o.URL, ",") {
		at, err := url.Parse(strings.TrimSpace(address))
		if err != nil || !loopback.Is(at.Hostname()) {
			return append(login, nats.Secure()), nil
		}
	}
	return append(login, nats.IgnoreDiscoveredServers()), nil // discovered servers may run on other machines, without TLS
}

// tokenRetryMax is the longest pause between two tries to connect by a token. After a token has
// ended, a client tries again until the file has a new token.
const tokenRetryMax = 5 * time.Second

func tokenRetry(tries int) time.Duration {
	wait := min(200*time.Millisecond<<min(tries, 10), tokenRetryMax)
	return wait/2 + rand.N(wait/2)
}

func readToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > maxToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("the file %s has no token: write the job's OIDC token into it", path)
	}
	return token, nil
}

// pingedEarly reports whether the server sent its first ping, 2 s after the connect, before it had
// admitted the client. The NATS client then gives up before it reads the refusal.
func pingedEarly(err error) bool { return strings.Contains(err.Error(), "expected 'PONG', got 'PING'") }

// loginTooLong reports whether the server has refused a login because of its length.
func loginTooLong(err error) bool {
	return strings.Contains(err.Error(), "maximum control line exceeded")
}

// tokenRefused returns the error that says that the server has refused the token.
func tokenRefused(o Options, where string) error {
	token, err := readToken(o.TokenFile)
	if err != nil {
		return err
	}
	if end, ok := tokenEnd(token); ok && end.Before(time.Now()) {
		return fmt.Errorf("the NATS server at %s %w: the token in %s ended at %s: have a new one written", where, ErrRefused, o.TokenFile, end.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("the NATS server at %s %w: no nod token-service runs, or it does not admit the token in %s as the agent %s: its log has the reason", where, ErrRefused, o.TokenFile, o.Agent)
}

// tokenEnd returns the time at which a token says that it ends. It does not verify the token.
func tokenEnd(token string) (end time.Time, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return end, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Exp <= 0 {
		return end, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}

// withToken makes the options o connect as this agent by the token of p. It does nothing if p has no
// token.
func (p Place) withToken(o *Options, id roles.ID) error {
	if p.TokenFile == "" {
		return nil
	}
	if id.Role != roles.Agent {
		return fmt.Errorf("%s is the token of an agent, which may only ask: name the key of %s with --creds or NOD_CREDS", p.TokenFile, id)
	}
	if err := id.Check(); err != nil {
		return err
	}
	o.TokenFile, o.Agent = p.TokenFile, id.Name
	return nil
}
