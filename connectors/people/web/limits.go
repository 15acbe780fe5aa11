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

// maxCallers is how many callers are told apart; those beyond them share one
// pace.
const maxCallers = 4096

// limits holds each caller to a pace of its own, so that nobody's flood keeps
// another out.
type limits struct {
	each  rate.Limit
	burst int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	rest    *rate.Limiter
}

func newLimits(each rate.Limit, burst int) *limits {
	return &limits{each: each, burst: burst, callers: map[string]*rate.Limiter{}, rest: rate.NewLimiter(each, burst)}
}

// allow reports whether a caller may do one thing more.
func (l *limits) allow(caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.callers[caller]
	if !known && len(l.callers) >= maxCallers { // whoever has been still for long enough is as good as new
		maps.DeleteFunc(l.callers, func(_ string, r *rate.Limiter) bool { return r.Tokens() >= float64(l.burst) })
	}
	switch {
	case known:
	case len(l.callers) >= maxCallers:
		r = l.rest
	default:
		r = rate.NewLimiter(l.each, l.burst)
		l.callers[caller] = r
	}
	return r.Allow()
}

// mayAsk reports whether a request comes in time: one with a session at the
// session's own pace, any other at that of the address it comes from.
func (s *Server) mayAsk(r *http.Request) bool {
	if p, ok := s.session(r); ok {
		return s.sessions.allow(p.ID)
	}
	return s.strangers.allow(s.from(r))
}

// from is the address of whoever asks. Behind a proxy that is what the proxy
// nearest to nod has added; what stands before it anybody may have written.
func (s *Server) from(r *http.Request) string {
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
	net64, _ := ip.WithZone("").Prefix(64) // one caller has as many addresses as it likes in there
	return net64.String()
}
