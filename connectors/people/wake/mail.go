package wake

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/loopback"
)

const (
	// mailTimeout is the time limit for handing one message to a mail server.
	mailTimeout = 15 * time.Second
	// mailPause and mailPauseMax are the shortest and the longest time until the next attempt, if a mail
	// server refuses a message temporarily and names no time.
	mailPause    = time.Minute
	mailPauseMax = 30 * time.Minute
	// maxMailText is the largest text of a mail in bytes.
	maxMailText = 64 << 10
	// maxSubject is the largest number of characters in a subject.
	maxSubject = 100
)

const mailFooter = "The link shows the request, and decides nothing. Log in there to decide. nod reads no replies to this message."

// mailer hands messages to mail servers.
type mailer struct {
	tls     *tls.Config
	refused *people.Memory // the time of the first temporary refusal of each message, by its id
}

// sinceFirst returns the time that has passed since the first temporary refusal of m. It does not know
// refusals from before a restart. For the first refusal itself, it returns 0.
func (s *mailer) sinceFirst(m *message) time.Duration {
	first, err := time.Parse(time.RFC3339Nano, s.refused.Get(m.id))
	if err != nil { // no earlier refusal of m is known
		s.refused.Put(m.id, m.at.Format(time.RFC3339Nano))
		return 0
	}
	return m.at.Sub(first)
}

// send sends m through t's mail server. Its errors are *people.Error or, after ctx has ended,
// ctx's own. If the connection breaks after the server has received the whole text, the message
// may have been sent.
func (s *mailer) send(ctx context.Context, t *target, m *message) error {
	hop, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	step, err := s.try(hop, t, m)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.mailError(t, m, step, err)
}

// try makes one attempt to send m. If it fails, the result step names the SMTP step that failed.
func (s *mailer) try(ctx context.Context, t *target, m *message) (step string, err error) {
	c, step, err := s.connect(ctx, t)
	if err != nil {
		return step, err
	}
	defer func() { _ = c.Close() }() // fails if Quit has already closed the connection
	if t.User != "" {
		if err := c.Auth(smtp.PlainAuth("", t.User, t.secret, t.url.Hostname())); err != nil {
			return stepLogin, err
		}
	}
	if err := c.Mail(t.from.Address); err != nil {
		return "the sender", err
	}
	if err := c.Rcpt(t.to.Address); err != nil {
		return "the recipient", err
	}
	w, err := c.Data()
	if err != nil {
		return "the message", err
	}
	if _, err = w.Write(t.mail(m)); err == nil {
		err = w.Close() // the server's reply, which says whether it accepts the message
	}
	if err != nil {
		return "the message", err
	}
	_ = c.Quit() // an error of Quit does not matter, because the server has accepted the message
	return "", nil
}

// The SMTP steps that fail permanently if the settings are wrong.
const (
	stepLogin = "the login"
	stepTLS   = "STARTTLS"
)

var errNoTLS = errors.New("it offers no encryption: use smtps://, or another port")

// connect opens an encrypted connection. It accepts an unencrypted connection only to a server on this
// machine.
func (s *mailer) connect(ctx context.Context, t *target) (c *smtp.Client, step string, err error) {
	host := t.url.Hostname()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.tls != nil {
		config = s.tls.Clone()
	}
	config.ServerName = host
	var conn net.Conn
	if t.url.Scheme == "smtps" {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", t.hostPort())
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", t.hostPort())
	}
	if err != nil {
		return nil, "the connection", err
	}
	deadline, _ := ctx.Deadline() // ctx always has a deadline, because send sets one
	context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	if err = conn.SetDeadline(deadline); err == nil {
		c, err = smtp.NewClient(conn, host)
	}
	if err != nil {
		_ = conn.Close() // the connection is useless; the caller gets the first error
		return nil, "the connection", err
	}
	_, domain, _ := strings.Cut(t.from.Address, "@")
	if err = c.Hello(domain); err != nil {
		_ = c.Close()
		return nil, "the greeting", err
	}
	if t.url.Scheme == "smtps" {
		return c, "", nil
	}
	offered, _ := c.Extension("STARTTLS")
	switch {
	case offered:
		err = c.StartTLS(config)
	case !loopback.Is(host):
		err = errNoTLS
	}
	if err != nil {
		_ = c.Close()
		return nil, stepTLS, err
	}
	return c, "", nil
}

