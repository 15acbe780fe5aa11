package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of the real server, in characters.
const (
	maxBlocks     = 50
	maxViewBlocks = 100
	maxText       = 3000  // the limit for the text of a section, which this server also applies to rich text
	maxAll        = 12000 // the limit for the text of all blocks together
	maxFallback   = 4000
	maxLabel      = 75
	maxActionID   = 255
	maxValue      = 2000
	maxElements   = 25
	maxTitle      = 24
	maxMetadata   = 3000
)

// outgoing is a message to send or edit. The server refuses a call with any other field.
type outgoing struct {
	Channel     string            `json:"channel"`
	TS          string            `json:"ts"`
	ThreadTS    string            `json:"thread_ts"`
	User        string            `json:"user"`
	Text        string            `json:"text"`
	Blocks      []json.RawMessage `json:"blocks"`
	Parse       string            `json:"parse"`
	UnfurlLinks *bool             `json:"unfurl_links"`
	UnfurlMedia *bool             `json:"unfurl_media"`
}

type plainText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"`
}

type block struct {
	Type     string            `json:"type"`
	BlockID  string            `json:"block_id"`
	Elements []json.RawMessage `json:"elements"`
	Label    *plainText        `json:"label"`
	Element  *input            `json:"element"`
}

type input struct {
	Type      string `json:"type"`
	ActionID  string `json:"action_id"`
	Multiline bool   `json:"multiline"`
	MaxLength int    `json:"max_length"`
	Initial   string `json:"initial_value"`
}

type button struct {
	Type     string    `json:"type"`
	Text     plainText `json:"text"`
	ActionID string    `json:"action_id"`
	Value    string    `json:"value"`
}

type rich struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URL      string `json:"url"`
	Elements []rich `json:"elements"`
	Style    *struct {
		Bold bool `json:"bold"`
		Code bool `json:"code"`
	} `json:"style"`
}

// Button is a button of a message or dialog.
type Button struct{ Label, Value string }

// layout contains the blocks of a message or dialog as a person sees them.
type layout struct {
	text    string
	links   []string
	buttons []Button
	field   *input
}

func check(raw []json.RawMessage, most int) (l layout, f *failure) {
	if len(raw) == 0 || len(raw) > most {
		return l, bad("invalid_blocks", "%d blocks", len(raw))
	}
	ids, actions, all := map[string]bool{}, map[string]bool{}, 0
	var text strings.Builder
	for _, one := range raw {
		var b block
		if f := strict(one, &b); f != nil {
			return l, f
		}
		if b.BlockID != "" && ids[b.BlockID] || len(b.BlockID) > maxActionID {
			return l, bad("invalid_blocks", "block_id %q is used twice or too long", b.BlockID)
		}
		ids[b.BlockID] = true
		n := 0
		switch b.Type {
		case "rich_text":
			n, f = l.rich(b.Elements, &text)
		case "actions":
			f = l.actions(b.Elements, actions)
		case "input":
			f = l.input(&b, &text)
		default:
			f = bad("invalid_blocks", "the type %q", b.Type)
		}
		if f != nil {
			return l, f
		}
		all += n
	}
	if all > maxAll {
		return l, bad("msg_blocks_too_long", "%d characters", all)
	}
	l.text = text.String()
	return l, nil
}

func (l *layout) rich(elements []json.RawMessage, text *strings.Builder) (n int, f *failure) {
	if len(elements) == 0 {
		return 0, bad("invalid_blocks", "an empty rich_text")
	}
	for _, raw := range elements {
		var e rich
		if f := strict(raw, &e); f != nil {
			return n, f
		}
		if e.Type != "rich_text_section" && e.Type != "rich_text_preformatted" || len(e.Elements) == 0 {
			return n, bad("invalid_blocks", "a rich_text with %q", e.Type)
		}
		for _, piece := range e.Elements {
			switch {
			case piece.Type == "link" && e.Type == "rich_text_section":
				l.links = append(l.links, piece.URL)
			case piece.Type != "text" || piece.Text == "":
				return n, bad("invalid_blocks", "a rich_text with %q %q", piece.Type, piece.Text)
			case e.Type == "rich_text_preformatted" && piece.Style != nil:
				return n, bad("invalid_blocks", "style in a preformatted text")
			}
			text.WriteString(piece.Text)
			n += utf8.RuneCountInString(piece.Text)
		}
		text.WriteString("\n")
	}
	if n > maxText {
		return n, bad("invalid_blocks", "must be less than 3001 characters")
	}
	return n, nil
}

