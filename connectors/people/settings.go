package people

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ParseSettings decodes the section connectors.NAME of settings.json, which has already been
// checked against its schema.
func ParseSettings[S any](name string, data json.RawMessage) (s S, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return s, schemas.Errorf(schemas.CodeValidation, "connectors.%s: %v", name, err)
	}
	return s, nil
}

// OpenSettings returns a function for the field Open of a Channel. The function decodes the settings and
// then calls the function open.
func OpenSettings[S any, C Carrier](name string, open func(S, *slog.Logger) (C, error)) func(json.RawMessage, *slog.Logger) (Carrier, error) {
	return func(data json.RawMessage, log *slog.Logger) (Carrier, error) {
		s, err := ParseSettings[S](name, data)
		if err != nil {
			return nil, err
		}
		c, err := open(s, log)
		if err != nil {
			return nil, err // return nil instead of c: an interface with a nil pointer is not nil
		}
		return c, nil
	}
}

// Secret describes a secret of a channel. The settings name it by an environment variable or by a
// file.
type Secret struct {
	Setting   string // the path of the setting without its ending _env or _file
	Env, File string
	What      string // such as "the bot's token"
}

// CheckSecrets returns an error for the first secret that names neither an environment variable nor a
// file, or names both.
func CheckSecrets(all ...Secret) error {
	for _, s := range all {
		if (s.Env == "") != (s.File == "") {
			continue
		}
		at := strings.LastIndexByte(s.Setting, '.')
		name := s.Setting[at+1:]
		return schemas.Errorf(schemas.CodeValidation, "%s: needs %s_env or %s_file, one of the two, to name %s", s.Setting[:at], name, name, s.What)
	}
	return nil
}

// ReadSecrets reads secrets with ReadSecret, in their order.
func ReadSecrets(all ...Secret) ([]string, error) {
	var read []string
	for _, s := range all {
		text, err := ReadSecret(s.Setting, s.Env, s.File, s.What)
		if err != nil {
			return nil, err
		}
		read = append(read, text)
	}
	return read, nil
}

// KeyPair names the files of a TLS certificate and its key. Setting is the path of the section of the
// settings that contains the two names. Both names are empty if nod itself does not speak TLS.
type KeyPair struct {
	Setting           string
	CertFile, KeyFile string
}

// Check returns an error if only one of the two files is set.
func (k KeyPair) Check() error {
	if (k.CertFile == "") != (k.KeyFile == "") {
		return schemas.Errorf(schemas.CodeValidation, "%s: needs both cert_file and key_file, or neither and a reverse proxy", k.Setting)
	}
	return nil
}

// Read reads the certificate and its key. It returns nil if no files are set.
func (k KeyPair) Read() (*tls.Certificate, error) {
	if k.CertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(k.CertFile, k.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s.cert_file and key_file: %w", k.Setting, err)
	}
	return &cert, nil
}
