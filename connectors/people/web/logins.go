package web

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/web/issuer"
	"github.com/nodbus/nod/schemas"
)

const (
	recheckAfter = 30 * time.Second // the age from which a use of a login makes the inbox ask the issuer again
	askAgain     = 5 * time.Second  // the pause after a failure to ask the issuer
	turnLasts    = 15 * time.Second // the time for which only one gateway may ask the issuer about a login
	maxSealed    = 96 << 10
)

// Logins is the interface to nod for people who log in at an issuer of OpenID Connect.
type Logins interface {
	// Settings returns the settings in force.
	Settings(ctx context.Context) (schemas.SettingsState, error)
	// ApproverAs returns the approver whose identity is in from. If there is no such approver, the error
	// is FORBIDDEN.
	ApproverAs(ctx context.Context, from schemas.From) (schemas.Approver, error)
	// RevokeAs does the same as Records.Revoke for a person who has logged in at an issuer.
	RevokeAs(ctx context.Context, g *schemas.StandingAnswer, from schemas.From) error
	// LoadLogin returns the stored login of a session, or "" if no login is stored.
	LoadLogin(ctx context.Context, session string) (sealed string, revision uint64, err error)
	// StoreLogin writes the login of a session, or removes it if sealed is "". The error is CONFLICT
	// if the stored login has another revision.
	StoreLogin(ctx context.Context, session, sealed string, revision uint64, until time.Time) (uint64, error)
}

// login is a person's login at an issuer, as the inbox stores it for one session. Only gateways with
// the same login key can read it.
type login struct {
	Tokens   issuer.Tokens `json:"tokens"`
	User     string        `json:"user"` // the user id in the session's cookie
	ClientID string        `json:"client_id"`
	Login    schemas.Login `json:"login"`
	// Turn is the only gateway that may ask the issuer about this login until TurnEnds. Without turns,
	// two gateways could use the same refresh token, and many issuers then end the login.
	Turn     string    `json:"turn,omitempty"`
	TurnEnds time.Time `json:"turn_ends,omitzero"`
}

// loginEntry is a login that this gateway has in memory. Its lock is held while the gateway asks the
// issuer, so that concurrent uses of a session ask the issuer once.
type loginEntry struct {
	mu       sync.Mutex
	login    login
	revision uint64
	unsaved  bool      // nod has not stored the present value of login yet
	askFrom  time.Time // the issuer is not asked before this time
	failed   error     // the error of the last attempt to ask the issuer

	used time.Time // guarded by the lock of logins, so that no entry is removed just before its lock is taken

	at      sync.Mutex
	checked time.Time // the time of the last check, for readers that must not wait
}

// logins keeps the logins at an issuer up to date.
type logins struct {
	nod     Logins
	gateway string
	aead    cipher.AEAD
	url     string
	now     func(context.Context) (time.Time, error) // returns the broker's time
	recheck time.Duration
	lasts   time.Duration // how long a check of a login counts

	mu      sync.Mutex
	known   map[string]*loginEntry // the entries by session id
	client  *issuer.Client
	madeFor schemas.OIDC // the settings from which client was made
}

// errLoginEnded is the error for a login that the issuer has ended, or that nod has not stored.
var errLoginEnded = schemas.Errorf(schemas.CodeUnauthorized, "your login has ended: log in again")

func newLogins(nod Logins, key []byte, url string, recheck, lasts time.Duration) *logins {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("web logins"))
	block, _ := aes.NewCipher(h.Sum(nil)) // NewCipher never fails for 32 bytes
	aead, _ := cipher.NewGCM(block)       // NewGCM never fails for AES
	return &logins{nod: nod, gateway: rand.Text(), aead: aead, url: url, recheck: recheck, lasts: lasts, known: map[string]*loginEntry{}}
}

// seal encrypts a value for one purpose or session.
func (l *logins) seal(v any, purpose string) string {
	plain, _ := json.Marshal(v) // Marshal never fails for texts and times
	nonce := make([]byte, l.aead.NonceSize())
	_, _ = rand.Read(nonce) // Read never fails
	return base64.RawURLEncoding.EncodeToString(l.aead.Seal(nonce, nonce, plain, []byte(purpose)))
}

// unseal decrypts the text into v. It returns false if seal did not make the text for the same purpose.
func (l *logins) unseal(text, purpose string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if n := l.aead.NonceSize(); err == nil && len(data) >= n {
		var plain []byte
		if plain, err = l.aead.Open(nil, data[:n], data[n:], []byte(purpose)); err == nil {
			return json.Unmarshal(plain, v) == nil
		}
	}
	return false
}

