package people

import (
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/schemas"
)

// Channel is everything that nod needs to know of a people connector. A connector is
// registered by one line in package embed, which adds its Channel; settings.json, nod
// setup, nod doctor, nod pair and nod connector then know it.
type Channel struct {
	// Settings describe connectors.NAME in settings.json, and name the channel.
	Settings schemas.ChannelSettings
	// Open makes the carrier that the settings describe. It reads the secrets that they
	// name and calls no server. Its errors are one line that names the setting.
	//
	// A Carrier with a method Check(context.Context) error has nod doctor call it, to
	// find out whether the channel can be reached.
	Open func(settings json.RawMessage, log *slog.Logger) (Carrier, error)
	// Account is the account that the channel needs, such as "Telegram bot".
	Account string
	// Guide is the page of the documentation that sets the channel up.
	Guide string
}

// Name is the name of the channel's connector.
func (c Channel) Name() string { return c.Settings.Name }
