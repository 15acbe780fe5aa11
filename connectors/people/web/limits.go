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

// maxCallers is the maximum number of callers with a rate limit of their own; all further
// callers share one rate limit.
const maxCallers = 4096

// limits gives each caller its own rate limit, so that a flood from one caller does not block
// another.
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
	if !known && len(l.callers) >= maxCallers { // a caller that has not used its rate limit lately is like a new caller, so it can be dropped
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

// allowRequest applies the rate limit of the request's session or, without a session,
// of its address.
func (s *Server) allowRequest(r *http.Request) bool {
	if p, ok := s.session(r); ok {
		return s.sessionLimits.allow(p.ID)
	}
	return s.addressLimits.allow(s.callerAddress(r))
}

// callerAddress returns the client's address; for IPv6 its /64 network. Behind a proxy it
// returns the last entry of X-Forwarded-For, which the nearest proxy wrote; the client may
// have forged the entries before it.
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
