package discord

import (
	"encoding/json"
	"strings"
)

// The forms of Discord's HTTP API and gateway, version 10:
// https://docs.discord.com/developers/reference.

const (
	flagEphemeral    = 1 << 6  // only the person who pressed or wrote the command sees the message
	flagComponentsV2 = 1 << 15 // the text is in components, and not in content
)

const (
	typeRow    = 1
	typeButton = 2
	typeInput  = 4
	typeText   = 10
	typeLabel  = 18
)

const (
	styleGrey      = 2
	styleGreen     = 3
	styleRed       = 4
	styleLine      = 1
	styleParagraph = 2
)

// outgoing is a message to send, or the new form of a message.
type outgoing struct {
	Content    *string     `json:"content"` // null in a message with flagComponentsV2
	Flags      int         `json:"flags,omitempty"`
	Components []component `json:"components,omitempty"`
	Mentions   mentions    `json:"allowed_mentions"`
	// Nonce identifies a new message. If EnforceNonce is set and the bot has sent a message with this
	// nonce in the last minutes, Discord sends no new message and returns the earlier one.
	Nonce        string `json:"nonce,omitempty"`
	EnforceNonce bool   `json:"enforce_nonce,omitempty"`
}

// mentions says which mentions in a message have an effect. In its zero value, no mention has an effect.
type mentions struct {
	Parse [0]string `json:"parse"`
}

// component is a component of a message or a modal.
type component struct {
	Type       int         `json:"type"`
	CustomID   string      `json:"custom_id,omitempty"`
	Style      int         `json:"style,omitempty"`
	Label      string      `json:"label,omitempty"`
	About      string      `json:"description,omitempty"` // of a label
	Content    string      `json:"content,omitempty"`
	Value      string      `json:"value,omitempty"`
	Required   bool        `json:"required,omitempty"`
	MaxLength  int         `json:"max_length,omitempty"`
	Components []component `json:"components,omitempty"` // of a row
	Component  *component  `json:"component,omitempty"`  // of a label
}

// modal is a dialog with a text field.
type modal struct {
	CustomID   string      `json:"custom_id"`
	Title      string      `json:"title"`
	Components []component `json:"components"`
}

// The types of interactions.
const (
	isCommand = 2
	isPress   = 3
	isModal   = 5
)

const (
	respondMessage  = 4 // send a message
	respondThinking = 5 // tell the person that a message follows
	respondNothing  = 6 // acknowledge a press
	respondUpdate   = 7 // replace the message with the pressed button
	respondModal    = 9 // open a modal
)

type response struct {
	Type int `json:"type"`
	Data any `json:"data,omitempty"`
}

// sent is a message in a reply or in an interaction.
type sent struct {
	ID         string      `json:"id"`
	Channel    string      `json:"channel_id"`
	Flags      int         `json:"flags"`
	Components []component `json:"components"`
}

func (m *sent) text() string {
	var all []string
	for _, c := range m.Components {
		if c.Type == typeText {
			all = append(all, c.Content)
		}
	}
	return strings.Join(all, "\n")
}

// offers reports whether a button with this custom_id is under the message.
func (m *sent) offers(customID string) bool {
	for _, row := range m.Components {
		for _, b := range row.Components {
			if b.Type == typeButton && b.CustomID == customID {
				return true
			}
		}
	}
	return false
}

// interaction is a press of a button, a sent modal or a command.
type interaction struct {
	ID          string `json:"id"`
	Application string `json:"application_id"`
	Type        int    `json:"type"`
	Token       string `json:"token"`
	Channel     string `json:"channel_id"`
	User        user   `json:"user"` // set in a private conversation
	Member      struct {
		User user `json:"user"`
	} `json:"member"` // set on a server
	Message *sent `json:"message"` // the message with the pressed button, also for a modal that the press opened
	Data    struct {
		CustomID   string      `json:"custom_id"`
		Name       string      `json:"name"`
		Components []component `json:"components"`
		Options    []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

type user struct {
	ID string `json:"id"`
}

// person returns the user id of the person who acted, or "".
func (i *interaction) person() string {
	if i.User.ID != "" {
		return i.User.ID
	}
	return i.Member.User.ID
}

// words returns the text in the field of a sent modal.
func (i *interaction) words() string {
	for _, c := range i.Data.Components {
		if c.Component != nil && c.Component.CustomID == wordsField {
			return strings.TrimSpace(c.Component.Value)
		}
	}
	return ""
}

// written returns the text after the name of a command.
func (i *interaction) written() string {
	for _, o := range i.Data.Options {
		var text string
		if o.Name == commandText && json.Unmarshal(o.Value, &text) == nil {
			return text
		}
	}
	return ""
}
