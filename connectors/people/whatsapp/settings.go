package whatsapp

import (
	_ "embed"
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "whatsapp"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the WhatsApp connector. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     people.OpenSettings(Name, Open),
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

// WebhookSettings describes the HTTP server that Meta calls. The verify token is a text that the user
// invents, and enters in Meta's console together with the address. Meta sends the token when it checks
// the address.
type WebhookSettings struct {
	Listen          string `json:"listen"` // the address to listen on, HOST:PORT; without TLS files, only a loopback address is accepted
	VerifyTokenEnv  string `json:"verify_token_env,omitempty"`
	VerifyTokenFile string `json:"verify_token_file,omitempty"`
	CertFile        string `json:"cert_file,omitempty"`
	KeyFile         string `json:"key_file,omitempty"`
}

// TemplateSettings names a message template that Meta has approved. The template's body must contain one
// parameter, and the template must have one quick-reply button.
type TemplateSettings struct {
	Name     string `json:"name"`
	Language string `json:"language"`
}

// secrets returns the access token, the app secret and the verify token.
func (s *Settings) secrets() []people.Secret {
	w := &s.Webhook
	return []people.Secret{
		{Setting: "connectors.whatsapp.token", Env: s.TokenEnv, File: s.TokenFile, What: "the access token"},
		{Setting: "connectors.whatsapp.app_secret", Env: s.AppSecretEnv, File: s.AppSecretFile, What: "the app secret"},
		{Setting: "connectors.whatsapp.webhook.verify_token", Env: w.VerifyTokenEnv, File: w.VerifyTokenFile, What: "the verify token, a text of your own"},
	}
}

func (w *WebhookSettings) keyPair() people.KeyPair {
	return people.KeyPair{Setting: "connectors.whatsapp.webhook", CertFile: w.CertFile, KeyFile: w.KeyFile}
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	if err := people.CheckSecrets(s.secrets()...); err != nil {
		return err
	}
	return s.Webhook.keyPair().Check()
}

// Open creates the carrier for the phone number in the settings. It reads the secrets from the files or
// environment variables that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	secrets, err := people.ReadSecrets(s.secrets()...)
	if err != nil {
		return nil, err
	}
	cert, err := s.Webhook.keyPair().Read()
	if err != nil {
		return nil, err
	}
	o := Options{
		BaseURL: s.BaseURL, PhoneNumberID: s.PhoneNumberID, Token: secrets[0], AppSecret: secrets[1],
		Listen: s.Webhook.Listen, VerifyToken: secrets[2], TLS: cert, Log: log,
	}
	if s.Template != nil {
		o.Template = *s.Template
	}
	return New(o)
}
