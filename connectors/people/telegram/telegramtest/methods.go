package telegramtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

type sender struct {
	ID    int64  `json:"id"`
	IsBot bool   `json:"is_bot"`
	Name  string `json:"first_name"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

type markup struct {
	Rows        [][]button `json:"inline_keyboard,omitempty"`
	ForceReply  bool       `json:"force_reply,omitempty"`
	Placeholder string     `json:"input_field_placeholder,omitempty"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

type message struct {
	ID       int64    `json:"message_id"`
	From     sender   `json:"from"`
	Chat     chat     `json:"chat"`
	Date     int64    `json:"date"`
	Text     string   `json:"text,omitempty"`
	Entities []entity `json:"entities,omitempty"`
	ReplyTo  *message `json:"reply_to_message,omitempty"`
	Markup   *markup  `json:"reply_markup,omitempty"`

	first string // the text of the message before any edit
}

type callback struct {
	ID      string  `json:"id"`
	From    sender  `json:"from"`
	Message message `json:"message"`
	Data    string  `json:"data"`
}

type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message,omitempty"`
	Callback *callback `json:"callback_query,omitempty"`
}

// outgoing is a message to send or edit. The server refuses a call with any other field.
type outgoing struct {
	ChatID    int64    `json:"chat_id"`
	MessageID int64    `json:"message_id"`
	Text      string   `json:"text"`
	Entities  []entity `json:"entities"`
	Preview   struct {
		IsDisabled bool `json:"is_disabled"`
	} `json:"link_preview_options"`
	ReplyTo *struct {
		MessageID int64 `json:"message_id"`
		Without   bool  `json:"allow_sending_without_reply"`
	} `json:"reply_parameters"`
	Markup *markup `json:"reply_markup"`
}

func readAll(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, 1<<20)) }

func strict(body []byte, v any) *failure {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return bad("can't parse: %v", err)
	}
	return nil
}

func (s *Server) bot() sender { return sender{ID: BotID, IsBot: true, Name: "nod"} }

func (s *Server) getMe(*http.Request, []byte) (any, *failure) { return s.bot(), nil }

