package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// A messageKind is the kind of a message of nod. Meta's reports about the message repeat the kind.
type messageKind string

const (
	question messageKind = "q"
	again    messageKind = "r" // a prompt that nod sent again, because the first message failed or the person asked for it
	notice   messageKind = "t" // a message that is a template
)

// callbackOf returns the text that Meta repeats in each report about a message. The text identifies the
// request, so any worker can handle the report.
func callbackOf(kind messageKind, p *schemas.Prompt) string {
	return string(kind) + "/" + p.Recipient + "/" + p.SessionID + "/" + p.PendingID
}

// receiptTimeout is the time limit for passing a receipt to nod.
const receiptTimeout = 2 * time.Second

// ranks gives the reports about a message an order, because they may arrive in any order and more than
// once. A report has an effect only if its rank is higher than the rank of the last report.
var ranks = map[string]string{"sent": "1", "delivered": "2", "read": "3", "failed": "4"}

// handleReport handles Meta's report about a message of nod. If the message was delivered or
// read, the agent's session gets a notice. If the message was not sent, see handleFailure.
func (c *Carrier) handleReport(ctx context.Context, desk people.Desk, s *status) error {
	parts := strings.Split(s.Callback, "/")
	rank, known := ranks[s.Status]
	if len(parts) != 4 || !known || rank <= c.read.Get(s.ID) {
		return nil // a report about an outcome or a reply, or a report whose rank is not above that of the last one
	}
	d := schemas.Delivery{Recipient: parts[1], SessionID: parts[2], PendingID: parts[3], State: schemas.DeliveryShown}
	kind := messageKind(parts[0])
	what := ""
	if kind == notice {
		what = "the notice without the request was "
	}
	var err error
	switch s.Status {
	case "failed":
		err = c.handleFailure(ctx, desk, s, kind, d)
	case "delivered", "read":
		d.Reason = what + s.Status
		hop, cancel := context.WithTimeout(ctx, receiptTimeout)
		defer cancel()
		if report(hop, desk, d) != nil {
			return nil // drop a failed receipt, because Meta need not repeat it
		}
	}
	if err == nil {
		c.read.Put(s.ID, rank)
	}
	return err
}

// handleFailure handles Meta's report that a message was not sent. If the person has not written for 24
// hours, handleFailure sends the template, if there is one. After a temporary error it sends a prompt
// once more. In all other cases it reports to nod that the person could not be told.
func (c *Carrier) handleFailure(ctx context.Context, desk people.Desk, s *status, kind messageKind, d schemas.Delivery) error {
	f := &apiError{status: http.StatusBadRequest, text: "the message was not sent"}
	if len(s.Errors) > 0 {
		f.code, f.text = s.Errors[0].Code, c.api.Clean(s.Errors[0].text())
	}
	e := f.carrierError()
	if f.code == codeWindow {
		c.closeWindow(d.Recipient)
	}
	retries := kind == question && !e.Permanent && !e.Unreachable
	if kind != notice && f.code == codeWindow && c.Template.Name != "" || retries {
		p, _, err := desk.Show(ctx, d.SessionID, d.PendingID)
		switch {
		case people.IsUncertain(err):
			return fmt.Errorf("handle a report about a message: %w", err)
		case err != nil || p.Decision != nil:
			return nil
		}
		p.Recipient = d.Recipient
		if retries {
			_, err = c.sendPrompt(ctx, &p, again)
		} else {
			_, err = c.sendTemplate(ctx, &p)
		}
		if err == nil {
			return nil
		}
		if !errors.As(err, &e) {
			return err
		}
	}
	d.State, d.Reason = schemas.DeliveryFailed, e.Error()
	if e.Unreachable {
		d.State = schemas.DeliveryUnreachable
	}
	c.Log.Info("whatsapp: a question was not sent", "key", schemas.Key(d.SessionID, d.PendingID), "error", e)
	return report(ctx, desk, d)
}

func report(ctx context.Context, desk people.Desk, d schemas.Delivery) error {
	r, ok := desk.(people.Reporter)
	if !ok {
		return nil
	}
	if err := r.Report(ctx, d); people.IsUncertain(err) {
		return fmt.Errorf("report what became of a message: %w", err)
	}
	return nil // nod no longer stores the request, or has not routed it to this person
}
