package web

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"time"

	"github.com/nodbus/nod/connectors/people/web/issuer"
	"github.com/nodbus/nod/schemas"
)

const (
	callbackPath = "/login/oidc/callback"
	flowLasts    = 10 * time.Minute
	flowPurpose  = "login flow"
	maxUserID    = 256
)

// flow is a login that has begun in a browser. The browser keeps it, encrypted, in a cookie.
type flow struct {
	issuer.Flow
	Issuer   string    `json:"issuer"`
	ClientID string    `json:"client_id"`
	Page     string    `json:"page"`
	Ends     time.Time `json:"ends"`
}

// pages matches the part of the page's address after the #, if the page may open that address again after
// a login.
var pages = regexp.MustCompile(`^#/[A-Za-z0-9_/-]{0,300}$`)

// flowCookie returns the cookie in which a browser keeps a login that has begun and not ended.
func (s *Server) flowCookie(value string, age time.Duration) *http.Cookie {
	c := s.cookie(value, age)
	// The issuer's redirect is a navigation from another site, and browsers send a strict cookie only
	// with navigations from the same site.
	c.Name, c.Path, c.SameSite = "nod_login"+c.Name[len("nod_session"):], callbackPath, http.SameSiteLaxMode
	return c
}

// showIssuer replies with the issuer's name for the login button, or with 404 if people cannot log
// in at an issuer.
func (s *Server) showIssuer(w http.ResponseWriter, r *http.Request) {
	if s.logins != nil {
		state, err := s.opts.Logins.Settings(r.Context())
		if err != nil {
			refuseErr(w, err)
			return
		}
		if o := state.Settings.OIDC(); o != nil {
			replyJSON(w, map[string]string{"label": o.Title()})
			return
		}
	}
	refuse(w, http.StatusNotFound, noIssuer())
}

func noIssuer() *schemas.Error {
	return schemas.Errorf(schemas.CodeNotFound, "the settings name no issuer of logins: see connectors.web.oidc")
}

