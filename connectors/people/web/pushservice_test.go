package web_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pushService is a browser's push service, as strict as a real push service. It accepts a push only if
// the push is signed with the subscription's key and encrypted for the device (RFC 8030, 8188, 8291 and
// 8292).
type pushService struct {
	server *httptest.Server
	key    *ecdh.PrivateKey // the private key of all devices of this service
	auth   []byte           // the auth secret of all devices of this service (RFC 8291)
	signer string           // nod's public key at the time of the subscription
	gone   map[string]bool  // devices that have unsubscribed
	pushes chan push
}

// push is a push to a device. If the service refused the push, refused is the reason.
type push struct {
	device, text string
	refused      error
}

const pushHost = "fcm.googleapis.com"

func newPushService(t *testing.T) *pushService {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	require.NoError(t, err)
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	s := &pushService{key: key, auth: auth, gone: map[string]bool{}, pushes: make(chan push, 100)}
	s.server = httptest.NewTLSServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// client returns an HTTP client that connects to this service, although the URL names a real push
// service.
func (s *pushService) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != pushHost+":443" {
				return nil, fmt.Errorf("%s is no push service", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, s.server.Listener.Addr().String())
		},
	}}
}

// subscription returns the subscription of a device in the format of a browser.
func (s *pushService) subscription(device string) map[string]any {
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{"endpoint": "https://" + pushHost + "/" + device, "expirationTime": nil, "keys": map[string]string{
		"p256dh": encode(s.key.PublicKey().Bytes()), "auth": encode(s.auth),
	}}
}

func (s *pushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := push{device: strings.TrimPrefix(r.URL.Path, "/")}
	body, err := io.ReadAll(r.Body)
	err = errors.Join(err, s.headers(r), s.signed(r.Header.Get("Authorization")))
	if err == nil {
		p.text, err = s.opened(body)
	}
	p.refused = err
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case s.gone[p.device]:
		w.WriteHeader(http.StatusGone)
	default:
		w.WriteHeader(http.StatusCreated)
	}
	s.pushes <- p
}

func (s *pushService) headers(r *http.Request) error {
	ttl, err := strconv.Atoi(r.Header.Get("TTL"))
	switch {
	case r.Method != http.MethodPost:
		return fmt.Errorf("the method is %s", r.Method)
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return fmt.Errorf("the encoding is %q", r.Header.Get("Content-Encoding"))
	case err != nil || ttl <= 0:
		return fmt.Errorf("the TTL is %q", r.Header.Get("TTL"))
	case r.Header.Get("Urgency") != "high":
		return fmt.Errorf("the urgency is %q", r.Header.Get("Urgency"))
	case r.ContentLength > 4096:
		return errors.New("too long")
	}
	return nil
}

// signed checks the key, the signature and the claims in the Authorization header. The header has the
// form "vapid t=JWT, k=KEY".
func (s *pushService) signed(header string) error {
	token, key, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	if !ok || key != s.signer {
		return fmt.Errorf("the key is %q and not %q", key, s.signer)
	}
	text, signature, _ := cutLast(token, ".")
	sum := sha256.Sum256([]byte(text))
	point, err := base64.RawURLEncoding.DecodeString(key)
	sig, err2 := base64.RawURLEncoding.DecodeString(signature)
	if err = errors.Join(err, err2); err != nil || len(sig) != 64 {
		return fmt.Errorf("no signature: %w", err)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return err
	}
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return errors.New("signed by another key")
	}
	_, claimed, _ := strings.Cut(text, ".")
	data, err := base64.RawURLEncoding.DecodeString(claimed)
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err = errors.Join(err, json.Unmarshal(data, &claims)); err != nil {
		return err
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if claims.Aud != "https://"+pushHost || left <= 0 || left > 24*time.Hour || !strings.HasPrefix(claims.Sub, "https://") {
		return fmt.Errorf("the claims are %s", data)
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// opened decrypts a push as the device does. The body consists of the salt, the record size, the
// sender's key, and one record.
func (s *pushService) opened(body []byte) (string, error) {
	if len(body) < 86 || body[20] != 65 {
		return "", errors.New("no header of aes128gcm")
	}
	salt, size, sender, record := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86], body[86:]
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil || uint32(len(record)) > size {
		return "", errors.Join(err, errors.New("no record"))
	}
	shared, err := s.key.ECDH(public)
	if err != nil {
		return "", err
	}
	info := "WebPush: info\x00" + string(s.key.PublicKey().Bytes()) + string(sender)
	ikm, err := hkdf.Key(sha256.New, shared, s.auth, info, 32)
	key, err2 := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, err3 := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err = errors.Join(err, err2, err3); err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		return "", err
	}
	text, last := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{2})
	if !last {
		return "", errors.New("not the last record")
	}
	return string(text), nil
}
