package bus

import (
	"context"
	"fmt"
	"time"
)

// Reading is what the broker's clock showed at an instant of this machine.
type Reading struct {
	Broker time.Time
	At     time.Time     // with this machine's monotonic clock
	Err    time.Duration // how far Broker may be off
}

// ReadClock asks the broker for its clock, once. Deadlines are in broker time.
func (s *Store) ReadClock(ctx context.Context) (Reading, error) {
	attempt := s.conn.attempt()
	before := attempt.began
	info, err := s.Settings.stream.Info(ctx)
	s.conn.tried(attempt, err)
	if err != nil {
		return Reading{}, fmt.Errorf("ask the broker for its clock: %w", err)
	}
	half := time.Since(before) / 2
	return Reading{Broker: info.TimeStamp, At: before.Add(half), Err: half}, nil
}

// clockReadings is how often BrokerTime asks the broker for its clock.
const clockReadings = 5

// BrokerTime returns how far the broker's clock is ahead of this machine's. Of
// several readings it takes the most precise.
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
