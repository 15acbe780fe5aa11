package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nodbus/nod/schemas"
)

// statsQuiet is how long after the last reply all are taken to have answered.
const statsQuiet = 300 * time.Millisecond

// ServiceStats are what one instance of a service says of itself.
type ServiceStats struct {
	ID   string
	data json.RawMessage
}

// Into decodes what the service added to its statistics.
func (s ServiceStats) Into(v any) error { return json.Unmarshal(s.data, v) }

// ServiceStats asks every instance of a service for its statistics.
func (c *Conn) ServiceStats(ctx context.Context, service string) ([]ServiceStats, error) {
	subject, err := micro.ControlSubject(micro.StatsVerb, service, "")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
	}
	inbox := c.nc.NewRespInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
	}
	defer sub.Unsubscribe()
	if err := c.nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
	}
	var all []ServiceStats
	for {
		quiet, cancel := context.WithTimeout(ctx, statsQuiet)
		msg, err := sub.NextMsgWithContext(quiet)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
		}
		var stats micro.Stats
		if json.Unmarshal(msg.Data, &stats) != nil || len(stats.Endpoints) == 0 {
			continue
		}
		all = append(all, ServiceStats{stats.ID, stats.Endpoints[0].Data})
	}
}

// Follow waits until every instance of a service has reached a revision in what it
// says of itself, and returns the ids of those that have not while ctx lasts: of
// those that answer, and of those that running names, where it is not nil. It fails
// where none says anything.
func (c *Conn) Follow(ctx context.Context, service, what string, revision uint64, running func(context.Context) ([]string, error)) (laggards []string, err error) {
	heard := false
	for try := 0; ; try++ {
		stats, err := c.ServiceStats(ctx, service)
		switch {
		case ctx.Err() != nil && heard: // of the last whole round
			return laggards, nil
		case ctx.Err() != nil:
			return nil, schemas.Errorf(schemas.CodeUnavailable, "no engine says what it follows: see that one is running")
		case err != nil:
			return nil, err
		}
		late, err := behind(ctx, stats, what, revision, running)
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err != nil: // cut short, as is seen above
			continue
		case len(stats) > 0 && len(late) == 0:
			return nil, nil
		}
		laggards, heard = late, heard || len(stats) > 0
		_ = pause(ctx, min(try, 2)) // what ends it is seen above
	}
}

// behind are the instances that are not at a revision, or do not answer.
func behind(ctx context.Context, stats []ServiceStats, what string, revision uint64, running func(context.Context) ([]string, error)) (ids []string, err error) {
	if running != nil {
		if ids, err = running(ctx); err != nil {
			return nil, err
		}
	}
	for _, s := range stats {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == s.ID })
		var data map[string]uint64
		if s.Into(&data) != nil || data[what] < revision {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}
