package web

// Port is the inbox's local port, whatever its public address is.
func (s *Server) Port() int { return s.addr.Port }

// Pace sets every caller's burst, without a refill for the time of a test.
func (s *Server) Pace(burst int) {
	for _, l := range []*limits{s.sessionLimits, s.addressLimits, s.loginLimits} {
		l.mu.Lock()
		l.perSecond, l.burst = 1e-6, burst
		clear(l.callers)
		l.mu.Unlock()
	}
}
