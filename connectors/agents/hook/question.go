package hook

import (
	"context"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// askQuestions asks a person the questions of a call, one after another, and replies with the answers.
// If one question stays unanswered, the host asks all of them in its own prompt.
func (h *run) askQuestions(ctx context.Context, nod Nod) int {
	answers := map[string]string{}
	for _, q := range h.call.Questions {
		r, err := h.questionRequest(&q)
		if err != nil {
			h.log(err)
			return h.reply(Verdict{Effect: Leave})
		}
		h.noteUnlessSettled(r)
		unregister := h.registerWait(r)
		defer unregister()
		d, err := callUntil(ctx, "asking nod", func(ctx context.Context) (schemas.Decision, error) { return nod.Ask(ctx, r) })
		if err != nil {
			h.log(err)
			exit := h.reply(Verdict{Effect: Leave})
			if agents.MayBeOpen(err) {
				h.release(ctx, nod.Withdraw, r, err.Error())
			}
			return exit
		}
		unregister()
		text, ok := q.Answer(r, d)
		if !ok {
			return h.reply(Verdict{Effect: Leave})
		}
		answers[q.Text] = text
	}
	input, err := agents.WithAnswers(h.call.Input, answers)
	if err != nil {
		h.log(err)
		return h.reply(Verdict{Effect: Leave})
	}
	return h.reply(Verdict{Effect: Allow, Input: input, Edited: true})
}

func (h *run) questionRequest(q *agents.Question) (schemas.Request, error) {
	r, err := newRequest(h.host, h.call, h.opts)
	if err != nil {
		return r, err
	}
	return q.Request(r, "Leave it to the terminal")
}
