package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/tailscale/hujson"
)

// cwdField is where the host says that a call runs. A field of this name in
// the tool's own input is shown under ownCwdField: only the host's word counts,
// and rules, which know no such field, ask.
const (
	cwdField    = "cwd"
	ownCwdField = "cwd, in the input"
)

// newRequest is what nod is asked about call.
func newRequest(host Host, call Call, o Options) (schemas.Request, error) {
	details, err := withCwd(call.Input, call.Cwd)
	if err != nil {
		return schemas.Request{}, err
	}
	r := schemas.Request{
		Type:          schemas.TypeRequest,
		SessionID:     agents.ID(call.SessionID),
		PendingID:     agents.ID(call.ToolCallID),
		TaskID:        call.TaskID,
		ToolCallID:    call.ToolCallID,
		Kind:          schemas.KindToolCall,
		Title:         title(call.Action),
		ToolName:      call.ToolName,
		ActionType:    call.Action,
		ActionDetails: details,
		AgentName:     host.Agent,
		Host:          o.Host,
		User:          o.User,
		Project:       cmp.Or(o.Project, call.Cwd),
		SessionLabel:  o.SessionLabel,
		Options:       schemas.DefaultOptions(),
		HostAsks:      call.HostAsks,
		CreatedAt:     time.Now().UTC(),
		// The host may have asked before it was restarted.
		Rejoin: call.ToolCallID != "",
	}
	if r.SessionLabel == "" && call.Cwd != "" {
		r.SessionLabel = filepath.Base(call.Cwd)
	}
	for _, rule := range call.Rules {
		r.Options = append(r.Options, rule.Option)
	}
	return r, nil
}

func title(a schemas.ActionType) string {
	switch a {
	case schemas.ActionCommand:
		return "Command Execution Approval"
	case schemas.ActionFileWrite:
		return "File Write Approval"
	case schemas.ActionFileRead:
		return "File Read Approval"
	case schemas.ActionNetwork:
		return "Network Access Approval"
	case schemas.ActionMCPTool:
		return "MCP Tool Approval"
	}
	return "Tool Use Approval"
}

// verdict is what the host is told of decision d about r.
func verdict(call Call, r schemas.Request, d schemas.Decision) Verdict {
	if heard := agents.Hear(&r, &d); !heard.Allowed {
		return deny(heard.Text)
	}
	v := Verdict{Effect: Allow, Reason: "Allowed through nod.", Input: call.Input}
	if d.UpdatedInput != nil {
		edited, err := withoutCwd(d.UpdatedInput, call)
		if err != nil {
			return deny("Allowed with an edit that cannot be carried out: " + err.Error())
		}
		v.Input, v.Edited = edited, true
	}
	for _, rule := range call.Rules {
		chosen := rule.Option.OptionID == d.OptionID && rule.Option.Kind == d.OptionKind
		if chosen && d.By.Kind == schemas.ByHuman {
			v.Update = rule.Update
		}
	}
	return v
}

// withCwd is input with the host's "cwd" at its end: people must see where a
// command runs. Everything else stays byte for byte, since a number that went
// through a float would no longer be what is run.
func withCwd(input json.RawMessage, cwd string) (json.RawMessage, error) {
	v, obj, err := parseObject(input)
	if err != nil {
		return nil, fmt.Errorf("read the tool's input: %w", err)
	}
	if cwd == "" {
		return input, nil
	}
	if i := member(obj, cwdField); i >= 0 {
		if member(obj, ownCwdField) >= 0 {
			return nil, fmt.Errorf("the tool's input has a field %q, which nod needs", ownCwdField)
		}
		obj.Members[i].Name.Value = hujson.String(ownCwdField)
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(cwdField)},
		Value: hujson.Value{Value: hujson.String(cwd)},
	})
	return v.Pack(), nil
}

// withoutCwd takes the "cwd" out of a person's edit that withCwd had put there:
// the tool has no such parameter. An edit of it is refused, as the tool would
// run in the old directory all the same.
func withoutCwd(edited json.RawMessage, call Call) (json.RawMessage, error) {
	_, original, err := parseObject(call.Input)
	if err != nil {
		return nil, err
	}
	v, obj, err := parseObject(edited)
	if err != nil {
		return nil, err
	}
	i := member(obj, cwdField)
	if call.Cwd == "" {
		return edited, nil
	}
	if i >= 0 {
		if s, ok := obj.Members[i].Value.Value.(hujson.Literal); !ok || s.Kind() != '"' || s.String() != call.Cwd {
			return nil, errors.New("the directory of a call cannot be changed")
		}
		obj.Members = slices.Delete(obj.Members, i, i+1)
	}
	if own := member(obj, ownCwdField); own >= 0 && member(original, cwdField) >= 0 {
		obj.Members[own].Name.Value = hujson.String(cwdField)
	}
	return v.Pack(), nil
}

func parseObject(raw json.RawMessage) (hujson.Value, *hujson.Object, error) {
	if !isObject(raw) {
		return hujson.Value{}, nil, errors.New("it is not a JSON object")
	}
	v, err := hujson.Parse(raw)
	if err != nil {
		return hujson.Value{}, nil, err
	}
	return v, v.Value.(*hujson.Object), nil // isObject has seen the brace
}

// member is the index of a member by name, the last one where there are
// several, as hosts read them; -1 where there is none.
func member(obj *hujson.Object, name string) int {
	for i, m := range slices.Backward(obj.Members) {
		if m.Name.Value.(hujson.Literal).String() == name { // names are literals
			return i
		}
	}
	return -1
}
