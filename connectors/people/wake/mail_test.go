package wake_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/wake"
	"github.com/nodbus/nod/schemas"
)

const password = "hunter2secretsecret"

// mailServer is an SMTP server (github.com/emersion/go-smtp) with STARTTLS and a login. It refuses lines
// of more than 1,000 bytes, as SMTP demands, and text before the login.
type mailServer struct {
	t     *testing.T
	roots *x509.CertPool
	addr  string

	mu       sync.Mutex
	got      []received
	breaking []peopletest.Fault
	refusal  *smtp.SMTPError // the reply to each recipient, if not nil
}

func newMailServer(t *testing.T) *mailServer {
	certs := httptest.NewTLSServer(nil) // this server is never called; it only has a certificate for 127.0.0.1
	t.Cleanup(certs.Close)
	m := &mailServer{t: t, roots: x509.NewCertPool()}
	m.roots.AddCert(certs.Certificate())
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{m: m, conn: c}, nil }))
	s.TLSConfig = &tls.Config{Certificates: certs.TLS.Certificates}
	s.Domain, s.MaxLineLength, s.ErrorLog = "mail.example.com", 1000, silent{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m.addr = l.Addr().String()
	go func() { _ = s.Serve(l) }() // Serve returns after Close
	t.Cleanup(func() { _ = s.Close() })
	return m
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// session is one connection.
type session struct {
	m        *mailServer
	conn     *smtp.Conn
	loggedIn bool
	to       string
}

func (s *session) AuthMechanisms() []string {
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if fault, breaks := s.m.fault(peopletest.Locked); breaks && fault == peopletest.Locked || user != "nod" || pass != password {
			return &smtp.SMTPError{Code: 535, Message: "authentication failed for " + pass}
		}
		s.loggedIn = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.loggedIn {
		return &smtp.SMTPError{Code: 530, Message: "log in first"}
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	fault, _ := s.m.fault(peopletest.Slow, peopletest.Broken, peopletest.Cut, peopletest.Blocked)
	switch fault {
	case peopletest.Slow:
		return &smtp.SMTPError{Code: 451, Message: "greylisted, try again in 7 seconds"}
	case peopletest.Blocked:
		return &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
	case peopletest.Broken, peopletest.Cut:
		_ = s.conn.Conn().Close()
	}
	if s.m.refusal != nil {
		return s.m.refusal
	}
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: err.Error()}
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: err.Error()}
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: err.Error()}
	}
	user, _, _ := strings.Cut(s.to, "@")
	s.m.mu.Lock()
	s.m.got = append(s.m.got, received{user: user, header: map[string][]string(m.Header), body: raw, text: subject + "\n" + strings.ReplaceAll(string(text), "\r\n", "\n")})
	s.m.mu.Unlock()
	if fault, _ := s.m.fault(peopletest.Lost); fault == peopletest.Lost {
		_ = s.conn.Conn().Close()
	}
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// fault returns the next planned fault if it is one of these faults. Otherwise it returns -1.
func (m *mailServer) fault(of ...peopletest.Fault) (peopletest.Fault, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range of {
		if len(m.breaking) > 0 && m.breaking[0] == f {
			m.breaking = m.breaking[1:]
			return f, true
		}
	}
	return -1, false
}

