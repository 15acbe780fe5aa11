package people

import (
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/schemas"
)

// Channel describes a people connector to the rest of nod. One line in package embed
// registers a connector by its Channel; settings.json, nod setup, nod doctor, nod pair and
// nod connector then accept the connector's name.
type Channel struct {
	// Settings holds the channel's name and describes its section connectors.NAME in
	// settings.json.
	Settings schemas.ChannelSettings
	// Open makes a carrier from its settings. It reads the secrets that the settings name and
	// calls no server. An error is one line that names the setting.
	//
	// If the Carrier has a method Check(context.Context) error, nod doctor calls it to find
	// out whether the channel can be reached.
	Open func(settings json.RawMessage, log *slog.Logger) (Carrier, error)
	// Account is the account that the channel needs, such as "Telegram bot".
	Account string
	// Guide is the page of the documentation that explains how to set up the channel.
	Guide string
}

// Name returns the name of the channel's connector.
func (c Channel) Name() string { return c.Settings.Name }
