package telegramtest

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf16"
)

// person is a Telegram user who has a chat with the bot.
type person struct {
	sender
	blocked  bool
	messages []*message
	read     []Read
}

func (p *person) find(id int64) *message {
	i := slices.IndexFunc(p.messages, func(m *message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return p.messages[i]
}

// press is the press of a button. The bot can answer it once.
type press struct {
	by       *person
	answered bool
}

// Read is a text that a person saw: a message, with its id, or a toast. An alert is a toast that stays
// until the person closes it.
type Read struct {
	Message int64
	Toast   string
	Alert   bool
}

// Message is the present state of a message in the person's chat.
type Message struct {
	ID      int64
	Text    string
	Buttons []Button
	// First is the original text, before any edit.
	First string
	// Bare is the text outside of entities of the kinds code and pre. Only there does Telegram turn text
	// into links and commands.
	Bare string
}

// Button is a button under a message, with its label and its data.
type Button struct{ Text, Data string }

// Start makes a person open the bot. Before that, the bot cannot write to the person.
func (s *Server) Start(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.people[id]; p != nil {
		p.blocked = false
		return
	}
	s.people[id] = &person{sender: sender{ID: id, Name: fmt.Sprint("user ", id)}}
}

// Block makes a person block the bot.
func (s *Server) Block(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].blocked = true
}

// Delete makes a person clear the chat.
func (s *Server) Delete(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].messages = nil
}

// Read lists all texts that a person saw, oldest first.
func (s *Server) Read(id int64) []Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.people[id]; p != nil {
		return slices.Clone(p.read)
	}
	return nil
}

// Chat lists the bot's messages to a person in their present state, oldest first.
func (s *Server) Chat(id int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Message
	for _, m := range s.people[id].messages {
		if m.From.ID == BotID {
			all = append(all, m.seen())
		}
	}
	return all
}

func (m *message) seen() Message {
	seen := Message{ID: m.ID, Text: m.Text, First: m.first, Bare: m.bare()}
	if m.Markup != nil {
		for _, row := range m.Markup.Rows {
			for _, b := range row {
				seen.Buttons = append(seen.Buttons, Button(b))
			}
		}
	}
	return seen
}

// Press makes a person press a button under a message in any chat, with any data, because a
// manipulated client may send anything. If forgotten is true, the press does not contain the text of
// the message.
func (s *Server) Press(by, chatID, messageID int64, data string, forgotten bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[by]
	s.lastID++
	id := fmt.Sprint("press-", s.lastID)
	s.presses[id] = &press{by: p}
	about := message{ID: messageID, Chat: chat{chatID, "private"}}
	if m := s.people[chatID].find(messageID); m != nil && !forgotten {
		about = *m
	}
	s.queue(update{Callback: &callback{ID: id, From: p.sender, Message: about, Data: data}})
}

// Expire makes every press so far too old for a toast.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.presses {
		p.answered = true
	}
}

// Write makes a person write to the bot. If replyTo is not 0, the text is a reply to that message.
func (s *Server) Write(by int64, text string, replyTo int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[by]
	s.lastID++
	m := &message{ID: s.lastID, From: p.sender, Chat: chat{by, "private"}, Date: time.Now().Unix(), Text: text}
	if about := p.find(replyTo); about != nil {
		copied := *about
		copied.ReplyTo = nil // Telegram does not nest replies
		m.ReplyTo = &copied
	}
	p.messages = append(p.messages, m)
	s.queue(update{Message: m})
}

// bare returns the text outside of entities of the kinds code and pre.
func (m *message) bare() string {
	units := utf16.Encode([]rune(m.Text))
	covered := make([]bool, len(units))
	for _, e := range m.Entities {
		if e.Type == "code" || e.Type == "pre" {
			for i := e.Offset; i < e.Offset+e.Length; i++ {
				covered[i] = true
			}
		}
	}
	var left []uint16
	for i, u := range units {
		if !covered[i] {
			left = append(left, u)
		}
	}
	return string(utf16.Decode(left))
}

// Keeps reports whether a chat contains a message with this text, whether the bot or the person wrote it.
func (s *Server) Keeps(id int64, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.people[id].messages, func(m *message) bool { return m.Text == text })
}

// Last returns the id of the last message in a chat, whether the bot or the person wrote it.
func (s *Server) Last(id int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.people[id].messages
	return all[len(all)-1].ID
}
