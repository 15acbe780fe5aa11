package connector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/schemas"
)

// keepClaim runs call, and renews the claim until call returns. A renewal never brings back a
// claim that has ended; endClaim then reports that the claim is lost.
func (c showAttempt) keepClaim(ctx context.Context, call func()) {
	ctx, cancel := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		tick := time.NewTicker(c.renewClaimEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			hop, cancel := context.WithTimeout(ctx, c.renewClaimEvery)
			if err := c.desk.renewClaim(hop, &c.prompt, c.id, c.try); err != nil && ctx.Err() == nil {
				c.log.Info("connector: a claim was not renewed; trying again", "key", c.prompt.Key(), "error", err)
			}
			cancel()
		}
	}()
	call()
	cancel()
	<-renewed
}

// record stores that this version of the prompt is shown, and ends the claim. lost means
// that the claim had expired and another worker has taken over; nothing is stored then.
func (c showAttempt) record(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Revision = c.prompt.Revision
	return c.endClaim(ctx, shown)
}

// releaseClaim ends the claim after an attempt that sent no message, so that the next
// attempt need not wait for its expiry. If that cannot be stored, the claim expires.
func (c showAttempt) releaseClaim(ctx context.Context, shown schemas.Shown) {
	if _, err := c.endClaim(ctx, shown); err != nil {
		c.log.Info("connector: a claim was not released; it expires", "key", c.prompt.Key(), "error", err)
	}
}

// endClaim writes the entry without a claim. lost means that the claim had expired: the
// stored entry is another worker's, and stays unchanged.
func (c showAttempt) endClaim(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Claim = nil
	_, lost, err = c.write(ctx, shown)
	return lost, err
}

// write writes the entry while the stored entry has this attempt's claim, and returns the
// entry as stored. lost means that the claim had expired: the stored entry is another
// worker's, and stays unchanged.
func (c showAttempt) write(ctx context.Context, shown schemas.Shown) (stored schemas.Shown, lost bool, err error) {
	for {
		stored, err := c.desk.setShown(ctx, shown)
		if !errors.Is(err, &schemas.Error{Code: schemas.CodeConflict}) {
			return stored, false, err
		}
		now, err := c.desk.shownTo(ctx, &c.prompt)
		if err != nil {
			return stored, false, err
		}
		if now.Claim == nil || now.Claim.Try != c.try {
			return now, true, nil
		}
		// The entry has changed because the claim was renewed, or because another worker's
		// message was added.
		shown.Entry = now.Entry
		if shown.Claim != nil {
			shown.Claim = now.Claim
		}
		for _, ref := range now.Also {
			if !slices.Contains(shown.Also, ref) {
				shown.Also = append(shown.Also, ref)
			}
		}
	}
}

// addMessage adds to the entry a message that this worker sent although another worker had
// taken over the claim, so that the outcome is shown in that message too. If the outcome is
// already shown, addMessage changes the message to the outcome at once.
func (c showAttempt) addMessage(ctx context.Context, ref string) error {
	for {
		now, err := c.desk.shownTo(ctx, &c.prompt)
		if err != nil || ref == "" || now.Ref == ref || slices.Contains(now.Also, ref) {
			return err
		}
		if now.Settled {
			ended, err := c.newest(ctx)
			if err != nil || ended.Decision == nil {
				return err
			}
			ended.Repeat = true
			return c.edit(ctx, []string{ref}, ended, c.carrier.Settle)
		}
		now.Also = append(now.Also, ref)
		_, err = c.desk.setShown(ctx, now)
		if !errors.Is(err, &schemas.Error{Code: schemas.CodeConflict}) {
			return err
		}
	}
}
