package telegram

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// What a button does. Any other action is the place of an option among those
// that the request offers.
const (
	actAllow = "a" // allow once
	actDeny  = "d" // deny once
	actWhy   = "w" // ask for the reason, and deny with it
	actMore  = "m" // show the other options
	actSay   = "s" // ask for the answer in words
	actBack  = "b" // and no longer
)

// maxLabel is how long a button's text may be where it must be read whole.
const maxLabel = 60

// callback is what a button sends back: the whole digest of the request that
// it was shown with, and what to do. It names no request that is not the very
// one that was shown, needs no memory to resolve, and proves nothing about who
// pressed. At most 64 bytes: 3 + 43 + 1 + 17.
func callback(digest, action string) string {
	sum, _ := hex.DecodeString(digest) // the engine's; one that is not hexadecimal matches nothing
	return "v1:" + base64.RawURLEncoding.EncodeToString(sum) + ":" + action
}

// readCallback is the reverse. Data that callback would not have made is
// refused.
func readCallback(data string) (digest, action string, ok bool) {
	rest, v1 := strings.CutPrefix(data, "v1:")
	sum64, action, _ := strings.Cut(rest, ":")
	sum, err := base64.RawURLEncoding.DecodeString(sum64)
	digest = hex.EncodeToString(sum)
	return digest, action, v1 && err == nil && len(sum) == 32 && action != "" && callback(digest, action) == data
}

// buttons are those under an open prompt. Without the whole payload there is
// none that allows.
func buttons(p *schemas.Prompt) *keyboard {
	to := func(text, action string) button { return button{text, callback(p.Digest, action)} }
	if p.Request.Kind == schemas.KindQuestion {
		return choices(p, to)
	}
	var first, second []button
	if _, ok := p.Request.OptionOfKind(schemas.AllowOnce); ok && whole(p) {
		first = append(first, to("✅ Allow once", actAllow))
	}
	first = append(first, to("⛔ Deny", actDeny))
	second = append(second, to("Deny, say why", actWhy))
	if len(others(p)) > 0 || len(reaches(p)) > 0 {
		second = append(second, to("More options", actMore))
	}
	return &keyboard{Rows: [][]button{first, second}}
}

// choices are a question's options, by their numbers in its text where a button
// cannot name them whole.
func choices(p *schemas.Prompt, to func(text, action string) button) *keyboard {
	k := keyboard{}
	for i, o := range p.Request.Options {
		if o.Kind.Allows() && !whole(p) || people.KindWords(o.Kind) == "" {
			continue
		}
		text, action := people.Choice(o), strconv.Itoa(i)
		if people.UTF16(text) > maxLabel {
			text = "Answer " + strconv.Itoa(i+1)
		}
		if o.Text {
			action = actSay
		}
		k.Rows = append(k.Rows, []button{to(text, action)})
	}
	return &k
}

// moreButtons are the second step: the options that one tap must not choose,
// each by what it does and by its name, whole.
func moreButtons(p *schemas.Prompt) *keyboard {
	var k keyboard
	for _, i := range others(p) {
		o := p.Request.Options[i]
		k.Rows = append(k.Rows, []button{{label(o), callback(p.Digest, strconv.Itoa(i))}})
	}
	k.Rows = append(append(k.Rows, reachRows(p)...), back(p))
	return &k
}

func back(p *schemas.Prompt) []button { return []button{{"Back", callback(p.Digest, actBack)}} }

func label(o schemas.Option) string { return people.KindWords(o.Kind) + ": " + people.Line(o.Name) }

// others are the places of the options that a second step offers: those that
// Allow and Deny do not choose, that may be chosen here, and that a button can
// name whole.
func others(p *schemas.Prompt) []int {
	once, _ := p.Request.OptionOfKind(schemas.AllowOnce)
	never, _ := p.Request.OptionOfKind(schemas.RejectOnce)
	mayAllow := whole(p)
	question := p.Request.Kind == schemas.KindQuestion
	var places []int
	for i, o := range p.Request.Options {
		switch {
		case o.Text:
		case question && people.KindWords(o.Kind) != "" && (mayAllow || !o.Kind.Allows()):
			places = append(places, i)
		case question:
		case o.OptionID == once.OptionID, o.OptionID == never.OptionID:
		case people.KindWords(o.Kind) == "", people.UTF16(label(o)) > maxLabel:
		case o.Kind.Allows() && !mayAllow:
		default:
			places = append(places, i)
		}
	}
	return places
}

// chosen is the answer to p that a button's action stands for; ok is false
// where p offers no such thing here.
func chosen(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	switch action {
	case actAllow:
		if !whole(p) || p.Request.Kind == schemas.KindQuestion {
			return a, false
		}
		return people.Said{Word: people.Yes}.Answer(p, from)
	case actDeny:
		return people.Said{Word: people.No}.Answer(p, from)
	}
	if a, ok := lasting(p, action, from); ok {
		return a, true
	}
	for _, i := range others(p) {
		if strconv.Itoa(i) == action {
			return schemas.Answer{
				Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID,
				Digest: p.Digest, OptionID: p.Request.Options[i].OptionID, From: from,
			}, true
		}
	}
	return a, false
}
