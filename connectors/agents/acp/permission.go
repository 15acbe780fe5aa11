package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// permission is one session/request_permission.
type permission struct {
	id      json.RawMessage // of the JSON-RPC request
	session string          // as the agent names it
	request schemas.Request
	options map[string]json.RawMessage // each option's id as the agent wrote it
}

// What nod shows in full; see the request's JSON Schema.
const (
	maxTitle   = 512
	maxLabel   = 512
	maxName    = 256 // of an option
	maxID      = 256 // of an option or a tool call
	maxOptions = 16
)

// errQuestion is why a request is the editor's to show, whatever else holds.
var errQuestion = errors.New("it is a question, not a permission")

// readPermission understands a permission request. An error says why it is
// none that nod could ask about.
func (s *sidecar) readPermission(line []byte, m message) (permission, error) {
	params := object(m.params)
	call := object(params["toolCall"])
	p := permission{id: m.id, session: text(params["sessionId"])}
	switch {
	case !utf8.Valid(line):
		return p, errors.New("it is not UTF-8")
	case p.session == "":
		return p, errors.New("it names no session")
	case call == nil:
		return p, errors.New("it names no tool call")
	}
	told := s.cache.toolCall(p.session, call)
	options, err := p.readOptions(list(params["options"]))
	if err != nil {
		return p, err
	}
	if told.question() {
		return p, errQuestion
	}
	p.request, err = s.newRequest(p.session, call, told, options)
	return p, err
}

// readOptions takes the options that a person can be shown whole.
func (p *permission) readOptions(all []json.RawMessage) ([]schemas.Option, error) {
	var out []schemas.Option
	p.options = map[string]json.RawMessage{}
	kinds := map[schemas.OptionKind]int{}
	for _, raw := range all {
		fields := object(raw)
		o := schemas.Option{OptionID: text(fields["optionId"]), Name: text(fields["name"]), Kind: schemas.OptionKind(text(fields["kind"]))}
		o.Name = cmp.Or(o.Name, string(o.Kind))
		if _, twice := p.options[o.OptionID]; o.OptionID == "" || twice {
			return nil, errors.New("an option has no id of its own")
		}
		p.options[o.OptionID] = fields["optionId"]
		kinds[o.Kind]++
		if utf8.RuneCountInString(o.Name) <= maxName && utf8.RuneCountInString(o.OptionID) <= maxID {
			out = append(out, o)
		}
	}
	for kind := range kinds {
		if !slices.Contains([]schemas.OptionKind{schemas.AllowOnce, schemas.AllowAlways, schemas.RejectOnce, schemas.RejectAlways}, kind) {
			return nil, errQuestion
		}
	}
	switch {
	case kinds[schemas.AllowOnce] > 1: // which one is meant is for a person to pick
		return nil, errQuestion
	case !slices.ContainsFunc(out, func(o schemas.Option) bool { return o.Kind.Allows() }):
		return nil, errors.New("it offers nothing that nod could allow")
	case len(out) > maxOptions:
		return nil, errors.New("it offers more than nod can show")
	}
	return out, nil
}

// newRequest is what nod is asked. Its id is its own and not the tool call's: an
// agent asks again about a call that was edited, or after a cancelled turn, and
// an old decision must not answer.
func (s *sidecar) newRequest(session string, call map[string]json.RawMessage, told toolCall, options []schemas.Option) (schemas.Request, error) {
	details, err := detailsOf(call, told.title)
	if err != nil {
		return schemas.Request{}, err
	}
	dir, agent := s.cache.session(session)
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: agents.ID(session), PendingID: agents.NewID(),
		ToolCallID: text(call["toolCallId"]), Kind: schemas.KindToolCall,
		Title: cut(cmp.Or(told.title, "Tool Use Approval"), maxTitle), ToolName: told.name(), ActionType: told.action(), ActionDetails: details,
		AgentName: cut(cmp.Or(s.opts.AgentName, agent), maxLabel), Host: s.opts.Host, User: s.opts.User,
		Project: dir, Options: options, CreatedAt: time.Now().UTC(),
	}
	if dir != "" {
		r.SessionLabel = cut(filepath.Base(dir), maxLabel)
	}
	if utf8.RuneCountInString(r.ToolCallID) > maxID {
		r.ToolCallID = agents.ID(r.ToolCallID)
	}
	return r, nil
}

// detailsOf is the tool's input, byte for byte where it is an object. Where the
// agent sends none, or an empty one, it is what the editor would show: the
// title, the content and the places. It names no directory that rules could go
// by: a session's need not be the one that its shell stands in by now.
func detailsOf(call map[string]json.RawMessage, title string) (json.RawMessage, error) {
	input := call["rawInput"]
	if fields := object(input); len(fields) > 0 {
		return withoutCwd(input)
	}
	shown := map[string]any{}
	if fields := object(input); fields == nil && len(input) > 0 && string(input) != "null" {
		shown["input"] = input
	}
	if title != "" {
		shown["title"] = title
	}
	for _, name := range []string{"content", "locations"} {
		if len(list(call[name])) > 0 {
			shown[name] = call[name]
		}
	}
	if len(shown) == 0 {
		return nil, errors.New("it does not say what it is about")
	}
	return schemas.Encode(shown)
}

// withoutCwd is input with a field "cwd" under another name: rules would take it
// for the host's word about where the tool runs, and it is the model's. They
// know no field of the other name, and ask.
func withoutCwd(input json.RawMessage) (json.RawMessage, error) {
	if _, named := object(input)["cwd"]; !named {
		return input, nil
	}
	v, err := hujson.Parse(input)
	if err != nil {
		return nil, err
	}
	o := v.Value.(*hujson.Object) // object has seen that
	for i := range o.Members {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok && name.String() == "cwd" {
			o.Members[i].Name.Value = hujson.String("cwd, in the input")
		}
	}
	return v.Pack(), nil
}

// cut is s in at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(strings.ToValidUTF8(s, "�"))[:n-1]) + "…"
}
