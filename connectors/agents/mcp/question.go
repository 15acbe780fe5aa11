package mcp

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// The tools with which Claude Code asks its user a question. To allow such a call is not enough,
// because the question needs an answer.
const (
	askUserQuestion = "AskUserQuestion"
	exitPlanMode    = "ExitPlanMode"
)

// leaveIt is the name of the option that gives no answer. It is also the decision's message if a person
// chooses this option and writes nothing.
const leaveIt = "Leave it unanswered"

// cannotShow returns the denial of a question that nod cannot show to a person.
func cannotShow(tool string) *mcp.CallToolResult {
	return deny(tool + " is a question to a person, which nod cannot show here: ask it in your answer's text instead.")
}

// question asks people the questions of a tool call, one after another. It allows the call, with the
// answers in the call's input. If one question has no answer, it denies the call, because the tool
// approve can only allow or deny.
func (c *call) question(ctx context.Context, use toolUse) *mcp.CallToolResult {
	questions := agents.Questions(use.input)
	if questions == nil {
		return cannotShow(use.tool)
	}
	r, _, err := c.toolRequest(use)
	if err != nil {
		return deny("nod refused the question: " + err.Error())
	}
	answers := map[string]string{}
	for _, q := range questions {
		asks, err := q.Request(r, leaveIt)
		if err != nil {
			return deny("nod refused the question: " + err.Error())
		}
		d, err := c.ask(ctx, &asks)
		if err != nil {
			return deny("The question was not answered: " + errorText(err))
		}
		text, ok := q.Answer(asks, d)
		if !ok {
			return deny(unanswered(d))
		}
		answers[q.Text] = text
	}
	input, err := agents.WithAnswers(use.input, answers)
	if err != nil {
		return deny("nod refused the question: " + err.Error())
	}
	return verdict{Behavior: "allow", Input: input}.result()
}

// plan asks people to approve the plan of a tool call. Without an answer, it denies the call.
func (c *call) plan(ctx context.Context, use toolUse) *mcp.CallToolResult {
	r, _, err := c.toolRequest(use)
	if err != nil {
		return deny("nod refused the plan: " + err.Error())
	}
	r, ok := agents.PlanRequest(r, leaveIt)
	if !ok {
		return cannotShow(use.tool)
	}
	d, err := c.ask(ctx, &r)
	if err != nil {
		return deny("The plan was not answered: " + errorText(err))
	}
	switch answer, ok := agents.AnswerToPlan(r, d); {
	case !ok:
		return deny("No person answered about the plan, so it is not approved: keep planning.")
	case answer.Approved:
		return verdict{Behavior: "allow", Input: use.input, Updates: []json.RawMessage{answer.Update}}.result()
	default:
		return deny(answer.Message)
	}
}

// unanswered returns the text that tells the agent that nobody answered a question. It contains a
// person's message, if there is one.
func unanswered(d schemas.Decision) string {
	if d.By.Kind == schemas.ByHuman && d.Message != "" && d.Message != leaveIt {
		return "The question was left unanswered: " + d.Message
	}
	return "No person answered the question: go on without an answer, or ask it in your answer's text."
}
