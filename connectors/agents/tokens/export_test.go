package tokens

import "time"

// SetClock sets the clock of all issuers, while no token is checked.
func (s *Service) SetClock(now func() time.Time) {
	for _, i := range s.issuers {
		i.now = now
	}
}
