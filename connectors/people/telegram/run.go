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
	"github.com/nodbus/nod/schemas"
)

// poll is the question for updates. Telegram forgets what comes before Offset.
type poll struct {
	Offset  int64    `json:"offset,omitempty"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

// allowed are the updates that nod wants.
var allowed = []string{"message", "callback_query"}

// Run receives what people press and write. What Telegram sent counts as
// received only when nod has taken or refused all of it: after an error or a
// restart it comes again, and an answer that was taken before says so.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	err := c.listen(ctx, desk)
	if f := (*fault)(nil); errors.Is(err, errForeign) || errors.As(err, &f) && f.code == http.StatusConflict {
		c.late.heard(c.late.now()) // by another one, who receives
		return err
	}
	c.late.shut(errors.As(err, new(*people.Error)))
	return err
}

func (c *Carrier) listen(ctx context.Context, desk people.Desk) error {
	var me user
	if err := c.api.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return err
	}
	c.me.Store(me.ID)
	if c.hook != nil {
		return c.receive(ctx, desk)
	}
	err := c.poll(ctx, desk)
	if f := (*fault)(nil); errors.As(err, &f) && f.code == http.StatusConflict && f.says("webhook is active") {
		if err := c.leave(ctx); err != nil {
			return err
		}
		c.log.Info("telegram: nod's webhook was removed, as the settings name none")
		return c.poll(ctx, desk)
	}
	return err
}

// poll asks for what waits first, and then for what comes. After a sleep it is
// what waits again.
func (c *Carrier) poll(ctx context.Context, desk people.Desk) error {
	ask := poll{Allowed: allowed}
	for ctx.Err() == nil {
		asked := c.late.now()
		updates, err := c.updates(ctx, ask)
		if err != nil {
			return err
		}
		if err := c.take(ctx, desk, updates); err != nil {
			return err
		}
		for _, u := range updates {
			ask.Offset = max(ask.Offset, u.ID+1)
		}
		if len(updates) == 0 && ask.Timeout > 0 && c.late.now().ran-asked.ran < pollPause { // this server holds no poll open
			pause(ctx)
		}
		ask.Timeout = 0
		if len(updates) < maxUpdates && c.late.heard(asked) {
			ask.Timeout = int(pollFor / time.Second)
		}
	}
	return ctx.Err()
}

// updates asks once. What is asked over a sleep is given up, and finds nothing: the
// other end may have forgotten it.
func (c *Carrier) updates(ctx context.Context, ask poll) (found []update, err error) {
	awake, cancel := c.late.awake(ctx)
	defer cancel()
	err = c.api.call(awake, "getUpdates", ask, &found)
	if err == nil || awake.Err() == nil || ctx.Err() != nil {
		return found, err
	}
	c.api.client.CloseIdleConnections()
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

// take handles updates: those of one person in order, those of different ones
// at once. It returns when all are handled for good, or with an error when one
// must come again.
func (c *Carrier) take(ctx context.Context, desk people.Desk, updates []update) error {
	theirs := map[int64][]update{}
	for _, u := range updates {
		theirs[u.who()] = append(theirs[u.who()], u)
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
	return <-errs // the first, or nil
}

// handle handles one update. One that panics is dropped: it would come again
// for ever and keep all others back.
func (c *Carrier) handle(ctx context.Context, desk people.Desk, u update) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("telegram: an update was dropped", "update", u.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = nil
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := visit{Carrier: c, desk: desk, now: time.Now()}
	switch {
	case u.Callback != nil:
		return v.tapped(ctx, u.Callback)
	case u.Message != nil && u.Message.From != nil && !u.Message.From.IsBot && u.Message.Chat.Type == "private":
		return v.wrote(ctx, u.Message)
	}
	return nil // nobody is named, or it is not between this person and the bot
}

// again reports whether a desk's error leaves open how it ended, so that the
// update must come again.
func again(err error) bool {
	var e *schemas.Error
	return err != nil && (!errors.As(err, &e) || e.Code == schemas.CodeUnavailable)
}
