package bus

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/loopback"
)

// tlsName is the name in the certificate of every embedded server, whatever the server's address is. The
// same name serves all servers, because each server has its own certificate authority.
const tlsName = "nod"

const tlsWithin = 5 * time.Second

// certLasts is how long a certificate is valid. No data directory stays in use longer.
const certLasts = 20 * 365 * 24 * time.Hour

func caPath(dataDir string) string { return filepath.Join(dataDir, "tls", "ca.pem") }

// speaksTLS reports whether the server of a data directory uses TLS. It does if another machine was
// invited, or if other machines could reach the address in the parameter host.
func speaksTLS(dataDir, host string) bool {
	_, err := os.Stat(caPath(dataDir))
	return !loopback.Is(host) || !errors.Is(err, fs.ErrNotExist)
}

// authority returns the data directory's own certificate authority, and makes a missing one. One file has
// the authority's certificate and key.
func authority(dataDir string) (tls.Certificate, error) {
	path := caPath(dataDir)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := newAuthority(path); err != nil {
			return tls.Certificate{}, fmt.Errorf("make a certificate authority: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate authority: %w", err)
	}
	ca, err := tls.X509KeyPair(text, text)
	if err != nil { // the error leaves out the library's error, which may contain the key
		return ca, fmt.Errorf("%s is damaged: remove it, so that nod makes another, and invite the other machines again", path)
	}
	return ca, nil
}

// newAuthority makes a certificate authority and stores it, unless another process has just stored one.
func newAuthority(path string) error {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nod " + rand.Text()[:8]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certLasts),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, der, err := certify(template, nil)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = errors.Join(
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err = roles.WriteNew(path, text.Bytes())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// certify makes a key and a certificate for it. The authority ca signs the certificate; if the
// parameter ca is nil, the certificate is self-signed.
func certify(template *x509.Certificate, ca *tls.Certificate) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return key, der, err
}

// serverTLS returns the TLS configuration of an embedded server. It makes a new certificate for each
// start.
func serverTLS(dataDir string) (*tls.Config, error) {
	ca, err := authority(dataDir)
	if err != nil {
		return nil, err
	}
	// nod's clients check only tlsName. The other names are for NATS's own tools on this
	// machine.
	key, der, err := certify(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: tlsName},
		DNSNames: []string{tlsName, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: ca.Leaf.NotBefore, NotAfter: ca.Leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &ca)
	if err != nil {
		return nil, fmt.Errorf("make the server's certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}

// trustAuthority makes a client trust the server's own authority. The client reads the authority's
// certificate for each connection, because a restarted server may have another authority.
func trustAuthority(authority func() ([]byte, error)) nats.Option {
	return func(o *nats.Options) error {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: tlsName}
		o.RootCAsCB = func() (*x509.CertPool, error) {
			text, err := authority()
			if err != nil {
				return nil, fmt.Errorf("read the certificate of the server's authority: %w", err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(text) {
				return nil, errors.New("there is no certificate of the server's authority")
			}
			return pool, nil
		}
		return nil
	}
}
