package discordtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	suppressEmbeds = 1 << 2
	ephemeral      = 1 << 6
	silent         = 1 << 12
	componentsV2   = 1 << 15
)

// The limits of messages, in characters or in components.
const (
	maxContent    = 2000
	maxText       = 4000
	maxComponents = 40
	maxNonce      = 25
)

type message struct {
	id, channel string
	flags       int
	raw         []component
	about       string // the id of the message with the button whose press led to this message
	layout
}

// layout contains a message as a person sees it.
type layout struct {
	text    string
	links   []string
	buttons []Button
}

// Button is a button of a message: its label, and its custom_id.
type Button struct{ Label, ID string }

type component struct {
	Type       int         `json:"type"`
	CustomID   string      `json:"custom_id,omitempty"`
	Style      int         `json:"style,omitempty"`
	Label      string      `json:"label,omitempty"`
	About      string      `json:"description,omitempty"`
	ID         int         `json:"id,omitempty"`
	Content    string      `json:"content,omitempty"`
	Value      string      `json:"value,omitempty"`
	Required   bool        `json:"required,omitempty"`
	MaxLength  int         `json:"max_length,omitempty"`
	Components []component `json:"components,omitempty"`
	Component  *component  `json:"component,omitempty"`
}

type body struct {
	Content    *string     `json:"content"`
	Flags      int         `json:"flags"`
	Components []component `json:"components"`
	Mentions   *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Nonce        string `json:"nonce"`
	EnforceNonce bool   `json:"enforce_nonce"`
	TTS          bool   `json:"tts"`
}

// fill checks a body and returns the layout of the message.
func (b *body) fill(allowed int) (l layout, f *failure) {
	if b.Flags&^allowed != 0 {
		return l, bad("the flags %b are not allowed here", b.Flags)
	}
	if b.Mentions == nil || len(b.Mentions.Parse) != 0 {
		return l, bad("the message allows mentions")
	}
	var text []string
	if b.Flags&componentsV2 == 0 {
		if b.Content == nil || *b.Content == "" || utf8.RuneCountInString(*b.Content) > maxContent {
			return l, bad("content: must be 1 to %d characters", maxContent)
		}
		text = append(text, *b.Content)
	} else if b.Content != nil {
		return l, bad("content: not allowed with components of version 2")
	}
	length, count, ids := 0, 0, map[string]bool{}
	for i := range b.Components {
		c := &b.Components[i]
		count += 1 + len(c.Components)
		switch {
		case c.Type == 10 && b.Flags&componentsV2 != 0 && c.Content != "":
			length += utf8.RuneCountInString(c.Content)
			text = append(text, c.Content)
		case c.Type == 1 && len(c.Components) >= 1 && len(c.Components) <= 5:
			for j := range c.Components {
				b := &c.Components[j]
				if f := checkButton(b, ids); f != nil {
					return l, f
				}
				l.buttons = append(l.buttons, Button{b.Label, b.CustomID})
			}
		default:
			return l, bad("a component of the type %d is not valid", c.Type)
		}
	}
	if count > maxComponents || length > maxText || len(text) == 0 {
		return l, bad("%d components with %d characters", count, length)
	}
	var err error
	if l.text, l.links, err = render(strings.Join(text, "\n")); err != nil {
		return l, bad("%v", err)
	}
	return l, nil
}

func checkButton(b *component, ids map[string]bool) *failure {
	switch {
	case b.Type != 2 || b.Style < 1 || b.Style > 4:
		return bad("a button has the type %d and the style %d", b.Type, b.Style)
	case b.Label == "" || utf8.RuneCountInString(b.Label) > 80:
		return bad("the label %q is not valid", b.Label)
	case b.CustomID == "" || utf8.RuneCountInString(b.CustomID) > 100 || ids[b.CustomID]:
		return bad("the custom_id %q is not valid, or there are two of it", b.CustomID)
	}
	ids[b.CustomID] = true
	return nil
}

func (m *message) object() map[string]any {
	return map[string]any{"id": m.id, "channel_id": m.channel, "flags": m.flags, "components": m.raw, "content": "", "author": map[string]any{"id": "900002", "bot": true}}
}