// issuer returns the present settings and a client of the issuer that they name. The client is nil if
// they name no issuer.
func (l *logins) issuer(ctx context.Context) (*issuer.Client, *schemas.Settings, error) {
	state, err := l.nod.Settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	o := state.Settings.OIDC()
	if o == nil {
		return nil, &state.Settings, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil || !reflect.DeepEqual(l.madeFor, *o) {
		client, err := newIssuer(o, l.url)
		if err != nil {
			return nil, nil, schemas.Errorf(schemas.CodeUnavailable, "%v", err)
		}
		l.client, l.madeFor = client, *o
	}
	return l.client, &state.Settings, nil
}

// newIssuer returns the client of an issuer for the inbox at url.
func newIssuer(o *schemas.OIDC, url string) (*issuer.Client, error) {
	secret := ""
	if o.ClientSecretEnv != "" || o.ClientSecretFile != "" {
		var err error
		if secret, err = people.ReadSecret("connectors.web.oidc.client_secret", o.ClientSecretEnv, o.ClientSecretFile, "the client's secret"); err != nil {
			return nil, err
		}
	}
	return issuer.New(*o, secret, url+callbackPath), nil
}

// Issuer returns a client of the issuer that the settings name, which must name one.
func Issuer(s *schemas.Settings) (*issuer.Client, error) {
	return newIssuer(s.OIDC(), strings.TrimRight(s.Connectors.Web.PublicURL, "/"))
}

// create stores the login of a new session.
func (l *logins) create(ctx context.Context, session token, n login) error {
	sealed := l.seal(n, session.ID)
	if len(sealed) > maxSealed {
		return schemas.Errorf(schemas.CodeUnavailable, "the tokens of %s are too long to be stored", n.Login.Issuer)
	}
	_, err := l.nod.StoreLogin(ctx, session.ID, sealed, 0, session.Ends)
	return err
}

// end removes the login of a session that has ended.
func (l *logins) end(ctx context.Context, session string) {
	l.forget(session)
	if _, revision, err := l.nod.LoadLogin(ctx, session); err == nil && revision > 0 {
		_, _ = l.nod.StoreLogin(ctx, session, "", revision, time.Time{}) // this may fail, because the stored login expires
	}
}

// forget removes what this gateway knows of a session's login.
func (l *logins) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, session)
}

// maxKnown is the number of entries at which the gateway forgets entries that were not used lately.
const maxKnown = 1024

// entry returns the entry of a session's login. If the gateway has none, it adds an empty one.
func (l *logins) entry(session string) *loginEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.known[session]
	if e == nil {
		if len(l.known) >= maxKnown {
			for id, old := range l.known {
				if time.Since(old.used) > l.lasts && old.mu.TryLock() {
					if !old.unsaved {
						delete(l.known, id)
					}
					old.mu.Unlock()
				}
			}
		}
		e = &loginEntry{}
		l.known[session] = e
	}
	e.used = time.Now()
	return e
}

// checkedAt returns the time of the last check of a session's login, by the broker's clock, without
// waiting. It is zero if this gateway does not have the login in memory.
func (l *logins) checkedAt(session string) time.Time {
	l.mu.Lock()
	e := l.known[session]
	l.mu.Unlock()
	if e == nil {
		return time.Time{}
	}
	e.at.Lock()
	defer e.at.Unlock()
	return e.checked
}

