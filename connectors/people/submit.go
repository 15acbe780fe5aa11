package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/schemas"
)

const (
	// tryWithin is the time limit of one attempt to submit an answer, and tryFor the time limit of all
	// attempts together. tryPause is the pause between two attempts.
	tryWithin = 30 * time.Second
	tryFor    = 10 * time.Minute
	tryPause  = time.Second
	// recordingAfter is the time after which nod tells a person that their answer is being recorded.
	recordingAfter = 2 * time.Second
)

// UntilKnown calls the function try until it returns no error, so that the result of a person's press is
// known. UntilKnown is for a channel that delivers a press only once. Repeated calls of try are harmless.
// The parameter came is the time of the press. UntilKnown gives up ten minutes after this time, or when
// ctx ends. It then returns an error, and the channel shows NotConfirmed. If the result takes longer than
// two seconds, UntilKnown calls the function recording in another goroutine. It calls the function failed
// with each error.
func UntilKnown(ctx context.Context, came time.Time, try func(context.Context) error, recording func(), failed func(error)) error {
	defer After(recordingAfter, recording)()
	all, cancel := context.WithDeadline(ctx, came.Add(tryFor))
	defer cancel()
	for {
		err := Within(all, time.Now(), try)
		if err == nil {
			return nil
		}
		failed(err)
		select {
		case <-all.Done():
			return err
		case <-time.After(tryPause):
		}
	}
}

// Within calls the function try with a context that ends tryWithin after the time came. If the context
// has already ended, it does not call the function.
func Within(ctx context.Context, came time.Time, try func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, came.Add(tryWithin))
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	return try(ctx)
}

// Submit submits an answer to p and returns the reply to the person. If the request is decided, it sets
// p.Decision. It reports success only after nod has stored the answer. An error means that it is unknown
// whether the answer counted; the channel must then try again.
func Submit(ctx context.Context, desk Desk, p *schemas.Prompt, a schemas.Answer, now time.Time) (reply string, err error) {
	d, err := desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Decision() != nil:
		p.Decision = e.Decision()
		return Refusal(e, now), nil
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden && a.CodeWord != "" && p.Decision == nil:
		return "Nothing changed: that was not the code word, or you may not allow this here.", nil
	case err != nil:
		return RefusalOrRetry(err, now)
	}
	reply = Recorded(&d, p)
	if p.Decision != nil {
		reply = AlreadyDecided(&d, now)
	}
	p.Decision = &d
	return reply, nil
}

// RefusalOrRetry returns the reply that says why an answer did not count. If it is unknown whether the
// answer counted, it returns an error, so that the channel tries again.
func RefusalOrRetry(err error, now time.Time) (reply string, again error) {
	if IsUncertain(err) {
		return "", fmt.Errorf("submit an answer: %w", err)
	}
	var e *schemas.Error
	errors.As(err, &e)
	return Refusal(e, now), nil
}

// FindShown returns the request that a message names, with the number of identical calls that the
// message shows, and the broker's time. If the request does not have the digest in the button, the error
// is NOT_FOUND.
func FindShown(ctx context.Context, desk Desk, session, id string, b ButtonData) (schemas.Prompt, time.Time, error) {
	p, page, err := desk.Show(ctx, session, id)
	if err == nil && p.Digest != b.Digest {
		err = &schemas.Error{Code: schemas.CodeNotFound}
	}
	return AsShown(p, b.Waiters), page.Now, err
}

// CheckRouted returns nil if p is pending and routed to the person. Otherwise it returns the error that
// an answer of the person would get.
func CheckRouted(ctx context.Context, desk Desk, p *schemas.Prompt, person string) error {
	if p.Decision != nil {
		return (&schemas.Error{Code: schemas.CodeConflict}).WithDecision(p.Decision)
	}
	q := schemas.Query{SessionID: p.SessionID, Recipient: person}
	_, found, err := FindPending(ctx, desk, q, func(o *schemas.Prompt) bool { return o.Key() == p.Key() })
	if err == nil && !found {
		err = &schemas.Error{Code: schemas.CodeForbidden}
	}
	return err
}

// After calls f after a time, in another goroutine. The returned function stop prevents the call or, if f
// is running, waits until f has returned. The caller must call stop once.
func After(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(done)
		f()
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}
