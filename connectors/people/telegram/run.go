package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
)

// poll contains the parameters of getUpdates. Telegram deletes the updates whose ids are below Offset.
type poll struct {
	Offset  int64    `json:"offset,omitempty"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

// allowed lists the kinds of updates that nod asks for.
var allowed = []string{"message", "callback_query"}

// Run receives presses and messages. It confirms updates to Telegram only after nod has stored or
// refused all their answers. After an error or a restart, Telegram therefore sends the updates again.
// If nod had already stored an answer, the person then reads that the answer counts.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	err := c.receiveUpdates(ctx, desk)
	if f := (*apiError)(nil); errors.Is(err, errForeign) || errors.As(err, &f) && f.code == http.StatusConflict {
		c.backlog.drained(c.backlog.now()) // this worker receives no updates, because another worker or program does
		return err
	}
	c.backlog.forget(errors.As(err, new(*people.Error)))
	return err
}

func (c *Carrier) receiveUpdates(ctx context.Context, desk people.Desk) error {
	var me user
	if err := c.api.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return err
	}
	c.me.Store(me.ID)
	if c.hook != nil {
		return c.serveWebhook(ctx, desk)
	}
	err := c.poll(ctx, desk)
	if f := (*apiError)(nil); errors.As(err, &f) && f.code == http.StatusConflict && f.says("webhook is active") {
		if err := c.removeWebhook(ctx); err != nil {
			return err
		}
		c.log.Info("telegram: removed nod's webhook, because the settings name none")
		return c.poll(ctx, desk)
	}
	return err
}

// poll first asks for waiting updates, with calls that return at once, and then for new updates, with
// calls that the server holds open. After this machine has slept, it asks for waiting updates again.
func (c *Carrier) poll(ctx context.Context, desk people.Desk) error {
	ask := poll{Allowed: allowed}
	for ctx.Err() == nil {
		askedAt := c.backlog.now()
		updates, err := c.updates(ctx, ask)
		if err != nil {
			return err
		}
		if err := c.handleAll(ctx, desk, updates); err != nil {
			return err
		}
		for _, u := range updates {
			ask.Offset = max(ask.Offset, u.ID+1)
		}
		if len(updates) == 0 && ask.Timeout > 0 && c.backlog.now().ran-askedAt.ran < pollPause { // the server does not hold polls open
			pause(ctx)
		}
		ask.Timeout = 0
		if len(updates) < maxUpdates && c.backlog.drained(askedAt) {
			ask.Timeout = int(pollFor / time.Second)
		}
	}
	return ctx.Err()
}

// updates calls getUpdates once. If this machine sleeps during the call, the connection may be dead.
// updates then aborts the call and returns no updates.
func (c *Carrier) updates(ctx context.Context, ask poll) (found []update, err error) {
	awake, cancel := c.backlog.awake(ctx)
	defer cancel()
	err = c.api.call(awake, "getUpdates", ask, &found)
	if err == nil || awake.Err() == nil || ctx.Err() != nil {
		return found, err
	}
	c.api.HTTP.CloseIdleConnections()
	return nil, nil
}

func pause(ctx context.Context) {
	wait := time.NewTimer(pollPause)
	defer wait.Stop()
	select {
	case <-ctx.Done():
	case <-wait.C:
	}
}

// handleAll handles the updates of one person in order, and updates of different people at the same time.
// If it returns nil, the carrier may confirm all updates. If it returns an error, Telegram must send at
// least one update again.
func (c *Carrier) handleAll(ctx context.Context, desk people.Desk, updates []update) error {
	theirs := map[int64][]update{}
	for _, u := range updates {
		theirs[u.senderID()] = append(theirs[u.senderID()], u)
	}
	errs := make(chan error, len(theirs))
	var tasks sync.WaitGroup
	for _, one := range theirs {
		tasks.Go(func() {
			for _, u := range one {
				if err := c.handle(ctx, desk, u); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	tasks.Wait()
	close(errs)
	return <-errs // the first error, or nil
}

// handle handles an update. If the handling panics, handle drops the update, because Telegram would
// otherwise repeat the update forever and send no later update.
func (c *Carrier) handle(ctx context.Context, desk people.Desk, u update) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("telegram: dropped an update, because handling it panicked", "update", u.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = nil
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	h := handler{Carrier: c, desk: desk, now: time.Now()}
	switch {
	case u.Callback != nil:
		return h.handlePress(ctx, u.Callback)
	case u.Message != nil && u.Message.From != nil && !u.Message.From.IsBot && u.Message.Chat.Type == "private":
		return h.handleMessage(ctx, u.Message)
	}
	return nil // ignore an update without a sender, from a bot, or outside a private chat
}