// mailError returns the error for a failed step. A reply with a code 5xx means that the person is
// unreachable through this target, or that the settings are wrong. After a reply with a code 4xx, the
// worker tries again later.
func (s *mailer) mailError(t *target, m *message, step string, err error) *people.Error {
	var refusal *textproto.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refusal):
	case errors.Is(err, errNoTLS), errors.As(err, &cert), step == stepLogin && !isNetwork(err):
		return &people.Error{Permanent: true, Err: fmt.Errorf("wake %s: %s of its mail server failed: check url, user and secret under connectors.wake.targets: %s", t.Name, step, cause(err))}
	default:
		return &people.Error{Err: fmt.Errorf("wake %s: %s of its mail server failed", t.Name, step)}
	}
	e := &people.Error{Err: fmt.Errorf("wake %s: its mail server refused %s with %d", t.Name, step, refusal.Code)}
	switch {
	case refusal.Code/100 == 4:
		e.After = retryIn(refusal.Msg, s.sinceFirst(m))
	case refusal.Code/100 != 5: // not a code of SMTP: the address is that of another kind of server
	case step == stepLogin, step == stepTLS, refusal.Code == 530:
		e.Permanent = true
		e.Err = fmt.Errorf("%w: check url, user and secret under connectors.wake.targets", e.Err)
	default:
		e.Unreachable = true
	}
	return e
}

func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "EOF")
}

// cause returns a text about err that contains no address.
func cause(err error) string {
	if errors.Is(err, errNoTLS) {
		return err.Error()
	}
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return "its certificate is not trusted"
	}
	return "it does not offer the login that nod uses"
}

// inSeconds matches the waiting time in replies of servers that refuse the first attempt of an
// unknown sender (greylisting), such as "try again in 300 seconds".
var inSeconds = regexp.MustCompile(`\bin (\d{1,5}) ?s(?:ec|econds?)?\b`)

// retryIn returns the time until the next attempt, from the text of a temporary refusal. The parameter
// since is the time that has passed since the first refusal. If the text names no time, each pause is
// twice as long as the previous pause.
func retryIn(text string, since time.Duration) time.Duration {
	if found := inSeconds.FindStringSubmatch(text); found != nil {
		n, _ := strconv.Atoi(found[1]) // Atoi cannot fail, because inSeconds matches at most five digits
		return max(time.Duration(n)*time.Second, time.Second)
	}
	return min(max(since, 0)+mailPause, mailPauseMax)
}

// mail returns the message with its headers. No text of the request can add a header: the subject is
// encoded, and the addresses come from the settings.
func (t *target) mail(m *message) []byte {
	var b bytes.Buffer
	_, domain, _ := strings.Cut(t.from.Address, "@")
	header := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	header("From", t.from.String())
	header("To", t.to.String())
	header("Subject", mime.QEncoding.Encode("utf-8", m.subject()))
	header("Date", m.at.UTC().Format(time.RFC1123Z))
	header("Message-ID", "<"+m.id+"@"+domain+">")
	if m.first != m.id {
		header("In-Reply-To", "<"+m.first+"@"+domain+">")
		header("References", "<"+m.first+"@"+domain+">")
	}
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.text(t, maxMailText) + "\n\n" + m.Link + "\n\n-- \n" + mailFooter + "\n")) // writing to a bytes.Buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// subject returns the subject line: the title, and the first line of the text with the project
// and the risk.
func (m *message) subject() string {
	line, _, _ := strings.Cut(m.Title+" · "+m.Text, "\n")
	if runes := []rune(line); len(runes) > maxSubject {
		line = string(runes[:maxSubject]) + "…"
	}
	return line
}

// parseMailbox parses a mail address of the settings, which may include a name. It accepts only
// ASCII addresses.
func parseMailbox(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("it must be a mail address such as nod@example.com")
	}
	return a, nil
}
