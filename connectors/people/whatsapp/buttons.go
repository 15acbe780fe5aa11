package whatsapp

import (
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The actions of buttons. An action that is a number is an index in the options of a question.
const (
	actAllow = people.ActAllow
	actDeny  = people.ActDeny
)

// showButton is the id of the button of a template: it asks for the questions that wait.
const showButton = "v1:show"

// mayAllow reports whether a person can allow p here: the chat shows the whole request, p is no
// question, and an allow does not need the code word, which would stay in the chat.
func mayAllow(p *schemas.Prompt) bool {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	return once && p.Request.Kind != schemas.KindQuestion && fitsWhole(p) && !p.HasCondition(schemas.ConditionCodeWord)
}

// buttons returns the buttons of a pending prompt. There may be none.
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

// distinct gives buttons that have the same title the titles "Answer 1" and so on, because Meta refuses
// two buttons with one title.
func distinct(all []button) []button {
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Reply.Title] = true
	}
	if len(seen) == len(all) {
		return all
	}
	for i := range all {
		data, _ := people.ReadButton(all[i].Reply.ID, maxID) // nod has just made this id
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

// choices returns the indexes of a question's options that have buttons. It returns none if there are
// more options than buttons: then the question is answered elsewhere.
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
// action here.
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
