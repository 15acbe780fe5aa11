package discord

import (
	_ "embed"
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "discord"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the Discord connector. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     people.OpenSettings(Name, Open),
	Account:  "Discord bot",
	SendCode: "/nod pair CODE",
	SendFrom: "Write this in Discord, in the conversation with the bot or on a server where the bot is",
	Guide:    "docs/discord.md",
}

// Settings is the section connectors.discord of settings.json. It names a file or an environment
// variable with the token, and never contains it.
type Settings struct {
	BaseURL   string `json:"base_url,omitempty"` // the address of the HTTP API; default https://discord.com/api/v10
	TokenEnv  string `json:"token_env,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
}

func (s *Settings) secret() people.Secret {
	return people.Secret{Setting: "connectors.discord.token", Env: s.TokenEnv, File: s.TokenFile, What: "the bot's token"}
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	return people.CheckSecrets(s.secret())
}

// Open creates the carrier for the bot in the settings. It reads the token from the file or environment
// variable that the settings name.
func Open(s Settings, log *slog.Logger) (*Carrier, error) {
	read, err := people.ReadSecrets(s.secret())
	if err != nil {
		return nil, err
	}
	return New(s.BaseURL, read[0], log)
}
