package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// The tools by which Claude Code asks its user something: no permissions.
const (
	askUserQuestion = "AskUserQuestion"
	exitPlanMode    = "ExitPlanMode"
)

// leaveIt is the option that answers nothing; it is also the message of a person who
// chose it and wrote none.
const leaveIt = "Leave it unanswered"

// cannotShow refuses a question that has no way to a person here.
func cannotShow(tool string) *mcp.CallToolResult {
	return deny(tool + " is a question to a person, which nod cannot show here: ask it in your answer's text instead.")
}

// question puts a call's questions to a person, one after another, and answers with
// the input and what they said. Where one stays without an answer the call is
// refused: this tool has no word that says less.
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
		d, err := c.ask(ctx, asks)
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

// unanswered tells the agent that it has no answer, and what a person said instead.
func unanswered(d schemas.Decision) string {
	if d.By.Kind == schemas.ByHuman && d.Message != "" && d.Message != leaveIt {
		return "The question was left unanswered: " + d.Message
	}
	return "Nobody answered the question: go on without, or ask it in your answer's text."
}
