package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nodbus/nod/bus/roles"
)

// Reading is one reading of the broker's clock.
type Reading struct {
	Broker time.Time
	At     time.Time     // this machine's time, with its monotonic clock, at which Broker was read
	Err    time.Duration // the greatest possible error of the time Broker
}

// ReadClock reads the broker's clock once. Deadlines are in broker time.
func (s *Store) ReadClock(ctx context.Context) (Reading, error) {
	attempt := s.conn.attempt()
	before := attempt.began
	info, err := s.Settings.stream.Info(ctx)
	s.conn.recordAttempt(attempt, err)
	if err != nil {
		return Reading{}, fmt.Errorf("ask the broker for its clock: %w", err)
	}
	half := time.Since(before) / 2
	return Reading{Broker: info.TimeStamp, At: before.Add(half), Err: half}, nil
}

// ServerAhead returns how far the clock of the server to which c is connected is ahead of this machine's
// clock. The connection needs the key of an observer.
func (c *Conn) ServerAhead(ctx context.Context) (ahead time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	asked := time.Now()
	reply, err := c.nc.RequestWithContext(ctx, roles.OwnServer, nil)
	if err != nil {
		return 0, fmt.Errorf("ask the server for its time: %w", err)
	}
	half := time.Since(asked) / 2
	var info struct{ Server struct{ Time time.Time } }
	if err := json.Unmarshal(reply.Data, &info); err != nil || info.Server.Time.IsZero() {
		return 0, fmt.Errorf("the server's reply %.100q has no time", reply.Data)
	}
	return info.Server.Time.Sub(asked.Add(half)), nil
}

// clockReadings is the number of readings that BrokerTime makes.
const clockReadings = 5

// BrokerTime returns how far the broker's clock is ahead of this machine's clock, from the most precise
// of several readings. The result is negative if the broker's clock is behind.
func (s *Store) BrokerTime(ctx context.Context) (ahead time.Duration, err error) {
	var best Reading
	for i := range clockReadings {
		r, err := s.ReadClock(ctx)
		if err != nil {
			return 0, err
		}
		if i == 0 || r.Err < best.Err {
			best = r
		}
	}
	return best.Broker.Sub(best.At), nil
}
