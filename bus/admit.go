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
	// checkWithin bounds the check of one token. It is shorter than roles.AdmitWithin, in which a
	// server waits for the answer.
	checkWithin = time.Second
	// checksAtOnce is the number of tokens that are checked at the same time. Further ones are
	// refused: their clients try again.
	checksAtOnce = 64
	// maxToken is the longest token that is checked, in bytes.
	maxToken = 16 << 10

	xkeyHeader      = "Nats-Server-Xkey"
	admitQueue      = "nod-token-service" // of several token services, each question reaches one
	requestAudience = "nats-authorization-request"
)

// TokenCheck decides whether a token admits its bearer as the agent with this name, and until when. It
// must return an error in every case of doubt; the error goes into the log, and so must not contain
// the token.
type TokenCheck func(ctx context.Context, agent, token string) (until time.Time, err error)

// AdmitAgents answers the servers' questions about clients without a key, until stop is called. A
// client whose token passes the check gets the rights of the agent that it names, until its token
// ends. Every other client is refused, as it is if AdmitAgents does not run.
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
		_ = sub.Unsubscribe() // it fails only on a closed connection, which has no subscriptions
		open.Wait()
	}, nil
}

type admitter struct {
	keys  roles.AdmitKeys
	check TokenCheck
	log   *slog.Logger
}

// answer replies to one question. Without a reply, as after a malformed question, the server refuses
// the client too, when it has waited long enough.
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

// refused logs why a client is refused. A name that is no agent's is left out: it may be the token of a
// job that has put it into the wrong field.
func (a *admitter) refused(agent, host string, reason error) {
	if !schemas.ValidID(agent) {
		agent = ""
	}
	a.log.Warn("refused", "agent", agent, "host", host, "reason", reason)
}

// question decrypts and checks a server's question.
func (a *admitter) question(m *nats.Msg) (*jwt.AuthorizationRequestClaims, error) {
	server := m.Header.Get(xkeyHeader)
	if server == "" {
		return nil, errors.New("it is not encrypted: put the text of nod keys config into the server's configuration")
	}
	text, err := a.keys.XKey.Open(m.Data, server)
	if err != nil {
		return nil, errors.New("it cannot be decrypted: the server's xkey is not that of this token service")
	}
	q, err := jwt.DecodeAuthorizationRequestClaims(string(text)) // checks the server's signature
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

// admit returns the server's user for a client with the rights of the agent id, and no other rights.
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

// reply tells the server the user of the client, or refuses the client if user is empty.
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
