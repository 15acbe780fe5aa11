package telegram

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
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

// A pressed is what a button sends back: the whole digest of the request that it
// was shown with, how many calls that counted then, and what to do. It names no
// request that is not the very one that was shown, answers for no call that came
// later, needs no memory to resolve, and proves nothing about who pressed.
type pressed struct {
	digest  string
	waiters int // 1 where one call was counted, or none
	action  string
}

// callback is what a button of p sends to have action done.
func callback(p *schemas.Prompt, action string) string {
	return pressed{p.Digest, max(1, p.Waiters), action}.data()
}

// data is at most 64 bytes: 3 + 43 + 1 + an action of at most 11 + 6.
func (b pressed) data() string {
	sum, _ := hex.DecodeString(b.digest) // the engine's; one that is not hexadecimal matches nothing
	data := "v1:" + base64.RawURLEncoding.EncodeToString(sum) + ":" + b.action
	if b.waiters > 1 {
		data += "." + strconv.Itoa(b.waiters)
	}
	return data
}

// readCallback is the reverse. What no button of nod's sends is refused.
func readCallback(data string) (b pressed, ok bool) {
	rest, v1 := strings.CutPrefix(data, "v1:")
	sum64, rest, _ := strings.Cut(rest, ":")
	sum, err := base64.RawURLEncoding.DecodeString(sum64)
	action, count, counted := strings.Cut(rest, ".")
	b = pressed{hex.EncodeToString(sum), 1, action}
	if counted {
		if b.waiters, _ = strconv.Atoi(count); b.waiters < 1 {
			return b, false
		}
	}
	return b, v1 && err == nil && len(sum) == 32 && action != "" && b.data() == data
}

// buttons are those under an open prompt. Without the whole payload there is
// none that allows.
func buttons(p *schemas.Prompt) *keyboard {
	to := func(text, action string) button { return button{text, callback(p, action)} }
	if p.Request.Kind == schemas.KindQuestion {
		return choices(p, to)
	}
	var first, second []button
	if _, ok := p.Request.OptionOfKind(schemas.AllowOnce); ok && whole(p) {
		first = append(first, to(allowLabel(p), actAllow))
	}
	first = append(first, to("⛔ Deny", actDeny))
	second = append(second, to("Deny, say why", actWhy))
	if len(others(p)) > 0 || len(reaches(p)) > 0 {
		second = append(second, to("More options", actMore))
	}
	return &keyboard{Rows: [][]button{first, second}}
}

// allowLabel is what the plain yes to p does.
func allowLabel(p *schemas.Prompt) string {
	switch {
	case p.Request.Kind == schemas.KindPermission: // the text says until when
		return "✅ Allow in this session"
	case people.Times(p) != "":
		return "✅ Allow once " + people.Times(p)
	}
	return "✅ Allow once"
}

// choices are a question's options, by their numbers in its text where a button
// cannot name them whole.
func choices(p *schemas.Prompt, to func(text, action string) button) *keyboard {
	k := keyboard{}
	for i, o := range p.Request.Options {
		if o.Kind.Allows() && !whole(p) || people.OptionWords(&p.Request, o) == "" {
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
// each by what it does and by its name; the text has that whole.
func moreButtons(p *schemas.Prompt) *keyboard {
	var k keyboard
	for _, i := range others(p) {
		o := p.Request.Options[i]
		k.Rows = append(k.Rows, []button{{label(p, i, o), callback(p, strconv.Itoa(i))}})
	}
	k.Rows = append(append(k.Rows, reachRows(p)...), back(p))
	return &k
}

func back(p *schemas.Prompt) []button { return []button{{"Back", callback(p, actBack)}} }

// exact is what an option does, and its name.
func exact(p *schemas.Prompt, o schemas.Option) string {
	return people.OptionWords(&p.Request, o) + ": " + people.Line(o.Name)
}

// label is an option's button. What the agent remembers is named by its number in
// the question's text where a button cannot name it whole.
func label(p *schemas.Prompt, i int, o schemas.Option) string {
	if !o.Kind.Remembered() {
		return exact(p, o)
	}
	mark := "⛔ Deny"
	if o.Kind.Allows() {
		mark = "✅ Allow"
	}
	text := fmt.Sprintf("%s, agent remembers %d: %s", mark, i+1, people.Line(o.Name))
	if people.UTF16(text) > maxLabel {
		text = fmt.Sprintf("%s, agent remembers %d …", mark, i+1)
	}
	return text
}

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
		case question && people.OptionWords(&p.Request, o) != "" && (mayAllow || !o.Kind.Allows()):
			places = append(places, i)
		case question:
		case o.OptionID == once.OptionID, o.OptionID == never.OptionID:
		case people.OptionWords(&p.Request, o) == "", people.UTF16(label(p, i, o)) > maxLabel:
		case (o.Kind.Allows() || o.Kind.Remembered()) && !mayAllow: // it is not in the text
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
				Digest: p.Digest, Waiters: p.Waiters, OptionID: p.Request.Options[i].OptionID, From: from,
			}, true
		}
	}
	return a, false
}
