package whatsapp

// Types of Meta's Cloud API, with only the fields that nod uses.

// outgoing is a message to send. Type says whether it is a text, an interactive message with
// buttons, or a template.
type outgoing struct {
	Product       string       `json:"messaging_product"`
	RecipientType string       `json:"recipient_type"`
	To            string       `json:"to"`
	Context       *messageRef  `json:"context,omitempty"` // the message that this one quotes
	Type          string       `json:"type"`
	Text          *textBody    `json:"text,omitempty"`
	Interactive   *interactive `json:"interactive,omitempty"`
	Template      *template    `json:"template,omitempty"`
	// Callback is a text that Meta repeats in each report about this message.
	Callback string `json:"biz_opaque_callback_data,omitempty"`
}

type messageRef struct {
	ID string `json:"message_id"`
}

type textBody struct {
	PreviewURL bool   `json:"preview_url"`
	Body       string `json:"body"`
}

type interactive struct {
	Type   string `json:"type"` // "button"
	Body   text   `json:"body"`
	Action action `json:"action"`
}

type text struct {
	Text string `json:"text"`
}

type action struct {
	Buttons []button `json:"buttons"`
}

type button struct {
	Type  string `json:"type"` // "reply"
	Reply reply  `json:"reply"`
}

type reply struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type template struct {
	Name       string      `json:"name"`
	Language   language    `json:"language"`
	Components []component `json:"components"`
}

type language struct {
	Code string `json:"code"`
}

type component struct {
	Type       string      `json:"type"`
	SubType    string      `json:"sub_type,omitempty"`
	Index      string      `json:"index,omitempty"`
	Parameters []parameter `json:"parameters"`
}

type parameter struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Payload string `json:"payload,omitempty"`
}

// notification is the body of Meta's call of the webhook.
type notification struct {
	Object string `json:"object"`
	Entry  []struct {
		Changes []struct {
			Field string `json:"field"`
			Value change `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

type change struct {
	Metadata struct {
		PhoneNumberID string `json:"phone_number_id"`
	} `json:"metadata"`
	Messages []incoming `json:"messages"`
	Statuses []status   `json:"statuses"`
}

// incoming is a message from a person. If the person tapped a button or quoted a message, Context
// contains the id of that message.
type incoming struct {
	ID          string                `json:"id"`
	From        string                `json:"from"`
	GroupID     string                `json:"group_id"` // not empty if the message was written in a group
	Timestamp   string                `json:"timestamp"`
	Type        string                `json:"type"`
	Text        struct{ Body string } `json:"text"`
	Context     struct{ ID string }   `json:"context"`
	Interactive struct {
		Type        string `json:"type"`
		ButtonReply reply  `json:"button_reply"`
	} `json:"interactive"`
	Button struct {
		Payload string `json:"payload"`
	} `json:"button"` // the tap on a template's button
}

// status is a report about a message that nod has sent.
type status struct {
	ID        string       `json:"id"`
	Status    string       `json:"status"` // sent, delivered, read or failed
	Recipient string       `json:"recipient_id"`
	Errors    []graphError `json:"errors"`
	Callback  string       `json:"biz_opaque_callback_data"`
}

type graphError struct {
	Code    int    `json:"code"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
}

// text returns the most precise description of the error.
func (e *graphError) text() string {
	for _, text := range []string{e.Data.Details, e.Message, e.Title} {
		if text != "" {
			return text
		}
	}
	return ""
}
