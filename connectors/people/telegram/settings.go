package telegram

import (
	_ "embed"
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "telegram"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the Telegram connector. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     people.OpenSettings(Name, Open),
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

func (s *Settings) token() people.Secret {
	return people.Secret{Setting: "connectors.telegram.token", Env: s.TokenEnv, File: s.TokenFile, What: "the bot's token"}
}

func (w *WebhookSettings) secret() people.Secret {
	return people.Secret{Setting: "connectors.telegram.webhook.secret", Env: w.SecretEnv, File: w.SecretFile, What: "a secret of your own, by which nod recognises Telegram"}
}

func (w *WebhookSettings) keyPair() people.KeyPair {
	return people.KeyPair{Setting: "connectors.telegram.webhook", CertFile: w.CertFile, KeyFile: w.KeyFile}
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	if s.Webhook == nil {
		return people.CheckSecrets(s.token())
	}
	if err := people.CheckSecrets(s.token(), s.Webhook.secret()); err != nil {
		return err
	}
	return s.Webhook.keyPair().Check()
}

// Open creates the carrier for the bot in the settings. It reads the token, and the webhook's secret,
// from the files or environment variables that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	secrets, err := people.ReadSecrets(s.token())
	if err != nil {
		return nil, err
	}
	c, err := New(s.BaseURL, secrets[0], log)
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
	secrets, err := people.ReadSecrets(s.secret())
	if err != nil {
		return w, err
	}
	cert, err := s.keyPair().Read()
	return Webhook{Listen: s.Listen, PublicURL: s.PublicURL, Secret: secrets[0], TLS: cert}, err
}
