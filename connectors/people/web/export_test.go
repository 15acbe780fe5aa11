package web

// Port is where the inbox listens, however people reach it.
func (s *Server) Port() int { return s.addr.Port }

// Pace lets every caller ask so often and, for the time of a test, never again.
func (s *Server) Pace(burst int) {
	for _, l := range []*limits{s.sessionLimits, s.addressLimits, s.loginLimits} {
		l.mu.Lock()
		l.perSecond, l.burst = 1e-6, burst
		clear(l.callers)
		l.mu.Unlock()
	}
}