// beginLogin begins a login at the issuer, and replies with the address to which the browser goes.
func (s *Server) beginLogin(w http.ResponseWriter, r *http.Request) {
	if !s.loginLimits.Allow(s.callerAddress(r)) {
		refuse(w, http.StatusTooManyRequests, schemas.Errorf(schemas.CodeUnavailable, "too many logins: try again in a minute"))
		return
	}
	var body struct {
		Page string `json:"page"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, schemas.Errorf(schemas.CodeBadRequest, "the login is not JSON"))
		return
	}
	client, settings, err := s.issuer(r.Context())
	if err != nil {
		refuseErr(w, err)
		return
	}
	if client == nil {
		refuse(w, http.StatusNotFound, noIssuer())
		return
	}
	begun, url, err := client.Begin(r.Context())
	if err != nil {
		s.opts.Log.Warn("web: a login at the issuer could not begin", "error", err)
		refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "%v", err))
		return
	}
	if !pages.MatchString(body.Page) {
		body.Page = "#/"
	}
	o, now := settings.OIDC(), time.Now()
	f := flow{Flow: begun, Issuer: o.Issuer, ClientID: o.ClientID, Page: body.Page, Ends: now.Add(flowLasts)}
	http.SetCookie(w, s.flowCookie(s.logins.seal(f, flowPurpose), flowLasts))
	replyJSON(w, map[string]string{"url": url})
}

// issuer calls logins.issuer. Without Options.Logins it returns a nil client.
func (s *Server) issuer(ctx context.Context) (*issuer.Client, *schemas.Settings, error) {
	if s.logins == nil {
		return nil, nil, nil
	}
	return s.logins.issuer(ctx)
}

// finishLogin is the page to which the issuer sends the browser back. It begins a session with a new id,
// and ignores any session id that the browser has brought along.
func (s *Server) finishLogin(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, s.flowCookie("", -time.Second))
	if !s.loginLimits.Allow(s.callerAddress(r)) {
		s.loginFailed(w, http.StatusTooManyRequests, "There were too many logins. Try again in a minute.")
		return
	}
	f, ok := s.flowOf(r)
	if !ok {
		s.loginFailed(w, http.StatusBadRequest, "This login was not begun in this browser, or too long ago.")
		return
	}
	if r.URL.Query().Get("error") != "" {
		s.loginFailed(w, http.StatusForbidden, "The issuer has refused the login.")
		return
	}
	first, err := s.opts.LoginCodes.SpendLoginCode(r.Context(), "flow-"+f.State, f.Ends)
	if err == nil && !first {
		s.loginFailed(w, http.StatusBadRequest, "This login was completed before.")
		return
	}
	var cookie *http.Cookie
	if err == nil {
		cookie, err = s.completeLogin(r.Context(), &f, r.URL.Query().Get("code"), r.URL.Query().Get("iss"))
	}
	var known *schemas.Error
	switch {
	case err == nil:
		http.SetCookie(w, cookie)
		w.Header().Set("Location", "/"+f.Page)
		w.WriteHeader(http.StatusSeeOther)
	case errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) && errors.As(err, &known):
		s.loginFailed(w, http.StatusForbidden, "You may not answer here: "+known.Message+".")
	default:
		s.opts.Log.Warn("web: a login at the issuer failed", "error", err)
		s.loginFailed(w, http.StatusBadGateway, "The login could not be completed. nod's log has the reason.")
	}
}

// flowOf returns the login that a browser has begun. ok is false if the browser has begun none, or if the
// state in the address is not that of the login.
func (s *Server) flowOf(r *http.Request) (f flow, ok bool) {
	c, err := r.Cookie(s.flowCookie("", 0).Name)
	if err != nil || s.logins == nil || !s.logins.unseal(c.Value, flowPurpose, &f) {
		return f, false
	}
	q := r.URL.Query()
	return f, len(q["state"]) == 1 && len(q["code"]) <= 1 && len(q["iss"]) <= 1 &&
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) == 1 && time.Now().Before(f.Ends)
}

// completeLogin returns the cookie of a new session. A person who must not answer gets no session; the
// error is then FORBIDDEN.
func (s *Server) completeLogin(ctx context.Context, f *flow, code, iss string) (*http.Cookie, error) {
	client, settings, err := s.issuer(ctx)
	if err != nil {
		return nil, err
	}
	if client == nil || settings.OIDC().Issuer != f.Issuer || settings.OIDC().ClientID != f.ClientID {
		return nil, errors.New("the settings name another issuer than at the beginning of this login")
	}
	o := settings.OIDC()
	at, err := s.brokerTime(ctx)
	if err != nil {
		return nil, err
	}
	tokens, person, err := client.Finish(ctx, f.Flow, code, iss)
	if err != nil {
		return nil, err
	}
	user := o.UserID(person.User)
	if len(user) > maxUserID {
		return nil, fmt.Errorf("the identity of a person at %s has %d bytes, and the most is %d", o.Issuer, len(user), maxUserID)
	}
	n := login{Tokens: tokens, User: user, ClientID: o.ClientID, Login: loginAt(at, o, settings, &person)}
	who, err := s.opts.Logins.ApproverAs(ctx, schemas.From{UserID: user, Login: &n.Login})
	if err != nil {
		return nil, err
	}
	value := s.signer.sign(forSession, user, time.Now(), sessionLasts)
	session, _ := s.signer.verify(forSession, value, time.Now())
	if err := s.logins.create(ctx, session, n); err != nil {
		return nil, err
	}
	s.opts.Log.Info("web: logged in at the issuer", "person", who.Name, "issuer", o.Issuer, "subject", person.Subject, "groups", n.Login.Groups)
	return s.cookie(value, sessionLasts), nil
}

// brokerTime reads the broker's clock, so that the time of a check is never ahead of the engine's.
func (s *Server) brokerTime(ctx context.Context) (time.Time, error) {
	err := s.clock.readOnce(ctx, s.opts.Registry)
	return s.clock.now(), err
}

// logoutURL returns the address at which a browser also logs out at the issuer, or "".
func (s *Server) logoutURL(ctx context.Context) string {
	client, _, err := s.issuer(ctx)
	if err != nil || client == nil {
		return ""
	}
	return client.LogoutURL(ctx, s.addr.URL+"/")
}

var failedPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>nod</title><link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/style.css"></head>
<body><main class="refused"><h1>Not logged in</h1><p>{{.}}</p><p><a href="/">To the login page</a></p></main></body>
</html>
`))

// loginFailed replies with a page that says why the login has failed.
func (s *Server) loginFailed(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = failedPage.Execute(w, why) // Execute fails if the client has gone
}

func replyJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // Encode fails if the client has gone
}
