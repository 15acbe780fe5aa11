// Package wake tells people who are away that a request waits: by signed webhooks (Standard
// Webhooks), by ntfy, by mail, and by services that take a form or JSON, such as Pushover and
// Gotify.
//
// The channel is outgoing only. A message contains the request's id, project and risk, and a link
// to the web inbox, where a person logs in to decide. It contains the payload only if the
// target's setting says so. A target is one recipient in the settings; a slow target delays no
// other. If a target has the setting after_seconds, it is notified only if the request still
// waits after that time. The worker makes all retries, and stops them if the request ends.
package wake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// callTimeout is the time limit of one HTTP call.
	callTimeout = 10 * time.Second
	// maxSkew is how far in the future the creation time of a request may lie. If it lies further ahead,
	// the notification is due at once, because the agent writes that time and must not be able to delay a
	// notification.
	maxSkew = time.Minute
)

// Carrier implements people.Carrier for the targets in the settings. It keeps only the state
// from which it chooses the pauses between attempts.
type Carrier struct {
	web     string
	targets map[string]*target
	client  *http.Client
	mailer  mailer
}

var _ people.Carrier = (*Carrier)(nil)

// New creates the carrier. It reads the secrets that the settings name, and connects to no server.
func New(s Settings, _ *slog.Logger) (*Carrier, error) {
	c := &Carrier{web: s.WebURL, targets: map[string]*target{}, mailer: mailer{refused: people.NewMemory()}, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // do not follow a redirect, which would send the message, and perhaps a secret, to another address
		},
	}}
	for i := range s.Targets {
		t, err := newTarget(&s.Targets[i])
		if err != nil {
			return nil, err
		}
		c.targets[t.Name] = t
	}
	return c, nil
}

// Run waits until ctx ends, because this channel receives no answers.
func (c *Carrier) Run(ctx context.Context, _ people.Desk) error {
	<-ctx.Done()
	return ctx.Err()
}

// Prompt notifies the target p.Recipient. If the target's after_seconds have not passed yet,
// Prompt sends nothing and returns an error that says how long to wait.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	t := c.targets[p.Recipient]
	if t == nil {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("connectors.wake.targets has no target %q, which approvers.people names: add it and run `nod settings apply`", p.Recipient)}
	}
	if wait := t.wait(&p, time.Now()); p.Decision == nil && wait > 0 {
		return "", &people.Error{After: wait, Err: fmt.Errorf("wake %s: the request has waited less than after_seconds", t.Name)}
	}
	id := messageID(&p, event(&p))
	return people.Ref(id), c.send(ctx, t, id, &p)
}

// Settle sends the outcome of p in a message of its own. If it is called twice, both messages have the
// same webhook-id.
func (c *Carrier) Settle(ctx context.Context, _ people.Ref, p schemas.Prompt) error {
	t := c.targets[p.Recipient]
	if t == nil {
		return nil // the target has been removed from the settings
	}
	return c.send(ctx, t, messageID(&p, event(&p)), &p)
}

// messageID returns the id of a notification. The id depends on the request, the target, and whether the
// request waits or has ended. Each retry has the same id.
func messageID(p *schemas.Prompt, event string) string {
	sum := sha256.Sum256([]byte(p.SessionID + "\x00" + p.PendingID + "\x00" + p.Digest + "\x00" + p.Recipient + "\x00" + event))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// The events of a request that a notification can report.
const (
	waiting = "nod.request.waiting"
	ended   = "nod.request.ended"
)

func event(p *schemas.Prompt) string {
	if p.Decision != nil {
		return ended
	}
	return waiting
}

// send sends one notification. Its errors are *people.Error or, after ctx has ended, ctx's own.
// They contain neither the target's address nor its secret.
func (c *Carrier) send(ctx context.Context, t *target, id string, p *schemas.Prompt) error {
	m := &message{Wakeup: people.NewWakeup(p, c.web), id: id, first: messageID(p, waiting), event: event(p), at: time.Now(), prompt: p}
	if t.Kind == Mail {
		return c.mailer.send(ctx, t, m)
	}
	hop, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := t.request(hop, m)
	if err != nil {
		return &people.Error{Permanent: true, Err: fmt.Errorf("wake %s: %w", t.Name, err)}
	}
	resp, err := c.client.Do(req)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			resp.Body.Close()
		}
		return ctx.Err()
	case err != nil:
		return &people.Error{Err: fmt.Errorf("wake %s: %w", t.Name, withoutURL(err))}
	}
	defer resp.Body.Close()
	return t.result(resp, time.Now())
}

// withoutURL returns the cause of an HTTP client's error. The text of the client's own error contains
// the URL, which may contain a secret.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Check connects to the server of each target and sends nothing.
func (c *Carrier) Check(ctx context.Context) error {
	var errs []error
	for _, t := range c.targets {
		hop, cancel := context.WithTimeout(ctx, callTimeout)
		conn, err := new(net.Dialer).DialContext(hop, "tcp", t.hostPort())
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("wake %s: %w", t.Name, err))
			continue
		}
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
