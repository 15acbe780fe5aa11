package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
)

// person is a user who shares a server with the bot.
type person struct {
	id       string
	away     bool
	messages []*message
	read     []Read
	modal    *modal
}

func (p *person) channel() string { return "77" + p.id }

func (p *person) find(id string) *message {
	for _, m := range p.messages {
		if m.id == id {
			return m
		}
	}
	return nil
}

// Read is a text that a person saw. It is a message, with its ID, a modal, or a text of Discord itself.
type Read struct {
	ID    string
	Text  string
	Links []string
}

// Message is the present state of a message.
type Message struct {
	ID, Text  string
	Ephemeral bool   // only the recipient sees the message
	About     string // the message with the button whose press led to this message
	Buttons   []Button
}

// Modal is an open modal, and the message with the button that opened it.
type Modal struct {
	About, Title, Text, Initial string
}

// Start makes a person share a server with the bot.
func (s *Server) Start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id] = &person{id: id}
}

// Leave makes a person refuse messages of the bot.
func (s *Server) Leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].away = true
}

// Delete deletes a person's messages.
func (s *Server) Delete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].messages = nil
}

// Read lists all texts that a person saw, oldest first.
func (s *Server) Read(id string) []Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.people[id].read)
}

// Chat lists the bot's messages to a person in their present state, oldest first.
func (s *Server) Chat(id string) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.people[id].messages {
		all = append(all, Message{m.id, m.text, m.flags&ephemeral != 0, m.about, slices.Clone(m.buttons)})
	}
	return all
}

// Open returns the modal that a person has open.
func (s *Server) Open(id string) (Modal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.people[id].modal
	if m == nil {
		return Modal{}, false
	}
	return Modal{m.about.id, m.Title, m.text, m.field.Value}, true
}

// CloseModal makes a person close the modal.
func (s *Server) CloseModal(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].modal = nil
}

// The types of interactions.
const (
	isCommand = 2
	isPress   = 3
	isModal   = 5
)

// interaction is a press, a sent modal or a command.
type interaction struct {
	id, token string
	kind      int
	by        *person
	channel   string
	server    bool     // the person wrote the command on a server
	about     *message // the message with the pressed button; nil for a command
	acked     bool
	failed    bool
	original  *message // the message that the response created or promised to change
}

// Press makes a person press a button with any custom_id under a message in any conversation.
func (s *Server) Press(by, owner, id, customID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.people[owner].find(id)
	if m == nil {
		m = &message{id: id, channel: s.people[owner].channel()}
	}
	i := &interaction{kind: isPress, by: s.people[by], channel: m.channel, about: m}
	s.push(i, map[string]any{"message": m.object(), "data": map[string]any{"custom_id": customID, "component_type": 2}})
}

// Submit makes a person send the open modal with a text in its field.
func (s *Server) Submit(by, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[by]
	m := p.modal
	p.modal = nil
	i := &interaction{kind: isModal, by: p, channel: p.channel(), about: m.about}
	field := map[string]any{"type": 4, "id": 2, "custom_id": m.field.CustomID, "value": words}
	s.push(i, map[string]any{"message": m.about.object(), "data": map[string]any{
		"custom_id": m.CustomID, "components": []any{map[string]any{"type": 18, "id": 1, "component": field}},
	}})
}

// Command makes a person write the command /nod with this text. If server is set, the person writes on a
// server, and otherwise in the conversation with the bot.
func (s *Server) Command(by, text string, server bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &interaction{kind: isCommand, by: s.people[by], channel: s.people[by].channel(), server: server}
	if server {
		i.channel = "880001"
	}
	s.push(i, map[string]any{"data": map[string]any{"id": "1", "name": "nod", "type": 1, "options": []any{map[string]any{"name": "text", "type": 3, "value": text}}}})
}

// respond executes the response to an interaction. An interaction takes only one response.
func (s *Server) respond(args []string, data []byte) (any, *failure) {
	var r struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if f := strict(data, &r); f != nil {
		return nil, f
	}
	i := s.interactions[args[1]]
	switch {
	case i == nil || i.id != args[0] || i.failed:
		return nil, refused(http.StatusNotFound, 10062, "Unknown interaction")
	case i.acked:
		return nil, refused(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	f := i.accept(s, r.Type, r.Data)
	if f == nil {
		i.acked = true
	}
	return nil, f
}

func (i *interaction) accept(s *Server, kind int, data json.RawMessage) *failure {
	switch {
	case kind == 4:
		return i.show(s, data)
	case kind == 5 && i.kind == isCommand:
		i.original = &message{id: s.id(), channel: i.channel, flags: ephemeral}
		i.by.messages = append(i.by.messages, i.original)
	case kind == 6 && i.about != nil:
		i.original = i.about
	case kind == 7 && i.about != nil:
		i.original = i.about
		return i.replace(s, data)
	case kind == 9 && i.kind == isPress:
		m, f := openModal(data)
		if f != nil {
			return f
		}
		m.about, i.by.modal = i.about, m
		i.by.read = append(i.by.read, Read{Text: m.Title + "\n" + m.text})
	default:
		return bad("the response type %d is not valid here", kind)
	}
	return nil
}

// show shows a message as the response to an interaction, or as a follow-up after the response.
func (i *interaction) show(s *Server, data []byte) *failure {
	var b body
	if f := strict(data, &b); f != nil {
		return f
	}
	l, f := b.fill(suppressEmbeds | ephemeral | silent | componentsV2)
	if f != nil {
		return f
	}
	if b.Flags&ephemeral == 0 {
		return bad("this reply would be visible to everybody")
	}
	m := &message{id: s.id(), channel: i.channel, flags: b.Flags, raw: b.Components, layout: l}
	if i.about != nil {
		m.about = i.about.id
	}
	i.by.messages = append(i.by.messages, m)
	i.by.read = append(i.by.read, Read{ID: m.id, Text: l.text, Links: l.links})
	if i.original == nil {
		i.original = m
	}
	return nil
}

// replace replaces the original message of an interaction.
func (i *interaction) replace(s *Server, data []byte) *failure {
	if i.original.flags&ephemeral == 0 {
		return bad("this would replace the question")
	}
	_, f := s.change(i.original, data, suppressEmbeds|componentsV2)
	if f == nil {
		i.by.read = append(i.by.read, Read{ID: i.original.id, Text: i.original.text, Links: i.original.links})
	}
	return f
}

// hook returns the interaction whose webhook a call uses. The webhook exists only after the response to
// the interaction.
func (s *Server) hook(args []string) (*interaction, *failure) {
	i := s.interactions[args[1]]
	if args[0] != application || i == nil || !i.acked {
		return nil, refused(http.StatusNotFound, 10015, "Unknown Webhook")
	}
	return i, nil
}

func (s *Server) followUp(args []string, data []byte) (any, *failure) {
	i, f := s.hook(args)
	if f == nil {
		f = i.show(s, data)
	}
	if f != nil {
		return nil, f
	}
	return i.by.messages[len(i.by.messages)-1].object(), nil
}

func (s *Server) editResponse(args []string, data []byte) (any, *failure) {
	i, f := s.hook(args)
	switch {
	case f != nil:
	case i.original == nil:
		f = refused(http.StatusNotFound, 10008, "Unknown Message")
	default:
		f = i.replace(s, data)
	}
	if f != nil {
		return nil, f
	}
	return i.original.object(), nil
}
