package web

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"github.com/nodbus/nod/schemas"
)

// The limits of HTTP requests. Each login session has a separate rate limit, and so does each address
// for requests without a session. Normal use stays far below these limits.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 200
	loginsPerSecond   = 1 // logins per address of a caller; a login with a token of this inbox does not count
	loginsAtOnce      = 10
	maxBody           = 16 << 10 // the longest body of a request, in bytes
)

// policy is the page's Content-Security-Policy. With it the page loads only its own files, connects only
// to its own server, and runs no inline scripts. Trusted types prevent text from becoming markup. The
// only policy of trusted types, nod-worker, permits only the URL of the service worker.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types nod-worker"

//go:embed page
var page embed.FS

func (s *Server) handler() http.Handler {
	files, _ := fs.Sub(page, "page") // Sub never fails, because the folder is embedded
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /icon/{n}", s.icon)
	mux.HandleFunc("GET /whoami", s.whoami)
	mux.HandleFunc("GET /ws", s.gateway)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("GET /login/oidc", s.showIssuer)
	mux.HandleFunc("POST /login/oidc", s.beginLogin)
	mux.HandleFunc("GET "+callbackPath, s.finishLogin)
	mux.HandleFunc("POST /logout", s.logout)
	return s.protect(mux)
}

// protect refuses a request for another host, from another origin, or over the rate limit before any
// handler runs. It also limits the size of the body.
func (s *Server) protect(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	for _, origin := range s.addr.Origins {
		_ = cross.AddTrustedOrigin(origin) // AddTrustedOrigin never fails, because the origins have been parsed before
	}
	guarded := http.MaxBytesHandler(cross.Handler(next), maxBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch origin := r.Header.Get("Origin"); {
		case !s.addr.Answers(r.Host):
			refuse(w, http.StatusMisdirectedRequest, schemas.Errorf(schemas.CodeForbidden, "this is not the inbox of %q: open %s", r.Host, s.addr.URL))
		case origin != "" && !slices.Contains(s.addr.Origins, origin):
			refuse(w, http.StatusForbidden, schemas.Errorf(schemas.CodeForbidden, "requests from other sites are refused"))
		case !s.allowRequest(r):
			refuse(w, http.StatusTooManyRequests, schemas.Errorf(schemas.CodeUnavailable, "too many requests: try again in a second"))
		default:
			guarded.ServeHTTP(w, r)
		}
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// countIcon is an icon with a number. Its parameters are the font size and the text.
const countIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="#a11d1d"/>` +
	`<text x="8" y="11.5" text-anchor="middle" font-family="sans-serif" font-weight="bold" font-size="%d" fill="#fff">%s</text></svg>`

// icon serves an icon with the number of pending requests, up to "99+".
func (s *Server) icon(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	text, size := strconv.Itoa(n), 10
	switch {
	case err != nil || n < 0:
		http.NotFound(w, r)
		return
	case n > 99:
		text, size = "99+", 7
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = fmt.Fprintf(w, countIcon, size, text) // Fprintf fails if the client has gone
}
