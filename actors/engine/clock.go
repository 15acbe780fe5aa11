package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/bus"
)

// clock tells the broker's time: deadlines are in it, so that engines on
// machines whose clocks differ agree.
type clock struct{ ahead atomic.Int64 }

// set measures how far the broker is ahead of this machine.
func (c *clock) set(ctx context.Context, s *bus.Store) error {
	ahead, err := s.BrokerTime(ctx)
	if err != nil {
		return err
	}
	c.ahead.Store(int64(ahead))
	return nil
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())).UTC() }
