package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// rememberDenial has a person's denial of a tool call answer the same call of the
// session for a while, or until somebody allows such a call. Of two words the newer
// one counts, in whichever order they come here. It may be called again.
func (e *Engine) rememberDenial(ctx context.Context, entry bus.Entry) error {
	d := entry.Record.Decision
	until := d.DecidedAt.Add(e.settings.now().settings.RememberDenials())
	allowed := d.Outcome == schemas.Allowed
	if !allowed && d.Outcome != schemas.Denied || d.By.Kind != schemas.ByHuman || !e.clock.now().Before(until) {
		return nil
	}
	if s, known := e.known.session(sessionKey(d.SessionID)); allowed && known && len(s.Denials) == 0 {
		return nil // there is nothing to take back
	}
	r, err := requestOf(&entry.Record)
	if err != nil || r.Kind != schemas.KindToolCall {
		return err
	}
	same, err := schemas.Sameness(&r)
	if err != nil {
		return err
	}
	err = e.changeSessionOf(ctx, r.SessionID, func(s *schemas.Session) bool {
		isSame := func(old schemas.Denial) bool { return old.Same == same }
		i := slices.IndexFunc(s.Denials, isSame)
		switch {
		case i >= 0 && !s.Denials[i].At.Before(d.DecidedAt): // what joined it was denied with it
			return false
		case allowed && i >= 0:
			s.Denials[i].Allowed, s.Denials[i].At = true, d.DecidedAt
			return true
		case allowed:
			return false
		}
		s.Denials = append(slices.DeleteFunc(s.Denials, isSame), schemas.Denial{PendingID: d.PendingID, Same: same, By: d.By, Message: cut(d.Message), At: d.DecidedAt, Until: until})
		return true
	})
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return fmt.Errorf("remember the denial of %s: %w", entry.Key, err)
	}
	return nil
}

// cut bounds what a session keeps of a message.
func cut(message string) string {
	const most = 1024
	if r := []rune(message); len(r) > most {
		return string(r[:most]) + "…"
	}
	return message
}

// denied is the denial of a call that answers a as well, or nil.
func (e *Engine) denied(a *asked, same string) *schemas.Denial {
	now := e.clock.now()
	for i, d := range slices.Backward(a.held.session.Denials) {
		if d.Same == same && !d.Allowed && now.Before(d.Until) {
			return &a.held.session.Denials[i]
		}
	}
	return nil
}

// asDenied is what an agent hears of such a denial.
func (e *Engine) asDenied(d *schemas.Denial) string {
	now := e.clock.now()
	text := fmt.Sprintf("%s denied the same call %s ago, which answers it for another %s", d.By.Name, schemas.Roughly(now.Sub(d.At)), schemas.Roughly(d.Until.Sub(now)))
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}