func (l *layout) actions(elements []json.RawMessage, seen map[string]bool) *failure {
	if len(elements) == 0 || len(elements) > maxElements {
		return bad("invalid_blocks", "%d elements", len(elements))
	}
	for _, raw := range elements {
		var b button
		if f := strict(raw, &b); f != nil {
			return f
		}
		switch {
		case b.Type != "button" || b.Text.Type != "plain_text" || b.Text.Emoji:
			return bad("invalid_blocks", "a button of type %q whose label may become emoji", b.Type)
		case b.Text.Text == "" || utf8.RuneCountInString(b.Text.Text) > maxLabel:
			return bad("invalid_blocks", "the label %q", b.Text.Text)
		case b.ActionID == "" || len(b.ActionID) > maxActionID || seen[b.ActionID]:
			return bad("invalid_blocks", "action_id %q already exists or is too long", b.ActionID)
		case b.Value == "" || len(b.Value) > maxValue:
			return bad("invalid_blocks", "the value %q", b.Value)
		}
		seen[b.ActionID] = true
		l.buttons = append(l.buttons, Button{b.Text.Text, b.Value})
	}
	return nil
}

func (l *layout) input(b *block, text *strings.Builder) *failure {
	switch e := b.Element; {
	case b.Label == nil || b.Label.Type != "plain_text" || b.Label.Text == "" || utf8.RuneCountInString(b.Label.Text) > 2000:
		return bad("invalid_blocks", "an input without a label")
	case e == nil || e.Type != "plain_text_input" || e.ActionID == "" || e.MaxLength > maxText || utf8.RuneCountInString(e.Initial) > maxText:
		return bad("invalid_blocks", "the input %+v", e)
	}
	text.WriteString(b.Label.Text + "\n")
	l.field = b.Element
	return nil
}

// checkMessage enforces the rules for a message. It refuses a message in which Slack would read markup.
func checkMessage(m *outgoing) (layout, *failure) {
	switch {
	case strings.TrimSpace(m.Text) == "" || utf8.RuneCountInString(m.Text) > maxFallback:
		return layout{}, bad("no_text", "the text has %d characters", len(m.Text))
	case strings.ContainsAny(m.Text, "<>") || m.Parse != "none":
		return layout{}, bad("invalid_arguments", "Slack would read markup in %q", m.Text)
	}
	return check(m.Blocks, maxBlocks)
}

func (s *Server) postMessage(body []byte) (map[string]any, *failure) {
	var m outgoing
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	if m.UnfurlLinks == nil || *m.UnfurlLinks || m.UnfurlMedia == nil || *m.UnfurlMedia {
		return nil, bad("invalid_arguments", "Slack would fetch addresses")
	}
	look, f := checkMessage(&m)
	if f != nil {
		return nil, f
	}
	p := s.owner(m.Channel)
	switch {
	case p == nil:
		return nil, refused("channel_not_found")
	case p.away:
		return nil, refused("user_disabled")
	case m.ThreadTS != "" && p.find(m.ThreadTS) == nil:
		return nil, refused("thread_not_found")
	}
	if f := s.spend(p.id); f != nil {
		return nil, f
	}
	s.lastID++
	sent := &message{ts: fmt.Sprintf("1700000000.%06d", s.lastID), thread: m.ThreadTS, layout: look, raw: m.Blocks, alert: m.Text}
	p.messages = append(p.messages, sent)
	if m.ThreadTS == "" {
		p.read = append(p.read, Read{TS: sent.ts})
	}
	return map[string]any{"channel": p.channel(), "ts": sent.ts}, nil
}

// owner returns the person with this id, or the person whose conversation with the app has this
// id.
func (s *Server) owner(channel string) *person {
	if p := s.people[channel]; p != nil {
		return p
	}
	return s.people[strings.TrimPrefix(channel, "D")]
}

