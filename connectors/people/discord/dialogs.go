package discord

import (
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// wordsField is the custom_id of the text field of a modal.
	wordsField = "words"
	// maxWords is the largest text of a field, in characters.
	maxWords = 4000
	maxTitle = 45 // of a modal or of the label of a field, in characters
)

// step returns the response to the press of a button that needs a modal or the menu. ok is false if p
// does not offer the action.
func step(p *schemas.Prompt, action string, in pressID) (r response, ok bool) {
	offer := offer(p)
	in.button = people.ButtonFor(p, action)
	switch action {
	case people.ActMore:
		in.kind = inMenu
		m, ok := menu(offer, in)
		return response{respondMessage, m}, ok
	case people.ActWhy:
		in.kind = askWhy
		return ask("Deny", "Why? The agent reads it.", in, component{Style: styleParagraph, MaxLength: maxWords}), true
	case people.ActSay:
		in.kind = askSay
		_, ok = offer.TextAnswer("x", schemas.From{})
		return ask("Answer", "Your answer", in, component{Style: styleParagraph, MaxLength: maxWords}), ok
	case people.ActEdit:
		in.kind = askEdit
		return ask("Edit the input and allow it once", "The agent runs it as you leave it", in,
			component{Style: styleParagraph, MaxLength: maxWords, Value: offer.Input()}), offer.Editable()
	}
	in.kind = askCode // the action is an answer that needs the code word
	r = ask("Code word", "The code word", in, component{Style: styleLine, MaxLength: 200})
	about := textBlock(fill(bold("Allows:")+" ", offer.Describe(action)))
	m := r.Data.(modal)
	m.Components = append([]component{about}, m.Components...)
	return response{respondModal, m}, true
}

// fill returns a text of nod followed by a text that may come from the agent. If both do not fit in a
// message, it leaves out the second.
func fill(head, text string) string {
	if whole := head + code(text); people.UTF16(whole) <= maxText {
		return whole
	}
	return head + "see the question"
}

// ask returns the response that opens a modal with a text field.
func ask(title, label string, id pressID, field component) response {
	field.Type, field.CustomID, field.Required = typeInput, wordsField, true
	return response{respondModal, modal{CustomID: id.String(), Title: title, Components: []component{{Type: typeLabel, Label: label, Component: &field}}}}
}

// menu returns the message, for the person who pressed alone, with the answers for which one press in
// the chat is not enough. It describes each answer completely; answers that do not fit are left out.
func menu(offer people.Offer, in pressID) (m outgoing, ok bool) {
	names := "\n" + bold("Session:") + " " + code(offer.SessionID) + "\n" + bold("Request:") + " " + code(offer.PendingID)
	var texts []string
	var all []people.Button
	units := people.UTF16(names)
	for _, more := range offer.More() {
		text := strings.TrimSpace(code(more.Text) + "\n" + escape(more.Note))
		if units+people.UTF16(text)+1 > maxText || len(all)+len(more.Buttons) > maxButtons {
			continue
		}
		units += people.UTF16(text) + 1
		texts, all = append(texts, text), append(all, more.Buttons...)
	}
	text := strings.Join(texts, "\n") + names
	return whisper(text, rows(offer.Prompt, in, all)...), len(all) > 0
}

// whisper returns a message that only the person sees to whom nod responds.
func whisper(text string, below ...component) outgoing {
	return outgoing{Flags: flagEphemeral | flagComponentsV2, Components: append([]component{textBlock(text)}, below...)}
}

// faultIn returns the reply to a text in a modal that is no answer, or "".
func faultIn(kind, words string) string {
	switch {
	case words == "":
		return "Nothing changed: the field was empty. Press the button again, and write a text."
	case kind == askEdit && !people.IsObject(words):
		return "Nothing changed: this is no JSON object. Press the button again, and change only the values."
	}
	return ""
}
