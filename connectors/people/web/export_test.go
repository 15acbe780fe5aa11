package web

import "github.com/nodbus/nod/internal/callerlimit"

// Port returns the port on which the inbox listens. It may differ from the port in the inbox's public
// address.
func (s *Server) Port() int { return s.addr.Port }

// Pace limits each caller to burst requests. A further request is allowed only after a time that is
// longer than any test.
func (s *Server) Pace(burst int) {
	for _, l := range []*callerlimit.Limits{s.sessionLimits, s.addressLimits, s.loginLimits} {
		l.Reset(1e-6, burst)
	}
}

// Queued returns the largest number of queued messages of a client.
func (s *Server) Queued() (most int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.clients {
		most = max(most, c.backlog())
	}
	return most
}