func (m *mailServer) target(user string) wake.Target {
	file := filepath.Join(m.t.TempDir(), "password")
	require.NoError(m.t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	return wake.Target{Name: user, Kind: wake.Mail, URL: "smtp://" + m.addr, From: "nod <nod@example.com>", To: user + "@example.com", User: "nod", SecretFile: file}
}

func (m *mailServer) open(log *slog.Logger, targets ...wake.Target) *wake.Carrier {
	c, err := wake.New(wake.Settings{WebURL: inbox, Targets: targets}, log)
	require.NoError(m.t, err)
	c.Trust(&tls.Config{RootCAs: m.roots, MinVersion: tls.VersionTLS12})
	return c
}

func (m *mailServer) Open(log *slog.Logger) people.Carrier {
	return m.open(log, m.target(peopletest.Ann), m.target(peopletest.Bob), m.target(peopletest.Mallory))
}

func (m *mailServer) Read(user string) (all []peopletest.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, got := range m.got {
		if got.user == user {
			all = append(all, peopletest.Message{ID: strconv.Itoa(i), Text: got.text})
		}
	}
	return all
}

func (m *mailServer) Does(string, peopletest.Act) bool { return false }

func (m *mailServer) Break(fault peopletest.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breaking = append(m.breaking, fault)
}

func TestTheSuiteByMail(t *testing.T) {
	peopletest.Run(t, peopletest.Features{Outgoing: true}, func(t *testing.T) peopletest.Rig { return newMailServer(t) }, password)
}

// The name of a hostile project adds no header to a mail, and long and non-ASCII lines arrive unchanged.
// The outcome is in the thread of the first mail.
func TestMailsAreWellFormed(t *testing.T) {
	m := newMailServer(t)
	target := m.target(peopletest.Ann)
	target.Payload = true
	c := m.open(slog.New(slog.DiscardHandler), target)
	p := asks("echo " + strings.Repeat("ü", 3000) + "\n.\nQUIT")
	p.Request.Project = "/home/ann/app\r\nBcc: eve@example.com\r\n\r\nhello ü"
	_, err := c.Prompt(t.Context(), p)
	require.NoError(t, err)
	first := m.got[0]
	require.Contains(t, first.text, strings.Repeat("ü", 3000))
	require.NotContains(t, first.header, "Bcc")
	require.Len(t, first.header, 9)
	require.Equal(t, []string{"auto-generated"}, first.header["Auto-Submitted"])
	for line := range strings.SplitSeq(string(first.body), "\r\n") {
		require.LessOrEqual(t, len(line), 998)
		require.NotContains(t, line, "\n")
	}
	p.Decision = &schemas.Decision{Outcome: schemas.Denied}
	require.NoError(t, c.Settle(t.Context(), "", p))
	require.Equal(t, first.header["Message-Id"], m.got[1].header["In-Reply-To"])
	require.NotEqual(t, first.header["Message-Id"], m.got[1].header["Message-Id"])
}

// If a mail server refuses a message permanently, the person is unreachable at once. If the server
// refuses temporarily, the worker tries again.
func TestMailServersRefuse(t *testing.T) {
	m := newMailServer(t)
	c := m.open(slog.New(slog.DiscardHandler), m.target(peopletest.Ann))
	for code, want := range map[int]people.Error{
		550: {Unreachable: true}, 553: {Unreachable: true}, 450: {After: time.Minute}, 452: {After: time.Minute}, 530: {Permanent: true},
	} {
		m.refusal = &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: "no"}
		p := asks("make")
		p.PendingID = fmt.Sprint(code)
		_, err := c.Prompt(t.Context(), p)
		require.Equal(t, want, asError(t, err), code)
	}
	m.refusal = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.NoEnhancedCode, Message: "later"}
	p := asks("make")
	p.PendingID, p.Request.CreatedAt = "p2", time.Now().Add(-time.Hour) // the agent's time does not change the pauses
	for range 2 {
		_, err := c.Prompt(t.Context(), p)
		require.InDelta(t, time.Minute, asError(t, err).After, float64(10*time.Second))
	}
	for since, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Minute, 0: time.Minute, time.Minute: 2 * time.Minute, 3 * time.Minute: 4 * time.Minute, 7 * time.Minute: 8 * time.Minute, 5 * time.Hour: 30 * time.Minute,
	} {
		require.Equal(t, want, wake.RetryIn("later", since), "each pause is twice as long as the one before")
	}
	require.Empty(t, m.got)
}

// nod sends neither a password nor a message to another machine if the connection is unencrypted
// or the server's certificate is not trusted.
func TestMailsAreEncrypted(t *testing.T) {
	m := newMailServer(t)
	c := m.open(slog.New(slog.DiscardHandler), m.target(peopletest.Ann))
	c.Trust(nil)
	_, err := c.Prompt(t.Context(), asks("make"))
	require.Equal(t, people.Error{Permanent: true}, asError(t, err))
	require.ErrorContains(t, err, "certificate is not trusted")
	require.Empty(t, m.got)
	var missing *people.Error
	require.True(t, errors.As(err, &missing))
	for _, bad := range []string{"http://mail.example.com", "smtp://nod:pass@mail.example.com", "smtps://mail.example.com/x"} {
		target := m.target(peopletest.Ann)
		target.URL = bad
		_, err := wake.New(wake.Settings{WebURL: inbox, Targets: []wake.Target{target}}, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "it must be smtps://HOST or smtp://HOST", bad)
	}
}
