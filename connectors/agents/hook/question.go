package hook

import (
	"context"
	"encoding/json"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

const leaveIt = "Leave it to the terminal"

// askQuestions asks people the questions of a call, one after another, and replies with the answers. If
// one of them gets no answer, the host shows all of them in its own prompt.
func (h *run) askQuestions(ctx context.Context, nod Nod) int {
	answers := map[string]string{}
	for _, q := range h.call.Questions {
		r, err := h.questionRequest(&q)
		if err != nil {
			return h.leave(err)
		}
		d, exit, ok := h.askPerson(ctx, nod, r)
		if !ok {
			return exit
		}
		text, ok := q.Answer(r, d)
		if !ok {
			return h.reply(Verdict{Effect: Leave})
		}
		answers[q.Text] = text
	}
	input, err := agents.WithAnswers(h.call.Input, answers)
	if err != nil {
		return h.leave(err)
	}
	return h.reply(Verdict{Effect: Allow, Input: input, Edited: true})
}

func (h *run) questionRequest(q *agents.Question) (schemas.Request, error) {
	r, err := newRequest(h.host, h.call, h.opts)
	if err != nil {
		return r, err
	}
	return q.Request(r, leaveIt)
}

// askPlan asks people to approve the plan of a call, and replies with the answer. If there is none, the
// host shows the plan in its own prompt.
func (h *run) askPlan(ctx context.Context, nod Nod) int {
	r, err := newRequest(h.host, h.call, h.opts)
	if err != nil {
		return h.leave(err)
	}
	r, ok := agents.PlanRequest(r, leaveIt)
	if !ok {
		return h.reply(Verdict{Effect: Leave})
	}
	d, exit, ok := h.askPerson(ctx, nod, r)
	if !ok {
		return exit
	}
	switch answer, ok := agents.AnswerToPlan(r, d); {
	case !ok:
		return h.reply(Verdict{Effect: Leave})
	case answer.Approved: // the reply contains the input, because Claude Code ignores an allow of a plan without an input
		return h.reply(Verdict{Effect: Allow, Input: h.call.Input, Update: answer.Update})
	default:
		return h.reply(deny(answer.Message))
	}
}

// askForPrompt tells people that a turn of the agent is over. If a person writes the next prompt,
// askForPrompt replies with it, unless the host takes none. Otherwise the agent stays idle. If the
// host's own user writes a prompt first, the host's next event withdraws the request.
func (h *run) askForPrompt(ctx context.Context, turn agents.Turn) int {
	nod, err := h.dial(ctx)
	if err != nil {
		return h.leave(err)
	}
	h.call.Input = json.RawMessage("{}")
	r, err := newRequest(h.host, h.call, h.opts)
	if err == nil {
		r, err = agents.TurnRequest(r, turn)
	}
	if err != nil {
		return h.leave(err)
	}
	if h.stopped() {
		return h.reply(Verdict{Effect: Leave}) // the user has written the next prompt already
	}
	ctx, stop := h.untilStopped(ctx, errPrompted) // the transcript shows this prompt even if nod gets no event about it
	defer stop()
	d, exit, ok := h.askPerson(ctx, nod, r)
	if !ok {
		return exit
	}
	prompt, ok := agents.Reply(r, d)
	if !ok {
		return h.reply(Verdict{Effect: Leave})
	}
	exit = h.reply(Verdict{Effect: Prompt, Reason: prompt})
	if h.hostMovedOn(ctx) {
		h.reportUnheard(ctx, nod, r)
	}
	return exit
}

// askPerson sends nod the request r, which does not ask for a permission. If there is no decision, it
// leaves the call to the host. ok is then false, and exit is the exit code of the process.
func (h *run) askPerson(ctx context.Context, nod Nod, r schemas.Request) (d schemas.Decision, exit int, ok bool) {
	h.noteUnlessSettled(r)
	unregister := h.registerWait(r)
	defer unregister()
	d, err := callUntil(ctx, "asking nod", func(ctx context.Context) (schemas.Decision, error) { return nod.Ask(ctx, r) })
	if err == nil {
		return d, 0, true
	}
	exit = h.leave(err)
	if agents.MayBeOpen(err) {
		h.release(ctx, nod.Withdraw, r, err.Error())
	}
	return d, exit, false
}

// leave logs err, and lets the host ask its own user.
func (h *run) leave(err error) int {
	h.log(err)
	return h.reply(Verdict{Effect: Leave})
}
