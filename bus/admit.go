package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

const (
	// checkWithin is the time limit for the check of one token. It is shorter than roles.AdmitWithin, the
	// time that a server waits for the result.
	checkWithin = time.Second
	// At most checksAtOnce tokens are checked at the same time. Further tokens are refused, and their
	// clients try again.
	checksAtOnce = 64
	// maxToken is the greatest length of a token, in bytes. Longer tokens are refused.
	maxToken = 16 << 10

	xkeyHeader      = "Nats-Server-Xkey"
	admitQueue      = "nod-token-service" // if several token services run, each question reaches one of them
	requestAudience = "nats-authorization-request"
)

// TokenCheck decides whether a token admits its bearer as the agent with this name, and until when. In
// every case of doubt it must return an error. The error must not contain the token, because the log gets
// the error.
type TokenCheck func(ctx context.Context, agent, token string) (until time.Time, err error)

// AdmitAgents answers the servers' questions about clients without a key, until the caller calls the
// returned function. A client whose token passes the check gets the rights of the agent that the
// client names, until the token ends. All other clients without a key are refused. Without
// AdmitAgents, every client without a key is refused.
func (c *Conn) AdmitAgents(keys roles.AdmitKeys, check TokenCheck) (stop func(), err error) {
	a := &admitter{keys: keys, check: check, log: c.log}
	slots := make(chan struct{}, checksAtOnce)
	var open sync.WaitGroup
	sub, err := c.nc.QueueSubscribe(roles.AdmitSubject, admitQueue, func(m *nats.Msg) {
		select {
		case slots <- struct{}{}:
		default:
			c.log.Warn("a token is refused: too many are being checked", "limit", checksAtOnce)
			return
		}
		open.Go(func() {
			defer func() { <-slots }()
			a.answer(m)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", roles.AdmitSubject, err)
	}
	return func() {
		_ = sub.Unsubscribe() // Unsubscribe fails only on a closed connection, which has no subscriptions
		open.Wait()
	}, nil
}

type admitter struct {
	keys  roles.AdmitKeys
	check TokenCheck
	log   *slog.Logger
}

// answer replies to a server's question about one client. It does not reply to a malformed question,
// and the server then refuses the client after roles.AdmitWithin.
func (a *admitter) answer(m *nats.Msg) {
	q, err := a.question(m)
	if err != nil {
		a.log.Error("a server's question is not answered", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkWithin)
	defer cancel()
	id := roles.AgentID(q.ConnectOptions.Username)
	user, until, err := a.admit(ctx, q, id)
	host := q.ClientInformation.Host
	if err != nil {
		a.refused(id.Name, host, err)
		user = ""
	}
	if err := a.reply(m, q, user); err != nil {
		a.log.Error("the answer to a server is not sent", "error", err)
		return
	}
	if user != "" {
		a.log.Info("admitted", "agent", id.Name, "host", host, "until", until)
	}
}

// refused logs why a client is refused. The log leaves out the client's name if no agent can have it,
// because the client's job may have put its token into the field for the name.
func (a *admitter) refused(agent, host string, reason error) {
	if !schemas.ValidID(agent) {
		agent = ""
	}
	a.log.Warn("refused", "agent", agent, "host", host, "reason", reason)
}

// question decrypts a server's question about a client, and checks that nod can answer it.
func (a *admitter) question(m *nats.Msg) (*jwt.AuthorizationRequestClaims, error) {
	server := m.Header.Get(xkeyHeader)
	if server == "" {
		return nil, errors.New("it is not encrypted: put the text of nod keys config into the server's configuration")
	}
	text, err := a.keys.XKey.Open(m.Data, server)
	if err != nil {
		return nil, errors.New("it cannot be decrypted: the server's xkey is not that of this token service")
	}
	q, err := jwt.DecodeAuthorizationRequestClaims(string(text)) // the decoder checks the server's signature
	switch {
	case err != nil:
		return nil, errors.New("it is malformed")
	case q.Audience != requestAudience || !nkeys.IsValidPublicUserKey(q.UserNkey) || q.Server.XKey != server:
		return nil, errors.New("it is not about a client")
	case q.Subject != a.keys.Asks:
		return nil, errors.New("the server's issuer is not that of this token service")
	case q.Expires == 0 || time.Now().Unix() > q.Expires:
		return nil, errors.New("the server no longer waits: set the clocks")
	}
	return q, nil
}

// admit checks the token of a client that wants to connect as the agent with this id. It returns a
// signed user for the server, which has the rights of that agent and no others. It also returns the
// time at which the token ends.
func (a *admitter) admit(ctx context.Context, q *jwt.AuthorizationRequestClaims, id roles.ID) (user string, until time.Time, err error) {
	o := q.ConnectOptions
	switch {
	case !schemas.ValidID(id.Name):
		return "", until, errors.New("the client does not name an agent")
	case o.Password == "":
		return "", until, errors.New("the client has neither a known key nor a token")
	case len(o.Password) > maxToken:
		return "", until, fmt.Errorf("the token has more than %d bytes", maxToken)
	}
	if until, err = a.check(ctx, id.Name, o.Password); err != nil {
		return "", until, err
	}
	if !until.After(time.Now()) {
		return "", until, errors.New("the token has ended")
	}
	user, err = a.keys.User(q.UserNkey, id, until)
	return user, until, err
}

// reply sends the server the signed user for its client. If the parameter user is empty, the reply
// refuses the client.
func (a *admitter) reply(m *nats.Msg, q *jwt.AuthorizationRequestClaims, user string) error {
	r := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	r.Audience = q.Server.ID
	if r.Jwt = user; user == "" {
		r.Error = "the token service refused the client; its log has the reason"
	}
	text, err := r.Encode(a.keys.Issuer)
	if err != nil {
		return err
	}
	sealed, err := a.keys.XKey.Seal([]byte(text), q.Server.XKey)
	if err != nil {
		return err
	}
	return m.Respond(sealed)
}
