package hook

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

func newRequest(host Host, call Call, o Options) (schemas.Request, error) {
	details, err := agents.WithCwd(call.Input, call.Cwd)
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
		Title:         agents.Title(call.Action),
		ToolName:      call.ToolName,
		ActionType:    call.Action,
		ActionDetails: details,
		AgentName:     host.Agent,
		Host:          o.Host,
		User:          o.User,
		Project:       cmp.Or(o.Project, call.Project, call.Cwd),
		SessionLabel:  o.SessionLabel,
		Options:       schemas.DefaultOptions(),
		HostAsks:      call.HostAsks,
		CreatedAt:     time.Now().UTC(),
		// A host may send the same call again after its restart. With Rejoin, the call then waits for
		// the request that nod has stored already.
		Rejoin: call.ToolCallID != "",
	}
	if dir := cmp.Or(call.Cwd, call.Project); r.SessionLabel == "" && dir != "" {
		r.SessionLabel = filepath.Base(dir)
	}
	if call.ChangesInput {
		r.Contain = o.Contain
		r.SetNod(o.Nod)
	}
	for _, rule := range call.Rules {
		r.Options = append(r.Options, rule.Option)
	}
	return r, nil
}

// verdict converts the decision d about the request r to a verdict on the call.
func verdict(call Call, r schemas.Request, d schemas.Decision) Verdict {
	if heard := agents.DescribeDecision(&r, &d); !heard.Allowed {
		return deny(heard.Text)
	}
	v := Verdict{Effect: Allow, Reason: "Allowed through nod.", Input: call.Input}
	if d.UpdatedInput != nil {
		edited, err := agents.WithoutCwd(d.UpdatedInput, call.Input, call.Cwd)
		if err != nil {
			return deny("Allowed with an edit that cannot be carried out: " + err.Error())
		}
		if v.Input, v.Edited = edited, true; d.By.Kind == schemas.ByPolicy && d.Message != "" {
			v.Reason += " " + strings.ToUpper(d.Message[:1]) + d.Message[1:] + "."
		}
	}
	for _, rule := range call.Rules {
		chosen := rule.Option.OptionID == d.OptionID && rule.Option.Kind == d.OptionKind
		if chosen && d.By.Kind == schemas.ByHuman {
			v.Update = rule.Update
		}
	}
	return v
}
