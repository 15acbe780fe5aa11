package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nodbus/nod/bus/roles"
)

// questionWithin is how long a question that the server has sent may take to arrive.
const questionWithin = 2 * time.Second

// HearQuestions subscribes to the servers' questions about clients without a key, and answers none of them.
// The token services still get every question. Each call of asked waits for one more question, for at most
// questionWithin, and reports whether one came. The connection needs the key of a token service.
func (c *Conn) HearQuestions() (asked func(ctx context.Context) bool, stop func(), err error) {
	sub, err := c.nc.SubscribeSync(roles.AdmitSubject)
	if err != nil {
		return nil, nil, fmt.Errorf("subscribe to %s: %w", roles.AdmitSubject, err)
	}
	asked = func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, questionWithin)
		defer cancel()
		_, err := sub.NextMsgWithContext(ctx)
		return err == nil
	}
	return asked, func() { _ = sub.Unsubscribe() }, nil // it fails only on a closed connection
}
