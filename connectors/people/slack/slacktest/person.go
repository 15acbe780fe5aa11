package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// person is a member of the workspace.
type person struct {
	id       string
	away     bool
	messages []*message
	read     []Read
	view     *view // the dialog that the person has open
}

func (p *person) channel() string { return "D" + p.id }

type message struct {
	ts, thread, alert string
	raw               []json.RawMessage
	layout
}

// Read is a text that a person saw. It is a message, with its TS, or a text that only this person sees:
// an ephemeral message, a dialog, or a text of Slack itself.
type Read struct {
	TS    string
	Text  string
	Links []string
}

// Message is the present state of a message.
type Message struct {
	TS, Thread, Text, Alert string
	Buttons                 []Button
}

// Dialog is an open dialog, and the message under which it was opened.
type Dialog struct {
	About, Title, Text string
	Buttons            []Button
	Field              bool
	Initial            string
}

// Start makes a person a member of the workspace.
func (s *Server) Start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id] = &person{id: id}
}

// Leave deactivates a person.
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

// Chat lists the app's messages to a person in their present state, oldest first, with the messages in
// threads.
func (s *Server) Chat(id string) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.people[id].messages {
		all = append(all, Message{m.ts, m.thread, strings.TrimSpace(m.text), m.alert, slices.Clone(m.buttons)})
	}
	return all
}

// Open returns the dialog that a person has open.
func (s *Server) Open(id string) (Dialog, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.people[id].view
	if v == nil || v.sent {
		return Dialog{}, false
	}
	d := Dialog{About: v.about.ts, Title: v.Title.Text, Text: strings.TrimSpace(v.text), Buttons: slices.Clone(v.buttons)}
	if v.field != nil {
		d.Field, d.Initial = true, v.field.Initial
	}
	return d, true
}

// CloseDialog makes a person close the dialog.
func (s *Server) CloseDialog(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id].view = nil
}

// trigger records a press of a person and returns its trigger_id, with which the app can open a
// dialog.
func (s *Server) trigger(t *trigger) string {
	s.lastID++
	id := fmt.Sprint("trigger-", s.lastID)
	s.triggers[id] = t
	return id
}

// Press makes a person press a button under a message in any conversation, with any value.
func (s *Server) Press(by, owner, ts, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, about := s.people[by], &trigger{by: s.people[by], ts: ts}
	message := map[string]any{"ts": ts, "type": "message"}
	if m := s.people[owner].find(ts); m != nil {
		message["blocks"] = m.raw
	}
	s.push(p, "interactive", about, map[string]any{
		"type": "block_actions", "trigger_id": s.trigger(about), "user": map[string]any{"id": by, "username": "u"}, "team": map[string]any{"id": "T1"},
		"channel": map[string]any{"id": "D" + owner, "name": "directmessage"}, "message": message,
		"container": map[string]any{"type": "message", "message_ts": ts}, "actions": []any{map[string]any{"type": "button", "value": value}},
	})
}

// PressInDialog makes a person press a button in the open dialog.
func (s *Server) PressInDialog(by, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[by]
	about := &trigger{by: p, ts: p.view.about.ts}
	s.push(p, "interactive", about, map[string]any{
		"type": "block_actions", "trigger_id": s.trigger(about), "user": map[string]any{"id": by}, "team": map[string]any{"id": "T1"},
		"view": p.view.payload(""), "container": map[string]any{"type": "view", "view_id": p.view.id}, "actions": []any{map[string]any{"type": "button", "value": value}},
	})
}

// Submit makes a person send the open dialog with a text in its field.
func (s *Server) Submit(by, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[by]
	about := &trigger{by: p, ts: p.view.about.ts, submits: p.view}
	p.view.sent = true
	s.push(p, "interactive", about, map[string]any{
		"type": "view_submission", "trigger_id": s.trigger(about), "user": map[string]any{"id": by}, "team": map[string]any{"id": "T1"}, "view": p.view.payload(words),
	})
}

func (v *view) payload(words string) map[string]any {
	return map[string]any{
		"id": v.id, "callback_id": v.CallbackID, "private_metadata": v.Metadata, "blocks": v.Blocks,
		"state": map[string]any{"values": map[string]any{"words": map[string]any{"words": map[string]any{"type": "plain_text_input", "value": words}}}},
	}
}

// Command makes a person write the command /nod with this text, in their conversation with the app or in
// another conversation.
func (s *Server) Command(by, text, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if channel == "" {
		channel = "D" + by
	}
	s.push(s.people[by], "slash_commands", nil, map[string]any{"command": "/nod", "text": text, "user_id": by, "channel_id": channel, "team_id": "T1"})
}
