package slack

// Types of Slack's Web API and of Socket Mode, with only the fields that nod uses.

// outgoing is a message to send or, if it has a TS, an edit of that message.
type outgoing struct {
	Channel  string  `json:"channel"`
	TS       string  `json:"ts,omitempty"`
	ThreadTS string  `json:"thread_ts,omitempty"` // the message whose thread gets this one
	User     string  `json:"user,omitempty"`      // the only person who sees an ephemeral message
	Text     string  `json:"text"`                // shown in notifications; Slack reads markup in it
	Blocks   []block `json:"blocks"`
	Parse    string  `json:"parse,omitempty"` // "none": Slack makes no links of names
	// UnfurlLinks and UnfurlMedia are false in messages to send, so that Slack fetches no address
	// for a preview. chat.update has no such fields.
	UnfurlLinks *bool `json:"unfurl_links,omitempty"`
	UnfurlMedia *bool `json:"unfurl_media,omitempty"`
}

// block is a block of Slack's Block Kit, of the type rich_text, section, actions or input. Each
// type uses some of the fields.
type block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id,omitempty"`
	Text     *text     `json:"text,omitempty"`     // for section
	Elements []element `json:"elements,omitempty"` // for rich_text and actions
	Label    *text     `json:"label,omitempty"`    // for input
	Hint     *text     `json:"hint,omitempty"`
	Element  *element  `json:"element,omitempty"`
}

// text is a text without markup.
type text struct {
	Type  string `json:"type"` // "plain_text"
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"` // false, so that Slack does not turn :words: into emoji
}

// element is an element of a block: a button, a text field, or a piece of rich text.
type element struct {
	Type     string    `json:"type"`
	Text     any       `json:"text,omitempty"` // a *text for a button, a string for rich text
	ActionID string    `json:"action_id,omitempty"`
	Value    string    `json:"value,omitempty"`
	Elements []element `json:"elements,omitempty"`
	Style    any       `json:"style,omitempty"` // a *textStyle, for rich text
	URL      string    `json:"url,omitempty"`

	Multiline bool   `json:"multiline,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Initial   string `json:"initial_value,omitempty"`
}

type textStyle struct {
	Bold bool `json:"bold,omitempty"`
	Code bool `json:"code,omitempty"`
}

// view is a dialog.
type view struct {
	Type       string  `json:"type"` // "modal"
	CallbackID string  `json:"callback_id"`
	Title      *text   `json:"title"`
	Submit     *text   `json:"submit,omitempty"`
	Close      *text   `json:"close"`
	Blocks     []block `json:"blocks"`
	Metadata   string  `json:"private_metadata"` // Slack sends it back with each press in the dialog and with the filled-in dialog
}

// envelope is a message of Socket Mode. If it has an id, nod must acknowledge it.
type envelope struct {
	ID      string  `json:"envelope_id"`
	Type    string  `json:"type"` // hello, disconnect, interactive, slash_commands
	Reason  string  `json:"reason"`
	Payload payload `json:"payload"`
}

// payload describes what a person did: pressed a button, sent a dialog or wrote a command.
type payload struct {
	Type      string `json:"type"` // block_actions, view_submission
	TriggerID string `json:"trigger_id"`
	User      struct {
		ID string `json:"id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message *message      `json:"message"` // nil if the button is in a dialog
	View    *incomingView `json:"view"`
	Actions []struct {
		Value string `json:"value"`
	} `json:"actions"`
	// The fields of a slash command.
	UserID    string `json:"user_id"`
	ChannelID string `json:"channel_id"`
	Text      string `json:"text"`
}

// person returns the id of the person who acted.
func (p *payload) person() string {
	if p.User.ID != "" {
		return p.User.ID
	}
	return p.UserID
}

type message struct {
	TS     string          `json:"ts"`
	Blocks []incomingBlock `json:"blocks"`
}

type incomingView struct {
	ID         string          `json:"id"`
	CallbackID string          `json:"callback_id"`
	Metadata   string          `json:"private_metadata"`
	Blocks     []incomingBlock `json:"blocks"`
	State      struct {
		Values map[string]map[string]struct {
			Value string `json:"value"`
		} `json:"values"`
	} `json:"state"`
}

// incomingBlock is a block of a message or dialog that Slack sends back with a press. nod reads
// its id and the values of its buttons.
type incomingBlock struct {
	Type     string `json:"type"`
	BlockID  string `json:"block_id"`
	Elements []struct {
		Value string `json:"value"`
	} `json:"elements"`
}

// offers reports whether one of the blocks has a button with this value.
func offers(blocks []incomingBlock, value string) bool {
	for _, b := range blocks {
		for _, e := range b.Elements {
			if b.Type == "actions" && e.Value == value && value != "" {
				return true
			}
		}
	}
	return false
}

// reply is the JSON object of every reply of Slack, with a result or an error.
type reply struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed"` // the permission that the app lacks
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
	URL      string `json:"url"`
	Metadata struct {
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
}