// current returns the person of a session, with the login as the issuer last confirmed it. If the last
// check is older than the setting recheck, current asks the issuer again. The error is UNAUTHORIZED if
// the issuer has ended the login, and UNAVAILABLE with the reason if the last check is too old to count.
func (l *logins) current(ctx context.Context, session token) (schemas.From, error) {
	if l == nil {
		return schemas.From{}, errLoginEnded
	}
	e := l.entry(session.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	// A caller that goes away must not cut off the issuer's response, which may have the only refresh
	// token that still works.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
	defer cancel()
	now, err := l.now(ctx)
	if err != nil {
		return schemas.From{}, err
	}
	if e.revision == 0 || now.Sub(e.login.Login.CheckedAt) >= l.recheck {
		if err := l.renew(ctx, e, session, now); err != nil {
			if errors.Is(err, errLoginEnded) {
				l.forget(session.ID)
				return schemas.From{}, err
			}
			e.failed = err
		}
		if now, err = l.now(ctx); err != nil {
			return schemas.From{}, err
		}
	}
	e.at.Lock()
	e.checked = e.login.Login.CheckedAt
	e.at.Unlock()
	if now.Sub(e.login.Login.CheckedAt) >= l.lasts {
		var known *schemas.Error
		if errors.As(e.failed, &known) {
			return schemas.From{}, known
		}
		return schemas.From{}, schemas.Errorf(schemas.CodeUnavailable, "nod cannot ask about your login, and shows and takes nothing until it can: %v", e.failed)
	}
	checked := e.login.Login
	return schemas.From{UserID: e.login.User, Login: &checked}, nil
}

// renew reads the stored login. Unless another gateway has just checked the login, renew asks the issuer
// about it.
func (l *logins) renew(ctx context.Context, e *loginEntry, session token, now time.Time) error {
	if err := l.load(ctx, e, session); err != nil {
		return err
	}
	if now.Sub(e.login.Login.CheckedAt) < l.recheck {
		return nil
	}
	if time.Now().Before(e.askFrom) {
		return e.failed
	}
	client, settings, err := l.issuer(ctx)
	if err != nil {
		return err
	}
	o := settings.OIDC()
	if client == nil || o.Issuer != e.login.Login.Issuer || o.ClientID != e.login.ClientID {
		return errLoginEnded // the settings no longer name the issuer of this login
	}
	if err := l.takeTurn(ctx, e, session, now); err != nil {
		return err
	}
	tokens, person, err := client.Check(ctx, e.login.Tokens)
	if errors.Is(err, issuer.ErrEnded) {
		_, _ = l.nod.StoreLogin(ctx, session.ID, "", e.revision, time.Time{}) // if this fails, the next check refuses the login again
		return errLoginEnded
	}
	e.unsaved = e.unsaved || tokens != e.login.Tokens
	e.login.Tokens = tokens
	if err != nil {
		e.askFrom = time.Now().Add(askAgain)
		if e.unsaved {
			if serr := l.save(ctx, e, session); serr != nil {
				err = fmt.Errorf("%w; and the login could not be stored: %w", err, serr)
			}
		}
		return err
	}
	if o.UserID(person.User) != e.login.User {
		return errLoginEnded // the claim that identifies the person now names another person
	}
	e.login.Login = loginAt(now, o, settings, &person)
	e.login.Turn, e.login.TurnEnds, e.unsaved, e.failed = "", time.Time{}, true, nil
	e.askFrom = time.Time{}
	return l.save(ctx, e, session)
}

// takeTurn stores that only this gateway asks the issuer about a login, unless the gateway has the turn
// already. The error is UNAVAILABLE while another gateway has the turn.
func (l *logins) takeTurn(ctx context.Context, e *loginEntry, session token, now time.Time) error {
	taken := now.Before(e.login.TurnEnds)
	switch {
	case taken && e.login.Turn == l.gateway:
		return nil
	case taken:
		return schemas.Errorf(schemas.CodeUnavailable, "another web inbox is asking about your login: try again")
	}
	e.login.Turn, e.login.TurnEnds = l.gateway, now.Add(turnLasts)
	return l.save(ctx, e, session)
}

// loginAt returns the login of a person for whom the issuer vouched at the time at. It has only those of
// the person's groups that the settings name.
func loginAt(at time.Time, o *schemas.OIDC, settings *schemas.Settings, p *issuer.Person) schemas.Login {
	return schemas.Login{Issuer: o.Issuer, Subject: p.Subject, Name: cutText(p.Name), Groups: settings.Wanted(p.Groups), CheckedAt: at}
}

// maxName is the longest display name that is stored, in characters.
const maxName = 128

func cutText(s string) string {
	if r := []rune(s); len(r) > maxName {
		return string(r[:maxName])
	}
	return s
}

// load reads the stored login. If this gateway has a newer login that it could not store yet, load
// stores that login instead.
func (l *logins) load(ctx context.Context, e *loginEntry, session token) error {
	if e.unsaved {
		return l.save(ctx, e, session)
	}
	sealed, revision, err := l.nod.LoadLogin(ctx, session.ID)
	if err != nil {
		return err
	}
	var stored login
	if sealed == "" || !l.unseal(sealed, session.ID, &stored) || stored.User != session.User {
		return errLoginEnded
	}
	e.login, e.revision = stored, revision
	return nil
}

// save stores the login of an entry. The error is UNAVAILABLE if another gateway has written the login
// since this gateway has read it.
func (l *logins) save(ctx context.Context, e *loginEntry, session token) error {
	revision, err := l.nod.StoreLogin(ctx, session.ID, l.seal(e.login, session.ID), e.revision, session.Ends)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeConflict}) {
		e.unsaved = false // another gateway has written a newer login, or the session has ended
		return fmt.Errorf("store the login: %w", schemas.Errorf(schemas.CodeUnavailable, "another web inbox has just asked about your login: try again"))
	}
	if err != nil {
		return err
	}
	e.revision, e.unsaved = revision, false
	return nil
}
