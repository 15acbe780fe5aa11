package discord

import (
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// wordsField is the custom_id of the text field of a modal.
	wordsField = "words"
	// maxWords is the largest text of a field with several lines, in characters. maxWord is the largest
	// text of a field with one line.
	maxWords = 4000
	maxWord  = 200
)

// step returns the response to the press of a button that needs a modal or the menu. ok is false if p
// does not offer the action.
func step(p *schemas.Prompt, action string, in pressID) (r response, ok bool) {
	in.button = people.ButtonFor(p, action)
	if action == people.ActMore {
		in.kind = inMenu
		m, ok := menu(offer(p), in)
		return response{respondMessage, m}, ok
	}
	d, ok := offer(p).Dialog(action)
	in.kind = d.Kind
	return response{respondModal, question(d, in)}, ok
}

// question returns a modal with a text field. Discord itself labels the button that sends the text.
func question(d people.Dialog, id pressID) modal {
	m := modal{CustomID: id.String(), Title: d.Title}
	if d.Kind == people.AskEdit {
		m.Title += " and allow it once"
	}
	if d.Allows != "" {
		about := bold("Allows:") + " " + code(d.Allows)
		if people.UTF16(about) > maxText {
			about = bold("Allows:") + " what the button says under the question"
		}
		m.Components = append(m.Components, textBlock(about))
	}
	field := component{Type: typeInput, CustomID: wordsField, Style: styleLine, MaxLength: maxWord, Value: d.Initial, Required: true}
	if d.Long {
		field.Style, field.MaxLength = styleParagraph, maxWords
	}
	m.Components = append(m.Components, component{Type: typeLabel, Label: d.Label, About: d.Hint, Component: &field})
	return m
}

// menu returns the message with the answers for which one press in the chat is not enough. Only the
// person who pressed sees the message. The message describes each answer completely. If not all answers
// fit, the message says so.
func menu(offer people.Offer, in pressID) (m outgoing, ok bool) {
	names := bold("Session:") + " " + code(offer.SessionID) + "\n" + bold("Request:") + " " + code(offer.PendingID)
	left := "More answers do not fit here: " + code("nod show "+offer.PendingID) + "\n"
	var texts []string
	var all []people.Button
	units := people.UTF16(left + names)
	for _, more := range offer.More() {
		text := strings.TrimSpace(code(more.Text) + "\n" + escape(more.Note))
		if units+people.UTF16(text)+1 > maxText || len(all)+len(more.Buttons) > maxButtons {
			names = left + names
			break
		}
		units += people.UTF16(text) + 1
		texts, all = append(texts, text), append(all, more.Buttons...)
	}
	return whisper(strings.Join(append(texts, names), "\n"), rows(offer.Prompt, in, all)...), len(texts) > 0
}

// whisper returns a message that only the person who acted sees.
func whisper(text string, below ...component) outgoing {
	return outgoing{Flags: flagEphemeral | flagComponentsV2, Components: append([]component{textBlock(text)}, below...)}
}

// faultText returns the reply to an invalid text from a modal. The reply repeats the text, because
// Discord has closed the modal.
func faultText(fault, words string) string {
	text := escape("Nothing changed. "+fault) + " Press the button again."
	if whole := text + "\n" + box(people.Lines(words)); words != "" && people.UTF16(whole) <= maxText {
		return whole
	}
	return text
}
