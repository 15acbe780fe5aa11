package connector

import (
	"context"
	"errors"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// showAtOnce shows a prompt, with its buttons, on a channel that cannot edit messages.
func (c showAttempt) showAtOnce(ctx context.Context, shown schemas.Shown) error {
	shown, err := c.send(ctx, shown)
	if err != nil {
		return err
	}
	ctx = c.recording // stores the handle even if the attempt's time is over, because no worker can edit a message whose handle is not stored
	lost, err := c.record(ctx, shown)
	if err == nil && lost {
		err = c.addMessage(ctx, shown.Ref)
	}
	if err != nil {
		return err
	}
	return c.desk.delivered(ctx, &c.prompt, schemas.DeliveryShown, "")
}

// showInSteps shows a prompt on a channel that can edit messages. It sends the prompt without
// buttons, stores the message's handle, and then adds the buttons. If the worker dies before the
// handle is stored, the message therefore has no buttons. If an earlier attempt has stored a handle,
// showInSteps only adds the buttons.
func (c showAttempt) showInSteps(ctx context.Context, shown schemas.Shown, r people.Reviser) error {
	var err error
	isSent := len(shown.Refs()) > 0
	if isSent {
		err = c.edit(ctx, shown.Refs(), c.asRepeat(&shown, c.prompt), r.Revise)
	}
	if !isSent || isPermanent(err) { // the message may have been deleted, or be too old for an edit
		if shown, err = c.sendWithoutChoices(ctx, shown); err != nil {
			return err
		}
		err = c.edit(ctx, []string{shown.Ref}, c.asRepeat(&shown, c.prompt), r.Revise)
	}
	if err != nil {
		c.releaseClaim(ctx, shown)
		return err
	}
	if err := c.recordEdit(shown); err != nil {
		return err
	}
	return c.desk.delivered(c.recording, &c.prompt, schemas.DeliveryShown, "")
}

// sendWithoutChoices sends the prompt in a new message and stores the message's handle. The claim
// stays, because the buttons are still missing. If another worker has taken over the claim,
// sendWithoutChoices adds the handle to the entry of that worker and returns errClaimed.
func (c showAttempt) sendWithoutChoices(ctx context.Context, shown schemas.Shown) (schemas.Shown, error) {
	if shown.Ref != "" {
		shown.Also, shown.Ref = append(shown.Also, shown.Ref), ""
	}
	shown, err := c.send(ctx, shown)
	if err != nil {
		return shown, err
	}
	if shown.Ref == "" {
		return shown, &people.Error{Permanent: true, Err: errors.New("the channel returned no handle for its message, which an edit needs")}
	}
	ctx = c.recording // stores the handle even if the attempt's time is over, because no worker can edit a message whose handle is not stored
	stored, lost, err := c.write(ctx, shown)
	if err == nil && lost {
		err = errors.Join(errClaimed, c.addMessage(ctx, shown.Ref))
	}
	return stored, err
}

// send shows a prompt or its outcome in a new message. If the channel reports that it sent nothing,
// send releases the claim. After any other failure the channel may have sent a message. The claim
// then stays until it expires, and the next message is marked as a repeat.
func (c showAttempt) send(ctx context.Context, shown schemas.Shown) (schemas.Shown, error) {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	p := c.asRepeat(&shown, c.prompt)
	var ref people.Ref
	var err error
	c.keepClaim(ctx, func() { ref, err = c.carrier.Prompt(hop, p) })
	var e *people.Error
	if errors.As(err, &e) && (e.After > 0 || e.Permanent || e.Unreachable) {
		c.releaseClaim(ctx, shown)
	}
	shown.Ref = string(ref)
	return shown, err
}

// asRepeat returns the prompt p, marked as a repeat if another message may show the same request.
func (showAttempt) asRepeat(shown *schemas.Shown, p schemas.Prompt) schemas.Prompt {
	p.Repeat = shown.Repeat || len(shown.Also) > 0
	return p
}

// edit calls the given function for each message in refs. It goes on after a failure, and returns all
// errors.
func (c showAttempt) edit(ctx context.Context, refs []string, p schemas.Prompt, change func(context.Context, people.Ref, schemas.Prompt) error) error {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	var errs []error
	c.keepClaim(ctx, func() {
		for _, ref := range refs {
			errs = append(errs, change(hop, people.Ref(ref), p))
		}
	})
	return errors.Join(errs...)
}

// showOutcome changes the messages of a prompt so that they show the outcome. If there is no message
// to change, showOutcome sends the outcome in a new message.
func (c showAttempt) showOutcome(ctx context.Context, shown schemas.Shown) error {
	var err error
	if len(shown.Refs()) == 0 {
		if shown, err = c.send(ctx, shown); err != nil {
			return err
		}
	} else if err = c.edit(ctx, shown.Refs(), c.asRepeat(&shown, c.prompt), c.carrier.Settle); err != nil && !isPermanent(err) {
		c.releaseClaim(ctx, shown)
		return err
	}
	shown.Settled = true
	_, notStored := c.record(ctx, shown) // if this attempt has lost the claim, two workers show the outcome, which is harmless
	return errors.Join(err, notStored)
}

// isPermanent reports whether the channel's error means that every further try would fail, too.
func isPermanent(err error) bool {
	var e *people.Error
	return errors.As(err, &e) && (e.Permanent || e.Unreachable)
}

// revise updates the shown messages of a pending request, if the carrier is a Reviser. If the channel
// refuses the change, this does not count as a failed delivery, because the old message still shows
// the question.
func (c showAttempt) revise(ctx context.Context, shown schemas.Shown) error {
	if err := c.change(ctx, shown, c.prompt); err != nil {
		c.releaseClaim(ctx, shown)
		return err
	}
	return c.recordEdit(shown)
}

// recordEdit stores that an edit of the messages has shown this version of a pending request. If the
// attempt has lost its claim, another worker may have shown the outcome before the edit, and the edit
// may have brought the buttons back. recordEdit then shows the newest version, even if the attempt's
// time is over, because no other worker knows of the edit.
func (c showAttempt) recordEdit(shown schemas.Shown) error {
	ctx := c.recording
	lost, err := c.record(ctx, shown)
	if err != nil || !lost {
		return err
	}
	now, err := c.newest(ctx)
	switch {
	case err != nil:
		return err
	case now.Decision != nil:
		return c.edit(ctx, shown.Refs(), c.asRepeat(&shown, now), c.carrier.Settle)
	}
	return c.change(ctx, shown, now)
}

func (c showAttempt) change(ctx context.Context, shown schemas.Shown, p schemas.Prompt) error {
	r, can := c.carrier.(people.Reviser)
	if !can {
		return nil
	}
	err := c.edit(ctx, shown.Refs(), c.asRepeat(&shown, p), r.Revise)
	if isPermanent(err) {
		c.log.Info("connector: a change was not shown", "key", p.Key(), "error", err)
		return nil
	}
	return err
}

func (c showAttempt) newest(ctx context.Context) (schemas.Prompt, error) {
	now, _, err := c.desk.Show(ctx, c.prompt.SessionID, c.prompt.PendingID)
	now.Connector, now.Recipient = c.prompt.Connector, c.prompt.Recipient
	return now, err
}
