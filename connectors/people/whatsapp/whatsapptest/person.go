package whatsapptest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type person struct {
	id         string
	blocked    bool
	windowEnds time.Time
	messages   []*message
}

func (p *person) find(id string) *message {
	i := slices.IndexFunc(p.messages, func(m *message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return p.messages[i]
}

type message struct {
	ID, Type, Text string
	Quotes         string
	Buttons        []Button
	mine           bool // the person of this chat wrote the message
	person         string
	callback       string
}

func (m *message) fill(o *outgoing) {
	if o.Context != nil {
		m.Quotes = o.Context.ID
	}
	switch o.Type {
	case "text":
		m.Text = o.Text.Body
	case "interactive":
		m.Text = o.Interactive.Body.Text
		for _, b := range o.Interactive.Action.Buttons {
			m.Buttons = append(m.Buttons, b.Reply)
		}
	case "template":
		m.Text = "An agent waits for your permission: " + o.Template.Components[0].Parameters[0].Text + "."
		m.Buttons = []Button{{ID: o.Template.Components[1].Parameters[0].Payload, Title: "Show"}}
	}
}

// Message is a message from nod. Quotes is the id of the quoted message, or empty.
type Message struct {
	ID, Type, Text string
	Quotes         string
	Buttons        []Button
}

// Bare returns the text outside of code. Only there does WhatsApp change how characters look.
func (m *Message) Bare() string {
	var bare strings.Builder
	for i, piece := range strings.Split(m.Text, "```") {
		if i%2 == 0 {
			bare.WriteString(piece)
		}
	}
	return bare.String()
}

// Start makes the server know a person, who may then get messages for 24 hours as if the person
// had just written.
func (s *Server) Start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id] = &person{id: id, windowEnds: s.now().Add(24 * time.Hour)}
}

// Block makes a person block nod's phone number.
func (s *Server) Block(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].blocked = true
}

// CloseWindow makes the last message of a person more than 24 hours old.
func (s *Server) CloseWindow(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].windowEnds = s.now()
}

// Chat lists nod's messages to a person, oldest first.
func (s *Server) Chat(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Message
	for _, m := range s.people[id].messages {
		if !m.mine {
			all = append(all, Message{m.ID, m.Type, m.Text, m.Quotes, slices.Clone(m.Buttons)})
		}
	}
	return all
}

// Tap makes a person tap a button under a message in any chat, with any id, because a manipulated client
// may send anything.
func (s *Server) Tap(by, messageID, buttonID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := map[string]any{"type": "interactive", "interactive": map[string]any{"type": "button_reply", "button_reply": Button{buttonID, "title"}}}
	if m := s.people[by].find(messageID); m != nil && m.Type == "template" {
		kind = map[string]any{"type": "button", "button": map[string]any{"payload": buttonID, "text": "Show"}}
	}
	s.writes(by, messageID, "", kind)
}

// Write makes a person write to nod's phone number. The parameter quotes is the id of the quoted message,
// or empty.
func (s *Server) Write(by, text, quotes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes(by, quotes, text, map[string]any{"type": "text", "text": map[string]any{"body": text}})
}

// Sends makes a person send a message of another kind, such as an image.
func (s *Server) Sends(by, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes(by, "", "", map[string]any{"type": kind, kind: map[string]any{"id": "1"}})
}

func (s *Server) writes(by, quotes, text string, fields map[string]any) {
	p := s.people[by]
	p.windowEnds = s.now().Add(24 * time.Hour)
	s.lastID++
	m := &message{ID: fmt.Sprint("wamid.", s.lastID), Text: text, mine: true, person: by}
	p.messages = append(p.messages, m)
	fields["id"], fields["from"], fields["timestamp"] = m.ID, by, fmt.Sprint(s.now().Unix())
	if quotes != "" {
		fields["context"] = map[string]any{"from": display, "id": quotes}
	}
	s.push(&event{map[string]any{"messages": []any{fields}, "contacts": []any{map[string]any{"wa_id": by, "profile": map[string]any{"name": "user " + by}}}}})
}

// Reads makes a person read a message of nod, for which the server sends a receipt.
func (s *Server) Reads(by, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(s.people[by].find(messageID), "read", nil)
}