func (s *Server) createDM(_ []string, data []byte) (any, *failure) {
	var b struct {
		Recipient string `json:"recipient_id"`
	}
	if f := strict(data, &b); f != nil {
		return nil, f
	}
	p := s.people[b.Recipient]
	if p == nil {
		return nil, refused(http.StatusBadRequest, 50033, "Invalid Recipient(s)")
	}
	return map[string]any{"id": p.channel(), "type": 1}, nil
}

// owner returns the person whose private channel with the bot has this id.
func (s *Server) owner(channel string) *person {
	for _, p := range s.people {
		if p.channel() == channel {
			return p
		}
	}
	return nil
}

func (s *Server) createMessage(args []string, data []byte) (any, *failure) {
	p := s.owner(args[0])
	if p == nil {
		return nil, refused(http.StatusNotFound, 10003, "Unknown Channel")
	}
	if f := s.spend(args[0]); f != nil {
		return nil, f
	}
	var b body
	if f := strict(data, &b); f != nil {
		return nil, f
	}
	l, f := b.fill(suppressEmbeds | silent | componentsV2)
	switch {
	case f != nil:
		return nil, f
	case len(b.Nonce) > maxNonce:
		return nil, bad("nonce: must be %d characters at most", maxNonce)
	case p.away:
		return nil, refused(http.StatusForbidden, 50007, "Cannot send messages to this user")
	}
	if earlier := s.nonces[b.Nonce]; b.EnforceNonce && b.Nonce != "" && earlier != nil {
		return earlier.object(), nil
	}
	m := &message{id: s.id(), channel: args[0], flags: b.Flags, raw: b.Components, layout: l}
	p.messages = append(p.messages, m)
	p.read = append(p.read, Read{ID: m.id, Text: l.text, Links: l.links})
	s.nonces[b.Nonce] = m
	return m.object(), nil
}

func (s *Server) editMessage(args []string, data []byte) (any, *failure) {
	p := s.owner(args[0])
	if p == nil {
		return nil, refused(http.StatusNotFound, 10003, "Unknown Channel")
	}
	m := p.find(args[1])
	if m == nil || m.flags&ephemeral != 0 {
		return nil, refused(http.StatusNotFound, 10008, "Unknown Message")
	}
	return s.change(m, data, suppressEmbeds|componentsV2)
}

// change edits a message. A message keeps components of version 2 once it has them.
func (s *Server) change(m *message, data []byte, allowed int) (any, *failure) {
	var b body
	if f := strict(data, &b); f != nil {
		return nil, f
	}
	l, f := b.fill(allowed)
	if f != nil {
		return nil, f
	}
	if m.flags&componentsV2 != 0 && b.Flags&componentsV2 == 0 {
		return nil, bad("the flag for components of version 2 can't be removed")
	}
	m.flags, m.raw, m.layout = m.flags|b.Flags, b.Components, l
	return m.object(), nil
}

// modal is a dialog that a person has open.
type modal struct {
	CustomID   string      `json:"custom_id"`
	Title      string      `json:"title"`
	Components []component `json:"components"`

	about *message // the message with the button that opened the modal
	text  string
	field *component
}

func openModal(data json.RawMessage) (*modal, *failure) {
	var m modal
	if f := strict(data, &m); f != nil {
		return nil, f
	}
	if n := utf8.RuneCountInString(m.Title); n < 1 || n > 45 || m.CustomID == "" || utf8.RuneCountInString(m.CustomID) > 100 || len(m.Components) > 5 {
		return nil, bad("the modal %q is not valid", m.Title)
	}
	for i := range m.Components {
		c := &m.Components[i]
		switch {
		case c.Type == 10 && c.Content != "":
			text, _, err := render(c.Content)
			if err != nil {
				return nil, bad("%v", err)
			}
			m.text += text + "\n"
		case c.Type == 18 && c.Label != "" && utf8.RuneCountInString(c.Label) <= 45 && utf8.RuneCountInString(c.About) <= 100 && c.Component != nil:
			in := c.Component
			if in.Type != 4 || in.CustomID == "" || in.Style < 1 || in.Style > 2 || in.MaxLength < 1 || in.MaxLength > 4000 || utf8.RuneCountInString(in.Value) > in.MaxLength {
				return nil, bad("the text field is not valid")
			}
			m.text += c.Label + "\n" + c.About + "\n"
			m.field = in
		default:
			return nil, bad("a component of the type %d in a modal is not valid", c.Type)
		}
	}
	if m.field == nil {
		return nil, bad("the modal has no field")
	}
	return &m, nil
}