func (s *Server) update(body []byte) (map[string]any, *failure) {
	var m outgoing
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	look, f := checkMessage(&m)
	if f != nil {
		return nil, f
	}
	p := s.people[strings.TrimPrefix(m.Channel, "D")]
	if p == nil || !strings.HasPrefix(m.Channel, "D") {
		return nil, refused("channel_not_found")
	}
	old := p.find(m.TS)
	if old == nil {
		return nil, refused("message_not_found")
	}
	old.layout, old.raw, old.alert = look, m.Blocks, m.Text
	return map[string]any{"channel": m.Channel, "ts": m.TS}, nil
}

func (s *Server) postEphemeral(body []byte) (map[string]any, *failure) {
	var m outgoing
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	look, f := checkMessage(&m)
	if f != nil {
		return nil, f
	}
	p, by := s.people[strings.TrimPrefix(m.Channel, "D")], s.people[m.User]
	switch {
	case p == nil:
		return nil, refused("channel_not_found")
	case by != p:
		return nil, refused("user_not_in_channel")
	}
	by.read = append(by.read, Read{Text: strings.TrimSpace(look.text), Links: look.links})
	return map[string]any{"message_ts": "1"}, nil
}

// view is a dialog.
type view struct {
	Type       string            `json:"type"`
	CallbackID string            `json:"callback_id"`
	Title      *plainText        `json:"title"`
	Submit     *plainText        `json:"submit"`
	Close      *plainText        `json:"close"`
	Blocks     []json.RawMessage `json:"blocks"`
	Metadata   string            `json:"private_metadata"`

	id    string
	about *trigger
	sent  bool // the person has sent the dialog and waits for the app
	layout
}

// trigger is an act of a person, such as a press, after which the app may open one dialog.
type trigger struct {
	by      *person
	ts      string // the id of the message with the pressed button
	used    bool
	submits *view // the filled-in dialog that the person has sent; nil if the person pressed a button
}

func (s *Server) checkView(v *view) *failure {
	switch {
	case v.Type != "modal" || v.Title == nil || v.Title.Text == "" || utf8.RuneCountInString(v.Title.Text) > maxTitle:
		return bad("invalid_arguments", "the title of a dialog")
	case len(v.CallbackID) > maxActionID || len(v.Metadata) > maxMetadata:
		return bad("invalid_arguments", "callback_id or private_metadata is too long")
	}
	look, f := check(v.Blocks, maxViewBlocks)
	switch {
	case f != nil:
		return f
	case (look.field != nil) != (v.Submit != nil):
		return bad("invalid_arguments", "a dialog has a field and no submit, or the reverse")
	}
	v.layout = look
	return nil
}

func (s *Server) openView(body []byte) (map[string]any, *failure) {
	var m struct {
		Trigger string `json:"trigger_id"`
		View    view   `json:"view"`
	}
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	t := s.triggers[m.Trigger]
	switch {
	case t == nil:
		return nil, refused("invalid_trigger_id")
	case t.used:
		return nil, refused("exchanged_trigger_id")
	}
	if f := s.checkView(&m.View); f != nil {
		return nil, f
	}
	t.used = true
	s.lastID++
	v := m.View
	v.id, v.about = fmt.Sprint("V", s.lastID), t
	t.by.show(&v)
	return map[string]any{}, nil
}

func (s *Server) updateView(body []byte) (map[string]any, *failure) {
	var m struct {
		ID   string `json:"view_id"`
		View view   `json:"view"`
	}
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	if f := s.checkView(&m.View); f != nil {
		return nil, f
	}
	for _, p := range s.people {
		if p.view != nil && p.view.id == m.ID {
			v := m.View
			v.id, v.about = m.ID, p.view.about
			p.show(&v)
			return map[string]any{}, nil
		}
	}
	return nil, refused("not_found")
}

func (p *person) show(v *view) {
	p.view = v
	p.read = append(p.read, Read{Text: strings.TrimSpace(v.text)})
}

func (p *person) find(ts string) *message {
	i := slices.IndexFunc(p.messages, func(m *message) bool { return m.ts == ts })
	if i < 0 {
		return nil
	}
	return p.messages[i]
}