// getUpdates holds a poll open until there is an update. Like the real server, it ends an open poll when
// a second poll starts.
func (s *Server) getUpdates(r *http.Request, body []byte) (any, *failure) {
	var ask struct {
		Offset  int64    `json:"offset"`
		Limit   int      `json:"limit"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}
	if f := strict(body, &ask); f != nil {
		return nil, f
	}
	s.mu.Lock()
	if s.hook != nil {
		s.mu.Unlock()
		return nil, &failure{code: http.StatusConflict, words: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	}
	if s.poll != nil {
		close(s.poll)
	}
	mine := make(chan struct{})
	s.poll = mine
	s.forgetBelow(ask.Offset)
	s.mu.Unlock()

	end := time.NewTimer(time.Duration(ask.Timeout) * time.Second)
	defer end.Stop()
	for {
		s.mu.Lock()
		found, wake := append([]update{}, s.updates...), s.wake
		taken := s.poll != mine
		s.mu.Unlock()
		if len(found) > 0 && !taken {
			return found[:min(len(found), 100)], s.done(mine)
		}
		select {
		case <-wake:
		case <-mine:
			return nil, &failure{code: http.StatusConflict, words: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
		case <-r.Context().Done():
			return []update{}, s.done(mine)
		case <-end.C:
			return []update{}, s.done(mine)
		}
	}
}

func (s *Server) done(poll chan struct{}) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll == poll {
		s.poll = nil
	}
	return nil
}

// forgetBelow deletes the updates whose ids are below an offset.
func (s *Server) forgetBelow(offset int64) {
	kept := s.updates[:0]
	for _, u := range s.updates {
		if u.ID >= offset {
			kept = append(kept, u)
		}
	}
	s.updates = kept
}

func (s *Server) queue(u update) {
	s.lastID++
	u.ID = s.lastID
	s.updates = append(s.updates, u)
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *Server) sendMessage(_ *http.Request, body []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m outgoing
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	p := s.people[m.ChatID]
	switch {
	case p == nil:
		return nil, gone("chat not found")
	case p.blocked:
		return nil, &failure{code: http.StatusForbidden, words: "Forbidden: bot was blocked by the user"}
	}
	if f := check(&m); f != nil {
		return nil, f
	}
	if f := s.spend(m.ChatID, chatBurst, 1); f != nil {
		return nil, f
	}
	if f := s.spend(0, allBurst, 30); f != nil {
		return nil, f
	}
	if m.ReplyTo != nil && !m.ReplyTo.Without && p.find(m.ReplyTo.MessageID) == nil {
		return nil, gone("message to be replied not found")
	}
	s.lastID++
	sent := &message{
		ID: s.lastID, From: s.bot(), Chat: chat{m.ChatID, "private"}, Date: time.Now().Unix(),
		Text: m.Text, Entities: m.Entities, Markup: m.Markup, first: m.Text,
	}
	p.messages = append(p.messages, sent)
	p.read = append(p.read, Read{Message: sent.ID})
	reply := *sent // return a copy, because an edit may change the message before the reply is sent
	return &reply, nil
}

func check(m *outgoing) *failure {
	units := utf16.Encode([]rune(m.Text))
	switch {
	case strings.TrimSpace(m.Text) == "":
		return bad("message text is empty")
	case strings.TrimSpace(m.Text) != m.Text:
		return bad("the text would be trimmed, and its entities with it")
	case len(units) > maxText:
		return bad("message is too long")
	case len(m.Entities) > maxEntities:
		return bad("entities beyond the hundredth would be dropped")
	case !m.Preview.IsDisabled:
		return bad("a link preview would be fetched")
	}
	for _, e := range m.Entities {
		if f := bounds(e, units); f != nil {
			return f
		}
	}
	return checkMarkup(m.Markup)
}

func bounds(e entity, units []uint16) *failure {
	end := e.Offset + e.Length
	switch {
	case e.Offset < 0 || e.Length <= 0 || end > len(units):
		return bad("ENTITY_BOUNDS_INVALID")
	case splits(units, e.Offset), splits(units, end):
		return bad("ENTITY_BOUNDS_INVALID: it splits a character")
	}
	switch e.Type {
	case "bold", "italic", "code", "pre":
		return nil
	}
	return bad("the entity %q hides or links", e.Type)
}

func splits(units []uint16, at int) bool {
	return at > 0 && at < len(units) && utf16.IsSurrogate(rune(units[at])) && units[at] >= 0xDC00
}

func checkMarkup(m *markup) *failure {
	if m == nil {
		return nil
	}
	n := 0
	for _, row := range m.Rows {
		for _, b := range row {
			n++
			if b.Text == "" || len(b.Data) < 1 || len(b.Data) > maxData {
				return bad("BUTTON_DATA_INVALID")
			}
		}
	}
	if n > 100 {
		return bad("REPLY_MARKUP_TOO_LONG")
	}
	return nil
}

func (s *Server) editMessageText(_ *http.Request, body []byte) (any, *failure) {
	return s.edit(body, func(old *message, m *outgoing) *failure {
		if f := check(m); f != nil {
			return f
		}
		old.Text, old.Entities, old.Markup = m.Text, m.Entities, m.Markup
		return nil
	})
}

func (s *Server) editMessageReplyMarkup(_ *http.Request, body []byte) (any, *failure) {
	return s.edit(body, func(old *message, m *outgoing) *failure {
		if f := checkMarkup(m.Markup); f != nil {
			return f
		}
		old.Markup = m.Markup
		return nil
	})
}

func (s *Server) edit(body []byte, change func(old *message, m *outgoing) *failure) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m outgoing
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	p := s.people[m.ChatID]
	if p == nil {
		return nil, gone("chat not found")
	}
	old := p.find(m.MessageID)
	if old == nil || old.From.ID != BotID {
		return nil, gone("message to edit not found")
	}
	before := *old
	if f := change(old, &m); f != nil {
		return nil, f
	}
	if reflect.DeepEqual(before, *old) {
		return nil, gone("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	after := *old // return a copy, because another edit may change the message before the reply is sent
	return &after, nil
}

func (s *Server) answerCallbackQuery(_ *http.Request, body []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m struct {
		ID    string `json:"callback_query_id"`
		Text  string `json:"text"`
		Alert bool   `json:"show_alert"`
	}
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	p := s.presses[m.ID]
	switch {
	case len([]rune(m.Text)) > maxToast:
		return nil, bad("MESSAGE_TOO_LONG")
	case p == nil || p.answered:
		return nil, gone("query is too old and response timeout expired or query ID is invalid")
	}
	p.answered = true
	if m.Text != "" {
		p.by.read = append(p.by.read, Read{Toast: m.Text, Alert: m.Alert})
	}
	return true, nil
}

// deleteMessage deletes a message that the bot or the person wrote in a private chat.
func (s *Server) deleteMessage(_ *http.Request, body []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m struct {
		ChatID    int64 `json:"chat_id"`
		MessageID int64 `json:"message_id"`
	}
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	p := s.people[m.ChatID]
	switch {
	case p == nil:
		return nil, gone("chat not found")
	case p.find(m.MessageID) == nil:
		return nil, gone("message to delete not found")
	}
	p.messages = slices.DeleteFunc(p.messages, func(old *message) bool { return old.ID == m.MessageID })
	return true, nil
}
