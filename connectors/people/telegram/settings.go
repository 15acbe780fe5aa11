package telegram

import (
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "telegram"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the Telegram connector. Package embed lists it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     openSettings,
	Account:  "Telegram bot",
	Guide:    "docs/phone.md",
}

// Settings is the section connectors.telegram of settings.json. It names a file or an environment
// variable with the bot's token, and never contains the token.
type Settings struct {
	BaseURL   string `json:"base_url,omitempty"` // the address of the Bot API's server; default https://api.telegram.org
	TokenEnv  string `json:"token_env,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// Webhook is nil if nod polls. Polling needs no public address.
	Webhook *WebhookSettings `json:"webhook,omitempty"`
}

// WebhookSettings makes nod receive updates through a webhook. Telegram sends a secret with each call.
// The settings name a file or an environment variable with that secret, and never contain it.
type WebhookSettings struct {
	Listen     string `json:"listen"`     // the address to listen on, HOST:PORT; without TLS files, only a loopback address is accepted
	PublicURL  string `json:"public_url"` // the https:// address that Telegram calls
	SecretEnv  string `json:"secret_env,omitempty"`
	SecretFile string `json:"secret_file,omitempty"`
	CertFile   string `json:"cert_file,omitempty"`
	KeyFile    string `json:"key_file,omitempty"`
}

func parseSettings(data json.RawMessage) (s Settings, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return s, schemas.Errorf(schemas.CodeValidation, "connectors.telegram: %v", err)
	}
	return s, nil
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := parseSettings(data)
	if err != nil {
		return err
	}
	switch w := s.Webhook; {
	case (s.TokenEnv == "") == (s.TokenFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.telegram: needs token_env or token_file, one of the two, to name the bot's token")
	case w == nil:
	case (w.SecretEnv == "") == (w.SecretFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.telegram.webhook: needs secret_env or secret_file, one of the two, to name the secret by which nod recognises Telegram")
	case (w.CertFile == "") != (w.KeyFile == ""):
		return schemas.Errorf(schemas.CodeValidation, "connectors.telegram.webhook: needs both cert_file and key_file, or neither and a reverse proxy")
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

// Open creates the carrier for the bot in the settings. It reads the token, and the webhook's secret,
// from the files or environment variables that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	token, err := people.ReadSecret("connectors.telegram.token", s.TokenEnv, s.TokenFile, "the bot's token")
	if err != nil {
		return nil, err
	}
	c, err := New(s.BaseURL, token, log)
	if err != nil || s.Webhook == nil {
		return c, err
	}
	hook, err := readWebhook(s.Webhook)
	if err != nil {
		return nil, err
	}
	if err := c.UseWebhook(hook); err != nil {
		return nil, err
	}
	return c, nil
}

// readWebhook returns the Webhook in the settings. It reads the webhook's secret and certificate.
func readWebhook(s *WebhookSettings) (w Webhook, err error) {
	w = Webhook{Listen: s.Listen, PublicURL: s.PublicURL}
	w.Secret, err = people.ReadSecret("connectors.telegram.webhook.secret", s.SecretEnv, s.SecretFile, "a secret of your own")
	if err != nil || s.CertFile == "" {
		return w, err
	}
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return w, fmt.Errorf("connectors.telegram.webhook.cert_file and key_file: %w", err)
	}
	w.TLS = &cert
	return w, nil
}
