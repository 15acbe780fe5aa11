package whatsapp

import (
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "whatsapp"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the WhatsApp connector. Package embed lists it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     openSettings,
	Account:  "WhatsApp number",
	Guide:    "docs/whatsapp.md",
}

// Settings is the section connectors.whatsapp of settings.json. It names files or environment variables
// with the access token and the app secret, and never contains them.
type Settings struct {
	BaseURL       string            `json:"base_url,omitempty"` // the address of Meta's Graph API, with its version
	PhoneNumberID string            `json:"phone_number_id"`
	TokenEnv      string            `json:"token_env,omitempty"`
	TokenFile     string            `json:"token_file,omitempty"`
	AppSecretEnv  string            `json:"app_secret_env,omitempty"`
	AppSecretFile string            `json:"app_secret_file,omitempty"`
	Webhook       WebhookSettings   `json:"webhook"`
	Template      *TemplateSettings `json:"template,omitempty"`
}

// WebhookSettings describes the HTTP server that Meta calls. The verify token is a text that the
// user invents, and enters in Meta's console together with the address. Meta sends it when it
// checks the address.
type WebhookSettings struct {
	Listen          string `json:"listen"` // the address to listen on, HOST:PORT; without TLS files, only a loopback address is accepted
	VerifyTokenEnv  string `json:"verify_token_env,omitempty"`
	VerifyTokenFile string `json:"verify_token_file,omitempty"`
	CertFile        string `json:"cert_file,omitempty"`
	KeyFile         string `json:"key_file,omitempty"`
}

// TemplateSettings names a message template that Meta has approved. Its body must contain one
// parameter, and it must have one quick-reply button.
type TemplateSettings struct {
	Name     string `json:"name"`
	Language string `json:"language"`
}

func parseSettings(data json.RawMessage) (s Settings, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return s, schemas.Errorf(schemas.CodeValidation, "connectors.whatsapp: %v", err)
	}
	return s, nil
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := parseSettings(data)
	if err != nil {
		return err
	}
	w := s.Webhook
	switch {
	case (s.TokenEnv == "") == (s.TokenFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.whatsapp: needs token_env or token_file, one of the two, to name the access token")
	case (s.AppSecretEnv == "") == (s.AppSecretFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.whatsapp: needs app_secret_env or app_secret_file, one of the two, to name the app secret")
	case (w.VerifyTokenEnv == "") == (w.VerifyTokenFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.whatsapp.webhook: needs verify_token_env or verify_token_file, one of the two, to name the verify token")
	case (w.CertFile == "") != (w.KeyFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.whatsapp.webhook: needs both cert_file and key_file, or neither and a reverse proxy")
	}
	return nil
}

func openSettings(data json.RawMessage, log *slog.Logger) (people.Carrier, error) {
	s, err := parseSettings(data)
	if err != nil {
		return nil, err
	}
	c, err := Open(s, log)
	if err != nil {
		return nil, err // not c: a nil *Carrier in an interface is not nil
	}
	return c, nil
}

// Open creates the carrier for the number in the settings. It reads the secrets from the files or
// environment variables that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	o := Options{BaseURL: s.BaseURL, PhoneNumberID: s.PhoneNumberID, Listen: s.Webhook.Listen, Log: log}
	if s.Template != nil {
		o.Template = *s.Template
	}
	for _, secret := range []struct {
		to              *string
		name, env, file string
		what            string
	}{
		{&o.Token, "token", s.TokenEnv, s.TokenFile, "the access token"},
		{&o.AppSecret, "app_secret", s.AppSecretEnv, s.AppSecretFile, "the app secret"},
		{&o.VerifyToken, "webhook.verify_token", s.Webhook.VerifyTokenEnv, s.Webhook.VerifyTokenFile, "a text of your own"},
	} {
		var err error
		if *secret.to, err = people.ReadSecret("connectors.whatsapp."+secret.name, secret.env, secret.file, secret.what); err != nil {
			return nil, err
		}
	}
	if s.Webhook.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(s.Webhook.CertFile, s.Webhook.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("connectors.whatsapp.webhook.cert_file and key_file: %w", err)
		}
		o.TLS = &cert
	}
	return New(o)
}
