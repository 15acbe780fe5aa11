package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
)

// How long a link waits to be opened, and how long a session lasts.
const (
	LinkLasts    = 10 * time.Minute
	sessionLasts = 7 * 24 * time.Hour
)

// use is what a pass is good for: one never passes for the other.
type use string

const (
	forLogin   use = "login"
	forSession use = "session"
)

// pass says who somebody is, signed.
type pass struct {
	Use  use       `json:"use"`
	User string    `json:"user"`
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
	Ends time.Time `json:"ends"`
}

// seals signs passes with a key in a file, so that sessions live through restarts
// and whoever may read the key may make a link.
type seals struct {
	dir string // where it is kept where the inbox is
	key []byte
}

const (
	sealDir  = "web"
	keyName  = "key"
	urlName  = "url"
	keyBytes = 32
)

var errNoInbox = errors.New("there is no web inbox yet: start one with nod up, or name the --login-key that it has")

// openSeals reads the key from the file that is named; where none is, it is the
// data directory's own, which is made where it is not there.
func openSeals(dataDir, keyFile string) (seals, error) {
	s := seals{dir: filepath.Join(dataDir, sealDir)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s, fmt.Errorf("make the web inbox's directory: %w", err)
	}
	if s, err := readSeals(dataDir, keyFile); keyFile != "" || !errors.Is(err, errNoInbox) {
		return s, err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	tmp, err := os.CreateTemp(s.dir, ".key-*")
	if err != nil {
		return s, fmt.Errorf("make the web inbox's key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(base64.RawURLEncoding.EncodeToString(key))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return s, fmt.Errorf("write the web inbox's key: %w", err)
	}
	// A link appears whole, and leaves alone a key that came first.
	if err := os.Link(tmp.Name(), filepath.Join(s.dir, keyName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return s, fmt.Errorf("keep the web inbox's key: %w", err)
	}
	return readSeals(dataDir, keyFile)
}

func readSeals(dataDir, keyFile string) (seals, error) {
	s := seals{dir: filepath.Join(dataDir, sealDir)}
	path := cmp.Or(keyFile, filepath.Join(s.dir, keyName))
	text, err := os.ReadFile(path)
	switch {
	case keyFile == "" && errors.Is(err, fs.ErrNotExist):
		return s, errNoInbox
	case err != nil:
		return s, fmt.Errorf("read the key that logins are signed with: %w", err)
	}
	s.key, err = base64.RawURLEncoding.DecodeString(strings.TrimSpace(string(text)))
	switch damaged := err != nil || len(s.key) != keyBytes; {
	case damaged && keyFile != "":
		return s, fmt.Errorf("%s is no key for logins: use a copy of web/key in the data directory of a nod that has opened its inbox", path)
	case damaged:
		return s, fmt.Errorf("%s is damaged: remove it, and nod up makes another; everybody logs in again then", path)
	}
	return s, nil
}

// tell writes where the inbox is, for links that are made later.
func (s seals) tell(url string) error {
	if err := os.WriteFile(filepath.Join(s.dir, urlName), []byte(url), 0o600); err != nil {
		return fmt.Errorf("write where the web inbox is: %w", err)
	}
	return nil
}

func (s seals) where() (string, error) {
	url, err := os.ReadFile(filepath.Join(s.dir, urlName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoInbox
	}
	if err != nil {
		return "", fmt.Errorf("read where the web inbox is: %w", err)
	}
	return string(url), nil
}

func (s seals) link(url, user string, now time.Time) string {
	return people.LoginLink(url, s.sign(forLogin, user, now, LinkLasts))
}

func (s seals) sign(u use, user string, now time.Time, lasts time.Duration) string {
	p := pass{Use: u, User: user, ID: rand.Text(), Made: now, Ends: now.Add(lasts)}
	plain, _ := json.Marshal(p) // strings and times always encode
	return base64.RawURLEncoding.EncodeToString(plain) + "." + base64.RawURLEncoding.EncodeToString(s.mac(plain))
}

func (s seals) mac(plain []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(plain)
	return h.Sum(nil)
}

// open is the pass in a text, which must be for this use and still good.
func (s seals) open(u use, text string, now time.Time) (pass, bool) {
	var p pass
	body, sum, _ := strings.Cut(text, ".")
	plain, err := base64.RawURLEncoding.DecodeString(body)
	mac, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || err2 != nil || !hmac.Equal(mac, s.mac(plain)) || json.Unmarshal(plain, &p) != nil {
		return pass{}, false
	}
	return p, p.Use == u && p.User != "" && now.Before(p.Ends)
}
