package telegram

// Types of Telegram's Bot API, with only the fields that nod uses.

type update struct {
	ID       int64          `json:"update_id"`
	Message  *message       `json:"message"`
	Callback *callbackQuery `json:"callback_query"`
}

// senderID returns the id of the person who caused an update. It returns 0 if the update names no
// person.
func (u *update) senderID() int64 {
	switch {
	case u.Callback != nil:
		return u.Callback.From.ID
	case u.Message != nil && u.Message.From != nil:
		return u.Message.From.ID
	}
	return 0
}

type user struct {
	ID    int64 `json:"id"`
	IsBot bool  `json:"is_bot"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

type message struct {
	ID          int64     `json:"message_id"`
	From        *user     `json:"from"`
	Chat        chat      `json:"chat"`
	Text        string    `json:"text"`
	ReplyTo     *message  `json:"reply_to_message"`
	ReplyMarkup *keyboard `json:"reply_markup"`
}

// callbackQuery is the press of a button. If the message was deleted or is too old, Message has no
// text.
type callbackQuery struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"` // in UTF-16 units, like Length
	Length int    `json:"length"`
}

type replyTo struct {
	MessageID int64 `json:"message_id"`
	// Without makes Telegram send the reply even if the message to which it replies was deleted.
	Without bool `json:"allow_sending_without_reply"`
}

type forceReply struct {
	ForceReply  bool   `json:"force_reply"`
	Placeholder string `json:"input_field_placeholder,omitempty"`
}

type preview struct {
	IsDisabled bool `json:"is_disabled"`
}

// outgoing is a message to send or, if it has a MessageID, an edit of that message.
type outgoing struct {
	ChatID    int64    `json:"chat_id"`
	MessageID int64    `json:"message_id,omitempty"`
	Text      string   `json:"text,omitempty"`
	Entities  []entity `json:"entities,omitempty"`
	Preview   preview  `json:"link_preview_options"`
	ReplyTo   *replyTo `json:"reply_parameters,omitempty"`
	Markup    any      `json:"reply_markup,omitempty"`
}
