package whatsapp

import (
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The actions of buttons. An action that is a number is an index in the options of an agent's question.
const (
	actAllow = people.ActAllow
	actDeny  = people.ActDeny
)

// showButton is the id of the button of a template. A tap on it asks nod to send the waiting prompts.
const showButton = "v1:show"

// mayAllow reports whether a person can allow p on WhatsApp. The chat must show the whole request, and p
// must not be an agent's question. p must not need the code word either, because the word would stay in
// the chat.
func mayAllow(p *schemas.Prompt) bool {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	return once && p.Request.Kind != schemas.KindQuestion && fitsWhole(p) && !p.HasCondition(schemas.ConditionCodeWord)
}

// buttons returns the buttons of a pending prompt. Some questions of agents have no buttons; see choices.
func buttons(p *schemas.Prompt) (all []button) {
	add := func(title, action string) {
		all = append(all, button{"reply", reply{people.ButtonFor(p, action).Text(maxID), title}})
	}
	if p.Request.Kind == schemas.KindQuestion {
		for _, i := range choices(p) {
			title := people.Choice(&p.Request, p.Request.Options[i])
			if people.UTF16(title) > maxTitle || strings.TrimSpace(title) != title {
				title = "Answer " + strconv.Itoa(i+1)
			}
			add(title, strconv.Itoa(i))
		}
		return distinct(all)
	}
	if mayAllow(p) {
		add(allowTitle(p), actAllow)
	}
	add("Deny", actDeny)
	return all
}

// distinct makes the titles of buttons unique, because Meta refuses two buttons with the same
// title: if two are equal, each button gets the title "Answer 1", "Answer 2" and so on.
func distinct(all []button) []button {
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Reply.Title] = true
	}
	if len(seen) == len(all) {
		return all
	}
	for i := range all {
		data, _ := people.ReadButton(all[i].Reply.ID, maxID) // ReadButton cannot fail, because buttons has just made this id
		n, _ := strconv.Atoi(data.Action)
		all[i].Reply.Title = "Answer " + strconv.Itoa(n+1)
	}
	return all
}

func allowTitle(p *schemas.Prompt) string {
	if p.Request.Kind == schemas.KindPermission {
		return "Allow in session" // the message says how long the permission lasts
	}
	return people.AllowLabel(p)
}

// choices returns, for an agent's question, the indexes of the options that get buttons. If there are
// more such options than buttons, the result is empty, and the question must be answered on another
// channel.
func choices(p *schemas.Prompt) (all []int) {
	for i, o := range p.Request.Options {
		if !o.Text && !o.Kind.Remembered() && people.OptionWords(&p.Request, o) != "" && (fitsWhole(p) || !o.Kind.Allows()) {
			all = append(all, i)
		}
	}
	if len(all) > maxButtons {
		return nil
	}
	return all
}

// answerFor returns the answer to p for the action of a button. ok is false if p does not offer that
// action on WhatsApp.
func answerFor(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	switch {
	case p.Request.Kind == schemas.KindQuestion:
		return people.OptionAnswer(p, choices(p), action, from)
	case action == actAllow && mayAllow(p):
		return people.Utterance{Word: people.Yes}.Answer(p, from)
	case action == actDeny:
		return people.Utterance{Word: people.No}.Answer(p, from)
	}
	return a, false
}
