package agents

import (
	"encoding/json"

	"github.com/nodbus/nod/schemas"
)

// The ids of the options for a plan. The last option of a plan has the id noAnswer, like that of a
// question.
const (
	acceptEdits  = "plan_accept_edits"
	askEdits     = "plan_ask_edits"
	keepPlanning = "plan_keep"
	changePlan   = "plan_change"
)

// PlanRequest returns a request that asks people to approve a plan. The plan is in the input of Claude
// Code's tool ExitPlanMode. r is the request for the whole tool call, and leave is the label of the
// option that gives no answer. ok is false if the input has no plan that nod can show.
func PlanRequest(r schemas.Request, leave string) (asks schemas.Request, ok bool) {
	r.Kind, r.ActionType, r.Title = schemas.KindQuestion, schemas.ActionOther, "Plan: may the agent carry it out?"
	r.Options = []schemas.Option{
		{OptionID: acceptEdits, Name: "Go on, and accept edits without asking", Kind: schemas.AllowOnce},
		{OptionID: askEdits, Name: "Go on, and ask about each edit", Kind: schemas.AllowOnce},
		{OptionID: keepPlanning, Name: "Keep planning", Kind: schemas.RejectOnce},
		{OptionID: changePlan, Name: "Keep planning, and change the plan", Kind: schemas.RejectOnce, Text: true},
		{OptionID: noAnswer, Name: leave, Kind: schemas.RejectOnce},
	}
	_, ok = r.Plan()
	return r, ok
}

// PlanAnswer is a person's answer to a PlanRequest.
type PlanAnswer struct {
	Approved bool
	// Update sets Claude Code's permission mode for the rest of the session. Its format is that of
	// updatedPermissions in a reply to Claude Code. It is nil if Approved is false.
	Update json.RawMessage
	// Message tells the agent to keep planning. It is empty if Approved is true.
	Message string
}

// AnswerToPlan returns the answer that the decision d about r contains. ok is false if no person made
// the decision, or if the person chose to give no answer.
func AnswerToPlan(r schemas.Request, d schemas.Decision) (a PlanAnswer, ok bool) {
	option, offered := r.Option(d.OptionID)
	if !offered || d.By.Kind != schemas.ByHuman || option.Kind != d.OptionKind {
		return a, false
	}
	mode := map[string]string{acceptEdits: "acceptEdits", askEdits: "default"}[option.OptionID]
	switch {
	case mode != "" && Allows(r, d):
		update, err := schemas.Encode(map[string]string{"type": "setMode", "mode": mode, "destination": "session"})
		return PlanAnswer{Approved: true, Update: update}, err == nil
	case d.Outcome != schemas.Denied || option.OptionID == noAnswer:
		return a, false
	}
	a.Message = "The plan is not approved: keep planning."
	if d.Message != "" && d.Message != option.Name {
		a.Message = "The plan is not approved, keep planning: " + d.Message
	}
	return a, true
}
