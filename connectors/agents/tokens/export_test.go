package tokens

import "time"

// SetClock sets the clock of all issuers. No token may be under check at that time.
func (s *Service) SetClock(now func() time.Time) {
	for _, i := range s.issuers {
		i.now = now
	}
}
