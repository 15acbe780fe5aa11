package connector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/schemas"
)

// keepClaim runs the given function, and renews the claim until the function returns. A renewal never
// revives a claim that has ended.
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

// record stores that this version of the prompt is shown, and ends the claim. If the result lost is
// true, another worker has taken over the expired claim, and record has stored nothing.
func (c showAttempt) record(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Revision = c.prompt.Revision
	return c.endClaim(ctx, shown)
}

// releaseClaim ends the claim after an attempt that sent no message, so that the next attempt
// can begin at once. It ignores errors.
func (c showAttempt) releaseClaim(ctx context.Context, shown schemas.Shown) {
	if _, err := c.endClaim(ctx, shown); err != nil {
		c.log.Info("connector: a claim was not released; it expires", "key", c.prompt.Key(), "error", err)
	}
}

// endClaim stores an entry without a claim. If the result lost is true, another worker has taken over
// the expired claim, and endClaim has stored nothing.
func (c showAttempt) endClaim(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Claim = nil
	_, lost, err = c.write(ctx, shown)
	return lost, err
}

// write stores an entry while this attempt has the claim, and returns the stored entry. If the result
// lost is true, another worker has taken over the expired claim, and write has stored nothing.
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
		// either a renewal of this claim or another worker's message has changed the entry
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

// addMessage adds a message of this worker to an entry that another worker has claimed. The worker
// that shows the outcome then changes this message together with the entry's other messages. If those
// already show the outcome, addMessage changes this message at once.
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
