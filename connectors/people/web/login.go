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

// cookieName tells apart the inboxes of one machine, whose ports share cookies;
// gateways that are reached at one address have the same.
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

// login exchanges a link's pass for a session. Nothing that only reads does:
// links are looked at by more than their readers.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, schemas.Errorf(schemas.CodeBadRequest, "the login is not JSON"))
		return
	}
	now := time.Now()
	p, ok := s.seals.open(forLogin, body.Token, now)
	if !ok && !s.guesses.allow(s.from(r)) {
		refuse(w, http.StatusTooManyRequests, schemas.Errorf(schemas.CodeUnavailable, "too many logins: try again in a minute"))
		return
	}
	elsewhere := !ok && body.Token != "" && !strings.Contains(body.Token, ".")
	if elsewhere { // another channel's, which nod counts
		user, err := s.opts.LoginCodes.RedeemLoginCode(r.Context(), body.Token)
		if err != nil && !errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
			refuseErr(w, err)
			return
		}
		p.User, ok = user, err == nil
	}
	if ok {
		_, err := s.opts.Registry.Approver(r.Context(), p.User)
		if err == nil && !elsewhere {
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
	http.SetCookie(w, s.cookie(s.seals.sign(forSession, p.User, now, sessionLasts), sessionLasts))
	w.WriteHeader(http.StatusNoContent)
}

// logout ends a session, wherever its cookie may be. Where that cannot be
// recorded the session stays, and can be ended later.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if p, ok := s.session(r); ok {
		if _, err := s.opts.LoginCodes.SpendLoginCode(r.Context(), p.ID, p.Ends); err != nil {
			refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "you are logged in still: nod could not be told to end the session; try again"))
			return
		}
		s.board.drop(p.ID)
		if err := s.pushes.list.drop(func(d *device) bool { return d.Session.ID == p.ID }); err != nil {
			s.opts.Log.Warn("web: a device that has logged out is told that something waits once more", "error", err)
		}
	}
	http.SetCookie(w, s.cookie("", -time.Second))
	w.WriteHeader(http.StatusNoContent)
}

// session is what a request's cookie says, where its seal is good.
func (s *Server) session(r *http.Request) (p pass, ok bool) {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return pass{}, false
	}
	return s.seals.open(forSession, c.Value, time.Now())
}

// errLoggedOut says that a session was ended.
var errLoggedOut = schemas.Errorf(schemas.CodeUnauthorized, "you have logged out: open another link that nod login prints")

// counts is the name of the approver whose session this is, where the session
// counts still.
func (s *Server) counts(ctx context.Context, p pass) (name string, err error) {
	spent, err := s.opts.LoginCodes.LoginCodeSpent(ctx, p.ID)
	if err == nil && spent {
		err = errLoggedOut
	}
	if err != nil {
		return "", err
	}
	a, err := s.opts.Registry.Approver(ctx, p.User)
	return a.Name, err
}

// who is the approver whose session a request has; otherwise it was refused.
func (s *Server) who(w http.ResponseWriter, r *http.Request) (p pass, name string, ok bool) {
	if p, ok = s.session(r); !ok {
		refuse(w, http.StatusUnauthorized, schemas.Errorf(schemas.CodeUnauthorized, "you are not logged in: open the link that nod login prints"))
		return pass{}, "", false
	}
	name, err := s.counts(r.Context(), p)
	if err != nil {
		refuseErr(w, err)
		return pass{}, "", false
	}
	return p, name, true
}

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) {
	p, name, ok := s.who(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"user_id": p.User, "name": name}) // a reader that is gone needs none
}

// refuse answers with nod's one form of error.
func refuse(w http.ResponseWriter, status int, e *schemas.Error) {
	data, _ := schemas.Encode(e) // always encodes
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a reader that is gone needs none
}

func refuseErr(w http.ResponseWriter, err error) {
	var e *schemas.Error
	switch {
	case !errors.As(err, &e):
		refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "nod could not be asked who you are; try again"))
	case errors.Is(err, errLoggedOut):
		refuse(w, http.StatusUnauthorized, e)
	case e.Code == schemas.CodeForbidden:
		refuse(w, http.StatusForbidden, e)
	default:
		refuse(w, http.StatusServiceUnavailable, e)
	}
}
