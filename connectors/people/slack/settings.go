package slack

import (
	_ "embed"
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "slack"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the Slack connector. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     people.OpenSettings(Name, Open),
	Account:  "Slack app",
	SendCode: "/nod pair CODE",
	SendFrom: "Write this in Slack, in any conversation",
	Guide:    "docs/slack.md",
}

// Settings is the section connectors.slack of settings.json. It names files or environment variables
// with the tokens, and never contains them.
type Settings struct {
	BaseURL      string `json:"base_url,omitempty"` // the address of the Web API's methods; default https://slack.com/api
	BotTokenEnv  string `json:"bot_token_env,omitempty"`
	BotTokenFile string `json:"bot_token_file,omitempty"`
	AppTokenEnv  string `json:"app_token_env,omitempty"`
	AppTokenFile string `json:"app_token_file,omitempty"`
}

func (s *Settings) secrets() []people.Secret {
	return []people.Secret{
		{Setting: "connectors.slack.bot_token", Env: s.BotTokenEnv, File: s.BotTokenFile, What: "the bot token"},
		{Setting: "connectors.slack.app_token", Env: s.AppTokenEnv, File: s.AppTokenFile, What: "the app token"},
	}
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	return people.CheckSecrets(s.secrets()...)
}

// Open creates the carrier for the app in the settings. It reads the tokens from the files or environment
// variables that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	tokens, err := people.ReadSecrets(s.secrets()...)
	if err != nil {
		return nil, err
	}
	return New(s.BaseURL, tokens[0], tokens[1], log)
}
