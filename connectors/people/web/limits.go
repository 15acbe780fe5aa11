package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxCallers is the largest number of callers with separate rate limits. All further callers share one
// rate limit.
const maxCallers = 4096

// allowRequest applies the rate limit of the request's session. If there is no session, it applies the
// rate limit of the caller's address.
func (s *Server) allowRequest(r *http.Request) bool {
	if p, ok := s.session(r); ok {
		return s.sessionLimits.Allow(p.ID)
	}
	return s.addressLimits.Allow(s.callerAddress(r))
}

// callerAddress returns the client's address or, for IPv6, the /64 network. Behind a proxy it returns the
// last entry of X-Forwarded-For, which the nearest proxy wrote. The client may have forged the other
// entries.
func (s *Server) callerAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if all := r.Header.Values("X-Forwarded-For"); s.proxied && len(all) > 0 {
		last := all[len(all)-1]
		host = strings.TrimSpace(last[strings.LastIndex(last, ",")+1:])
	}
	ip, err := netip.ParseAddr(host)
	switch ip = ip.Unmap(); {
	case err != nil:
		return ""
	case ip.Is4():
		return ip.String()
	}
	net64, _ := ip.WithZone("").Prefix(64) // a single caller may own all addresses of a /64 network
	return net64.String()
}
