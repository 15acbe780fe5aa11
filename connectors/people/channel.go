package people

import (
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/schemas"
)

// Channel describes a people connector to the rest of nod. Package embed registers each Channel in one
// line. settings.json, nod setup, nod doctor, nod pair and nod connector then accept the connector's
// name.
type Channel struct {
	// Settings contains the channel's name, and describes the section connectors.NAME of
	// settings.json.
	Settings schemas.ChannelSettings
	// Open creates a carrier from its settings. It reads the secrets that the settings name, and does
	// not connect to any server. An error is one line that names the setting.
	//
	// If the Carrier has a method Check(context.Context) error, nod doctor calls it to test the
	// connection to the channel.
	Open func(settings json.RawMessage, log *slog.Logger) (Carrier, error)
	// Account is the kind of account that the channel needs, such as "Telegram bot".
	Account string
	// SendCode is the line by which a person sends a pairing code from the channel. The word CODE in the
	// line stands for the code. If SendCode is empty, the person sends /start CODE to the bot.
	SendCode string
	// SendFrom says where the person writes SendCode, as the beginning of a sentence.
	SendFrom string
	// Guide is the page of nod's documentation about this channel.
	Guide string
}

func (c Channel) Name() string { return c.Settings.Name }
