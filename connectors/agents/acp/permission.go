package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// permission is a parsed session/request_permission message. It also contains the request for nod that
// readPermission made from it.
type permission struct {
	id      json.RawMessage // the JSON-RPC id
	session string          // the agent's own session id
	call    string          // the agent's own id of the tool call
	request schemas.Request
	options map[string]json.RawMessage // the id of each option as the agent wrote it, by the option's decoded id
}

// The limits in the JSON Schema of a request. Lengths are in characters.
const (
	maxTitle   = 512
	maxName    = 256 // the largest length of an option's name, in characters
	maxID      = 256 // the largest length of the id of an option or a tool call, in characters
	maxOptions = 16
)

// errQuestion means that the agent does not ask for a permission, but asks its user to choose
// something. Only the editor can show such a question.
var errQuestion = errors.New("the request is a question, not a permission")

// errOver means that the call can no longer run, because the agent has ended or dropped it.
var errOver = errors.New("the agent has ended the call, or dropped it after a denial")

// readPermission parses a permission request. If the call can no longer run, the error is errOver. After
// any other error, the editor must handle the request, because nod cannot show it to a person in full.
func (s *sidecar) readPermission(line []byte, m message) (permission, error) {
	params := object(m.params)
	call := object(params["toolCall"])
	p := permission{id: m.id, session: text(params["sessionId"])}
	switch {
	case !utf8.Valid(line):
		return p, errors.New("the request is not UTF-8")
	case p.session == "":
		return p, errors.New("the request names no session")
	case call == nil:
		return p, errors.New("the request names no tool call")
	}
	p.call = text(call["toolCallId"])
	told, over := s.cache.toolCall(p.session, call)
	if over {
		return p, errOver
	}
	options, err := p.readOptions(list(params["options"]))
	if err != nil {
		return p, err
	}
	if told.question() {
		return p, errQuestion
	}
	p.request, err = s.newRequest(p.session, call, told, s.cache.offered(options))
	return p, err
}

// readOptions parses the options, and returns those that a prompt can show in full. It returns an error
// if there are too many options, if two have the same id, if they are a choice instead of a permission,
// or if none of the returned options allows the request.
func (p *permission) readOptions(all []json.RawMessage) ([]schemas.Option, error) {
	var out []schemas.Option
	p.options = map[string]json.RawMessage{}
	kinds := map[schemas.OptionKind]int{}
	for _, raw := range all {
		fields := object(raw)
		o := schemas.Option{OptionID: text(fields["optionId"]), Name: text(fields["name"]), Kind: schemas.OptionKind(text(fields["kind"]))}
		o.Name = cmp.Or(o.Name, string(o.Kind))
		if _, twice := p.options[o.OptionID]; o.OptionID == "" || twice {
			return nil, errors.New("an option has no id, or the id of another option")
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
	case kinds[schemas.AllowOnce] > 1: // if several options allow once, only a person can choose one of them
		return nil, errQuestion
	case !slices.ContainsFunc(out, func(o schemas.Option) bool { return o.Kind.Allows() }):
		return nil, errors.New("the request offers no option that allows")
	case len(out) > maxOptions:
		return nil, errors.New("the request offers more options than nod can show")
	}
	return out, nil
}

// newRequest returns the request for nod. Its id is new and not that of the tool call, because an agent
// may ask about the same call again, for example after an edit. The decision about one such request
// must not answer another.
func (s *sidecar) newRequest(session string, call map[string]json.RawMessage, told toolCall, options []schemas.Option) (schemas.Request, error) {
	dir, _ := s.cache.session(session)
	own, ok := s.cache.own(told, call, dir)
	if !ok {
		details, err := detailsOf(call, told.title)
		if err != nil {
			return schemas.Request{}, err
		}
		own = ownCall{tool: told.name(), action: told.action(), details: details}
	}
	r := s.sessionRequest(session)
	r.ToolCallID, r.Kind, r.Title = told.id, schemas.KindToolCall, agents.Cut(cmp.Or(told.title, "Tool Use Approval"), maxTitle)
	r.ToolName, r.ActionType, r.ActionDetails, r.Reason, r.Options = own.tool, own.action, own.details, own.reason, options
	if utf8.RuneCountInString(r.ToolCallID) > maxID {
		r.ToolCallID = agents.ID(r.ToolCallID)
	}
	return r, nil
}

// sessionRequest returns a request with a new id and the data of a session. The caller must add the
// content.
func (s *sidecar) sessionRequest(session string) schemas.Request {
	dir, agent := s.cache.session(session)
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: agents.ID(session), PendingID: agents.NewID(),
		AgentName: agents.Cut(cmp.Or(s.opts.AgentName, agent), agents.MaxLabel), Host: s.opts.Host, User: s.opts.User,
		Project: dir, CreatedAt: time.Now().UTC(),
	}
	if dir != "" {
		r.SessionLabel = agents.Cut(filepath.Base(dir), agents.MaxLabel)
	}
	return r
}

// detailsOf returns the tool's input. It keeps the input's bytes, but renames a field "cwd". If the
// input is empty or no object, detailsOf returns an object with what the editor shows: the input, the
// title, the content and the locations. It adds no "cwd", because the agent's shell may have left the
// session's directory.
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
		return nil, errors.New("the tool call has no input, title, content or locations to show")
	}
	return schemas.Encode(shown)
}

// withoutCwd renames the field "cwd" of input, if there is one. The model chose its value, and rules would
// take it for the directory that the host reports. No rule matches the new name, so nod asks a person.
func withoutCwd(input json.RawMessage) (json.RawMessage, error) {
	if _, named := object(input)["cwd"]; !named {
		return input, nil
	}
	v, err := hujson.Parse(input)
	if err != nil {
		return nil, err
	}
	o := v.Value.(*hujson.Object) // cannot fail, because object has found a JSON object
	for i := range o.Members {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok && name.String() == "cwd" {
			o.Members[i].Name.Value = hujson.String("cwd, in the input")
		}
	}
	return v.Pack(), nil
}
