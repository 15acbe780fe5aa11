package discord

import (
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	maxLabel = 80  // the largest length of a button's label, in characters
	maxID    = 100 // the largest length of a custom_id, in characters
	// maxButton is the largest length of a button's data within a custom_id, in bytes. The data has no
	// room for the request's session and id, which are in the message.
	maxButton = 64
	perRow    = 5 // the largest number of buttons in a row
	// maxButtons is the largest number of buttons in a message. The buttons, their rows and the text stay
	// below Discord's limit of 40 components.
	maxButtons = 30
)

func offer(p *schemas.Prompt) people.Offer {
	return people.Offer{Prompt: p, Whole: fitsWhole(p), MaxLabel: maxLabel, MaxInput: maxWords}
}

func buttons(p *schemas.Prompt) []component { return rows(p, pressID{}, offer(p).Buttons()) }

// rows arranges buttons in rows. The parameter in is the custom_id of all buttons without the button's
// data.
func rows(p *schemas.Prompt, in pressID, all []people.Button) (blocks []component) {
	for i, b := range all[:min(len(all), maxButtons)] {
		if i%perRow == 0 {
			blocks = append(blocks, component{Type: typeRow})
		}
		in.button = people.ButtonFor(p, b.Action)
		row := &blocks[len(blocks)-1]
		row.Components = append(row.Components, component{Type: typeButton, Style: styleOf(b), Label: b.Label, CustomID: in.String()})
	}
	return blocks
}

func styleOf(b people.Button) int {
	switch b.Action {
	case people.ActAllow:
		return styleGreen
	case people.ActDeny:
		return styleRed
	}
	return styleGrey
}

// The kinds of a pressID for buttons. The kinds for modals are those of people.Dialog.
const (
	inMessage = ""     // the button is under the message of the prompt
	inMenu    = "more" // the button is in the menu with the other answers
)

// pressID is the custom_id of a button or a modal. A button or modal that is not under the message of the
// prompt also names that message.
type pressID struct {
	kind   string
	origin string // the id of the message of the prompt
	repeat bool   // the prompt may be in the chat twice
	button people.ButtonData
}

func (id pressID) String() string {
	data := id.button.Text(maxButton)
	if id.kind == inMessage {
		return data
	}
	origin := id.origin
	if id.repeat {
		origin += "r"
	}
	return id.kind + "/" + origin + "/" + data
}

// readPressID parses a custom_id. ok is false for every text that String would not return.
func readPressID(text string) (id pressID, ok bool) {
	data := text
	if kind, rest, found := strings.Cut(text, "/"); found {
		id.kind = kind
		id.origin, data, _ = strings.Cut(rest, "/")
		id.origin, id.repeat = strings.CutSuffix(id.origin, "r")
		if !isID(id.origin) || kind == inMessage {
			return id, false
		}
	}
	id.button, ok = people.ReadButton(data, maxButton)
	return id, ok && id.String() == text
}
