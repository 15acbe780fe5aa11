package web

// Port returns the port on which the inbox listens; its public address may have another.
func (s *Server) Port() int { return s.addr.Port }

// Pace lets each caller send burst requests in total: the refill takes longer than a test.
func (s *Server) Pace(burst int) {
	for _, l := range []*limits{s.sessionLimits, s.addressLimits, s.loginLimits} {
		l.mu.Lock()
		l.perSecond, l.burst = 1e-6, burst
		clear(l.callers)
		l.mu.Unlock()
	}
}
