package whatsapptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// The limits of the real server, in characters.
const (
	maxText     = 4096
	maxBody     = 1024
	maxTitle    = 20
	maxButtonID = 256
	maxButtons  = 3
	maxCallback = 512
	maxPayload  = 128
)

// outgoing is a message to send. The server refuses a call with any other field.
type outgoing struct {
	Product       string `json:"messaging_product"`
	RecipientType string `json:"recipient_type"`
	To            string `json:"to"`
	Context       *struct {
		ID string `json:"message_id"`
	} `json:"context"`
	Type string `json:"type"`
	Text *struct {
		PreviewURL *bool  `json:"preview_url"`
		Body       string `json:"body"`
	} `json:"text"`
	Interactive *struct {
		Type   string                `json:"type"`
		Body   struct{ Text string } `json:"body"`
		Action struct {
			Buttons []struct {
				Type  string `json:"type"`
				Reply Button `json:"reply"`
			} `json:"buttons"`
		} `json:"action"`
	} `json:"interactive"`
	Template *struct {
		Name       string                `json:"name"`
		Language   struct{ Code string } `json:"language"`
		Components []component           `json:"components"`
	} `json:"template"`
	Callback string `json:"biz_opaque_callback_data"`
}

type component struct {
	Type       string `json:"type"`
	SubType    string `json:"sub_type"`
	Index      string `json:"index"`
	Parameters []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Payload string `json:"payload"`
	} `json:"parameters"`
}

// Button is a button under a message.
type Button struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// send checks a message and puts it into the person's chat.
func (s *Server) send(body []byte) (id string, f *failure) {
	var m outgoing
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return "", bad("can't parse: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.people[m.To]
	if f := s.check(&m, p); f != nil {
		return "", f
	}
	if f := s.spend(m.To, pairBurst, 1.0/6, 131056); f != nil {
		return "", f
	}
	if f := s.spend("", allBurst, allBurst, 130429); f != nil {
		return "", f
	}
	refused := s.refusal(&m, p)
	if refused != nil && !s.late {
		return "", refused
	}
	s.lastID++
	sent := &message{ID: fmt.Sprint("wamid.", s.lastID), Type: m.Type, callback: m.Callback, person: m.To}
	if refused != nil {
		s.report(sent, "failed", refused)
		return sent.ID, nil
	}
	sent.fill(&m)
	p.messages = append(p.messages, sent)
	if s.receipts {
		s.report(sent, "sent", nil)
		s.report(sent, "delivered", nil)
	}
	return sent.ID, nil
}

// refusal returns the reason why the server cannot send a message to a person although the
// message is correct.
func (s *Server) refusal(m *outgoing, p *person) *failure {
	switch {
	case p == nil || p.blocked:
		return &failure{status: http.StatusBadRequest, code: 131026, words: "Message undeliverable"}
	case m.Type != "template" && !s.now().Before(p.windowEnds):
		return &failure{status: http.StatusBadRequest, code: 131047, words: "Re-engagement message: more than 24 hours have passed since the customer last replied to this number"}
	}
	return nil
}

func (s *Server) check(m *outgoing, p *person) *failure {
	switch {
	case m.Product != "whatsapp" || m.RecipientType != "individual":
		return bad("messaging_product and recipient_type are required")
	case m.To == "" || strings.Trim(m.To, "0123456789") != "":
		return bad("the parameter to is required, in digits")
	case len(m.Callback) > maxCallback:
		return bad("biz_opaque_callback_data is too long")
	case m.Context != nil && p != nil && p.find(m.Context.ID) == nil:
		return bad("message_id %s does not exist", m.Context.ID)
	}
	switch m.Type {
	case "text":
		return m.checkText()
	case "interactive":
		return m.checkInteractive()
	case "template":
		return m.checkTemplate()
	}
	return bad("unsupported type %q", m.Type)
}

func (m *outgoing) checkText() *failure {
	switch {
	case m.Text == nil || m.Interactive != nil || m.Template != nil:
		return bad("a text message has a text alone")
	case m.Text.PreviewURL == nil || *m.Text.PreviewURL:
		return bad("a link preview would be fetched")
	}
	return checkText(m.Text.Body, maxText)
}

func checkText(text string, limit int) *failure {
	switch {
	case strings.TrimSpace(text) == "" || strings.TrimSpace(text) != text:
		return bad("the text is empty, or would be trimmed")
	case utf8.RuneCountInString(text) > limit:
		return bad("the text has %d characters; the limit is %d", utf8.RuneCountInString(text), limit)
	case strings.Count(text, "```")%2 != 0:
		return bad("a block of code is not closed")
	}
	return nil
}

func (m *outgoing) checkInteractive() *failure {
	if m.Interactive == nil || m.Text != nil || m.Template != nil || m.Interactive.Type != "button" {
		return bad("an interactive message has buttons alone")
	}
	all := m.Interactive.Action.Buttons
	if len(all) < 1 || len(all) > maxButtons {
		return bad("a message has 1 to %d buttons, and not %d", maxButtons, len(all))
	}
	ids, titles := map[string]bool{}, map[string]bool{}
	for _, b := range all {
		id, title := b.Reply.ID, b.Reply.Title
		switch {
		case b.Type != "reply":
			return bad("button type %q", b.Type)
		case id == "" || strings.TrimSpace(id) != id || utf8.RuneCountInString(id) > maxButtonID || ids[id]:
			return bad("button id %q", id)
		case title == "" || strings.TrimSpace(title) != title || utf8.RuneCountInString(title) > maxTitle || titles[title]:
			return bad("button title %q", title)
		}
		ids[id], titles[title] = true, true
	}
	return checkText(m.Interactive.Body.Text, maxBody)
}

func (m *outgoing) checkTemplate() *failure {
	t := m.Template
	if t == nil || m.Text != nil || m.Interactive != nil || t.Name != Template || t.Language.Code != "en" {
		return bad("(#132001) Template name does not exist in the translation")
	}
	if len(t.Components) != 2 || len(t.Components[0].Parameters) != 1 || len(t.Components[1].Parameters) != 1 {
		return bad("(#132000) Number of parameters does not match")
	}
	body, tap := t.Components[0], t.Components[1]
	text := body.Parameters[0].Text
	switch {
	case body.Type != "body" || body.Parameters[0].Type != "text" || text == "" || len(text) > maxBody || strings.ContainsAny(text, "\n\t") || strings.Contains(text, "    "):
		return bad("(#132018) the template's text %q", text)
	case tap.Type != "button" || tap.SubType != "quick_reply" || tap.Index != "0" || tap.Parameters[0].Type != "payload" || len(tap.Parameters[0].Payload) > maxPayload:
		return bad("(#132018) the template's button")
	}
	return nil
}
