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

// permission is a parsed session/request_permission message, with the request that readPermission made
// for nod.
type permission struct {
	id      json.RawMessage // the JSON-RPC id
	session string          // the agent's own session id
	call    string          // the agent's own id of the tool call
	request schemas.Request
	options map[string]json.RawMessage // each option's id as the agent wrote it, by the decoded id
}

// The limits in the JSON Schema of a request: lengths in characters, and the number of options.
const (
	maxTitle   = 512
	maxName    = 256 // maximum length of an option's name
	maxID      = 256 // maximum length of the id of an option or tool call
	maxOptions = 16
)

// errQuestion means that the agent asks its user to choose something, instead of asking whether the
// agent may act. Only the editor can show such a question.
var errQuestion = errors.New("the request is a question, not a permission")

// errOver means that the agent has already ended or dropped the call, so that no answer can let it
// run.
var errOver = errors.New("the agent has ended the call, or dropped it after a denial")

// readPermission parses a permission request. It returns errOver if the agent has ended the call. If
// nod cannot show the request to a person in full, it returns another error, and the editor handles
// the request.
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

// readOptions parses the options, and returns those that are short enough to show in full. It returns
// an error if there are too many options, if their ids are not unique, if they offer a choice instead
// of a permission, or if no returned option would allow the request.
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
	case kinds[schemas.AllowOnce] > 1: // only a person can pick one of several options that allow once
		return nil, errQuestion
	case !slices.ContainsFunc(out, func(o schemas.Option) bool { return o.Kind.Allows() }):
		return nil, errors.New("the request offers no option that allows")
	case len(out) > maxOptions:
		return nil, errors.New("the request offers more options than nod can show")
	}
	return out, nil
}

// newRequest returns the request for nod. It makes a new id instead of using the tool call's id. An
// agent may ask about the same call again, for example after an edit, and the decision about the first
// request must not answer the second.
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

// sessionRequest returns a request of a session, with a new id and without content.
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

// detailsOf returns the tool's input with its bytes unchanged, except that it renames a field "cwd".
// If the input is no object or is empty, detailsOf returns an object with the editor's view: input,
// title, content and locations. It adds no "cwd" for rules, because the agent's shell may have left
// the session's directory.
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

// withoutCwd renames a field "cwd" in input. The model chose the field's value, and rules would take
// it for the host's working directory. No rule matches the new name, so nod asks a person.
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
