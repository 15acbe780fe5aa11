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

// The lifetimes of a login link and of a session.
const (
	LinkLasts    = 10 * time.Minute
	sessionLasts = 7 * 24 * time.Hour
)

// tokenUse is the purpose of a token. A token is valid only for its purpose.
type tokenUse string

const (
	forLogin   tokenUse = "login"
	forSession tokenUse = "session"
)

// token is the content of a login link or of a session's cookie, both of which are signed.
type token struct {
	Use  tokenUse  `json:"use"`
	User string    `json:"user"`
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
	Ends time.Time `json:"ends"`
}

// tokenSigner signs tokens with a key from a file, so that sessions stay valid after a restart. A
// process that can read the key can make login links.
type tokenSigner struct {
	dir  string // the directory with the file of the inbox's URL, and with the key unless the settings name another file
	path string // the path of the file with the key
	key  []byte
}

const (
	webDir   = "web"
	keyName  = "key"
	urlName  = "url"
	keyBytes = 32
)

var errNoInbox = errors.New("there is no web inbox yet: start one with nod up, or name the --login-key that it has")

// openSigner reads the key from keyFile. If keyFile is empty, it reads the key in the data directory, and
// creates a missing key.
func openSigner(dataDir, keyFile string) (tokenSigner, error) {
	s := tokenSigner{dir: filepath.Join(dataDir, webDir)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s, fmt.Errorf("make the web inbox's directory: %w", err)
	}
	if s, err := readSigner(dataDir, keyFile); keyFile != "" || !errors.Is(err, errNoInbox) {
		return s, err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // Read never fails
	tmp, err := os.CreateTemp(s.dir, ".key-*")
	if err != nil {
		return s, fmt.Errorf("make the web inbox's key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(base64.RawURLEncoding.EncodeToString(key))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return s, fmt.Errorf("write the web inbox's key: %w", err)
	}
	// os.Link makes the complete file appear under its name at once, so no process can read a
	// part of it. If another process has written a key first, os.Link fails and that key stays.
	if err := os.Link(tmp.Name(), filepath.Join(s.dir, keyName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return s, fmt.Errorf("store the web inbox's key: %w", err)
	}
	return readSigner(dataDir, keyFile)
}

func readSigner(dataDir, keyFile string) (tokenSigner, error) {
	s := tokenSigner{dir: filepath.Join(dataDir, webDir)}
	s.path = cmp.Or(keyFile, filepath.Join(s.dir, keyName))
	text, err := os.ReadFile(s.path)
	switch {
	case keyFile == "" && errors.Is(err, fs.ErrNotExist):
		return s, errNoInbox
	case err != nil:
		return s, fmt.Errorf("read the key that logins are signed with: %w", err)
	}
	s.key, err = base64.RawURLEncoding.DecodeString(strings.TrimSpace(string(text)))
	switch damaged := err != nil || len(s.key) != keyBytes; {
	case damaged && keyFile != "":
		return s, fmt.Errorf("%s is not a key for logins: use a copy of web/key in the data directory of a nod that has opened its inbox", s.path)
	case damaged:
		return s, fmt.Errorf("%s is damaged: remove it, and nod up makes another; all users then log in again", s.path)
	}
	return s, nil
}

// writeURL stores the inbox's URL. Login links that are made later use it.
func (s tokenSigner) writeURL(url string) error {
	if err := os.WriteFile(filepath.Join(s.dir, urlName), []byte(url), 0o600); err != nil {
		return fmt.Errorf("store the web inbox's address: %w", err)
	}
	return nil
}

func (s tokenSigner) readURL() (string, error) {
	url, err := os.ReadFile(filepath.Join(s.dir, urlName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoInbox
	}
	if err != nil {
		return "", fmt.Errorf("read the web inbox's address: %w", err)
	}
	return string(url), nil
}

func (s tokenSigner) loginLink(url, user string, now time.Time) string {
	return people.LoginLink(url, s.sign(forLogin, user, now, LinkLasts))
}

func (s tokenSigner) sign(u tokenUse, user string, now time.Time, lasts time.Duration) string {
	p := token{Use: u, User: user, ID: rand.Text(), Made: now, Ends: now.Add(lasts)}
	plain, _ := json.Marshal(p) // Marshal never fails for strings and times
	return base64.RawURLEncoding.EncodeToString(plain) + "." + base64.RawURLEncoding.EncodeToString(s.mac(plain))
}

func (s tokenSigner) mac(plain []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(plain)
	return h.Sum(nil)
}

// verify decodes a token. It reports whether the signature and the purpose are right and the token has
// not expired.
func (s tokenSigner) verify(u tokenUse, text string, now time.Time) (token, bool) {
	var p token
	body, sum, _ := strings.Cut(text, ".")
	plain, err := base64.RawURLEncoding.DecodeString(body)
	mac, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || err2 != nil || !hmac.Equal(mac, s.mac(plain)) || json.Unmarshal(plain, &p) != nil {
		return token{}, false
	}
	return p, p.Use == u && p.User != "" && now.Before(p.Ends)
}
