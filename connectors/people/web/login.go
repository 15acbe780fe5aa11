package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// cookieName returns a cookie name that depends on the inbox's URL. Browsers share cookies between all
// ports of a machine, so several inboxes on one machine need different names. Gateways with the same
// public address use the same name.
func (s *Server) cookieName() string {
	sum := sha256.Sum256([]byte(s.addr.URL))
	return "nod_session_" + hex.EncodeToString(sum[:6])
}

func (s *Server) cookie(value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: int(age / time.Second),
		HttpOnly: true, Secure: s.addr.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// login exchanges the token of a login link for a session. Only this POST uses up the token. Opening the
// link does not use it up, because previews and scanners open links too.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, schemas.Errorf(schemas.CodeBadRequest, "the login is not JSON"))
		return
	}
	now := time.Now()
	p, ok := s.signer.verify(forLogin, body.Token, now)
	if !ok && !s.loginLimits.Allow(s.callerAddress(r)) {
		refuse(w, http.StatusTooManyRequests, schemas.Errorf(schemas.CodeUnavailable, "too many logins: try again in a minute"))
		return
	}
	otherChannel := !ok && body.Token != "" && !strings.Contains(body.Token, ".")
	if otherChannel { // A token from this inbox contains a dot. A code without a dot is from another channel, and the engine checks it.
		user, err := s.opts.LoginCodes.RedeemLoginCode(r.Context(), body.Token)
		if err != nil && !errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
			refuseErr(w, err)
			return
		}
		p.User, ok = user, err == nil
	}
	ok = ok && !schemas.IsLoginUser(p.User) // only the issuer can log in such a user
	if ok {
		_, err := s.opts.Registry.Approver(r.Context(), p.User)
		if err == nil && !otherChannel {
			ok, err = s.opts.LoginCodes.SpendLoginCode(r.Context(), p.ID, p.Ends)
		}
		if err != nil {
			refuseErr(w, err)
			return
		}
	}
	if !ok {
		refuse(w, http.StatusUnauthorized, schemas.Errorf(schemas.CodeUnauthorized, "this login link was used, or is too old: make another with nod login"))
		return
	}
	http.SetCookie(w, s.cookie(s.signer.sign(forSession, p.User, now, sessionLasts), sessionLasts))
	w.WriteHeader(http.StatusNoContent)
}

// logout ends the session for every copy of its cookie. If nod cannot store the end, the session
// continues and the user can try again. After a login at an issuer that offers a logout, the reply has
// the address at which the browser logs out there too.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	at := ""
	if p, ok := s.session(r); ok {
		if _, err := s.opts.LoginCodes.SpendLoginCode(r.Context(), p.ID, p.Ends); err != nil {
			refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "you are still logged in: nod could not end the session; try again"))
			return
		}
		s.hub.disconnect(p.ID)
		if schemas.IsLoginUser(p.User) && s.logins != nil {
			at = s.logoutURL(r.Context())
			s.logins.end(r.Context(), p.ID)
		}
		if err := s.pushes.list.remove(func(d *device) bool { return d.Session.ID == p.ID }); err != nil {
			s.opts.Log.Warn("web: a device that has logged out may get one more notification", "error", err)
		}
	}
	http.SetCookie(w, s.cookie("", -time.Second))
	if at != "" {
		replyJSON(w, map[string]string{"url": at})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// session returns the session in the request's cookie. If the signature is wrong or the session has
// expired, ok is false. session does not notice a logout; checkSession notices it.
func (s *Server) session(r *http.Request) (p token, ok bool) {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return token{}, false
	}
	return s.signer.verify(forSession, c.Value, time.Now())
}

// errLoggedOut is the error for a session that has ended by a logout.
var errLoggedOut = schemas.Errorf(schemas.CodeUnauthorized, "you have logged out: open another link that nod login prints")

// checkSession returns the name of the session's approver. It returns an error if the session has
// ended or its user is no longer an approver.
func (s *Server) checkSession(ctx context.Context, p token) (name string, err error) {
	spent, err := s.opts.LoginCodes.LoginCodeSpent(ctx, p.ID)
	if err == nil && spent {
		err = errLoggedOut
	}
	if err != nil {
		return "", err
	}
	if !schemas.IsLoginUser(p.User) {
		a, err := s.opts.Registry.Approver(ctx, p.User)
		return a.Name, err
	}
	from, err := s.logins.current(ctx, p)
	if err != nil {
		return "", err
	}
	a, err := s.opts.Logins.ApproverAs(ctx, from)
	return a.Name, err
}

// person returns the session's person as a From, the form in which an answer names its person.
func (s *Server) person(ctx context.Context, p token) (schemas.From, error) {
	if schemas.IsLoginUser(p.User) {
		return s.logins.current(ctx, p)
	}
	return schemas.From{UserID: p.User}, nil
}

// authenticate returns the request's session and the approver's name. If the session is not valid, it
// replies with the error and ok is false.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (p token, name string, ok bool) {
	if p, ok = s.session(r); !ok {
		refuse(w, http.StatusUnauthorized, schemas.Errorf(schemas.CodeUnauthorized, "you are not logged in: open the link that nod login prints"))
		return token{}, "", false
	}
	name, err := s.checkSession(r.Context(), p)
	if err != nil {
		refuseErr(w, err)
		return token{}, "", false
	}
	return p, name, true
}

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) {
	p, name, ok := s.authenticate(w, r)
	if !ok {
		return
	}
	replyJSON(w, map[string]string{"user_id": p.User, "name": name})
}

// refuse replies with an error in nod's format.
func refuse(w http.ResponseWriter, status int, e *schemas.Error) {
	data, _ := schemas.Encode(e) // Encode never fails for a *schemas.Error
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // Write fails if the client has gone
}

func refuseErr(w http.ResponseWriter, err error) {
	var e *schemas.Error
	switch {
	case !errors.As(err, &e):
		refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "nod could not check who you are; try again"))
	case e.Code == schemas.CodeUnauthorized:
		refuse(w, http.StatusUnauthorized, e)
	case e.Code == schemas.CodeForbidden:
		refuse(w, http.StatusForbidden, e)
	default:
		refuse(w, http.StatusServiceUnavailable, e)
	}
}
