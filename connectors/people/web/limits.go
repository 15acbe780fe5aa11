package web

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// maxCallers is the largest number of callers with separate rate limits. All further callers share one
// rate limit.
const maxCallers = 4096

// limits gives each caller a separate rate limit, so that one caller with too many requests does not
// block others.
type limits struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	rest    *rate.Limiter
}

func newLimits(each rate.Limit, burst int) *limits {
	return &limits{perSecond: each, burst: burst, callers: map[string]*rate.Limiter{}, rest: rate.NewLimiter(each, burst)}
}

// allow reports whether a caller may make a request now, and counts this request.
func (l *limits) allow(caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.callers[caller]
	if !known && len(l.callers) >= maxCallers { // drop callers that have not used their rate limit lately: they have the same allowance as new callers
		maps.DeleteFunc(l.callers, func(_ string, r *rate.Limiter) bool { return r.Tokens() >= float64(l.burst) })
	}
	switch {
	case known:
	case len(l.callers) >= maxCallers:
		r = l.rest
	default:
		r = rate.NewLimiter(l.perSecond, l.burst)
		l.callers[caller] = r
	}
	return r.Allow()
}

// allowRequest applies the rate limit of the request's session. If there is no session, it applies the
// rate limit of the caller's address.
func (s *Server) allowRequest(r *http.Request) bool {
	if p, ok := s.session(r); ok {
		return s.sessionLimits.allow(p.ID)
	}
	return s.addressLimits.allow(s.callerAddress(r))
}

// callerAddress returns the client's address; for IPv6 it returns the /64 network. Behind a proxy it
// returns the last entry of X-Forwarded-For, which the nearest proxy wrote. The client may have forged
// the other entries.
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
	net64, _ := ip.WithZone("").Prefix(64) // one caller may own all addresses of a /64
	return net64.String()
}
