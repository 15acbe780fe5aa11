package telegram

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The actions of buttons. An action that is a number is an index in the request's options. The actions
// for standing answers are in reachAction and people.Extent.Action.
const (
	actAllow = people.ActAllow
	actDeny  = people.ActDeny
	actWhy   = "w" // ask for the reason of a denial
	actMore  = "m" // show the other options
	actSay   = "s" // ask the person to write the answer
	actBack  = "b" // show the first buttons again
)

// maxLabel is the largest length, in UTF-16 units, of a button's text that a person must be able to
// read completely.
const maxLabel = 60

// buttonData is the data of a button: the digest of the request, the number of calls when the button was
// shown, and the action. The data is valid only for this request, and not for calls that joined later. A
// worker needs no stored state to use it. The data does not prove who pressed the button.
type buttonData struct {
	digest  string
	waiters int // the number of identical calls, at least 1
	action  string
}

// callback returns the data for a button under p with this action.
func callback(p *schemas.Prompt, action string) string {
	return buttonData{p.Digest, max(1, p.Waiters), action}.data()
}

// data encodes b as a text of at most 64 bytes: "v1:", 43 bytes of digest, ":", an action of at most
// 11 bytes, and 6 bytes for the number of calls.
func (b buttonData) data() string {
	sum, _ := hex.DecodeString(b.digest) // the engine made the digest; if it is not hexadecimal, the button matches no request
	data := "v1:" + base64.RawURLEncoding.EncodeToString(sum) + ":" + b.action
	if b.waiters > 1 {
		data += "." + strconv.Itoa(b.waiters)
	}
	return data
}

// readCallback parses the data of a button. It returns false for data that nod does not make.
func readCallback(data string) (b buttonData, ok bool) {
	rest, v1 := strings.CutPrefix(data, "v1:")
	sum64, rest, _ := strings.Cut(rest, ":")
	sum, err := base64.RawURLEncoding.DecodeString(sum64)
	action, count, counted := strings.Cut(rest, ".")
	b = buttonData{hex.EncodeToString(sum), 1, action}
	if counted {
		if b.waiters, _ = strconv.Atoi(count); b.waiters < 1 {
			return b, false
		}
	}
	return b, v1 && err == nil && len(sum) == 32 && action != "" && b.data() == data
}

// buttons returns the buttons under a pending prompt. A button allows the request only if the message
// shows the whole payload.
func buttons(p *schemas.Prompt) *keyboard {
	to := func(text, action string) button { return button{text, callback(p, action)} }
	if p.Request.Kind == schemas.KindQuestion {
		return questionButtons(p, to)
	}
	var first, second []button
	if _, ok := p.Request.OptionOfKind(schemas.AllowOnce); ok && fitsWhole(p) {
		first = append(first, to("✅ "+people.AllowLabel(p), actAllow))
	}
	first = append(first, to("⛔ Deny", actDeny))
	second = append(second, to("Deny, say why", actWhy))
	if len(otherOptions(p)) > 0 || len(offeredReaches(p)) > 0 {
		second = append(second, to("More options", actMore))
	}
	return &keyboard{Rows: [][]button{first, second}}
}

// questionButtons makes a button for each option of an agent's question. If an option is too long for a
// label, the label is "Answer N" with the number of the option in the message.
func questionButtons(p *schemas.Prompt, to func(text, action string) button) *keyboard {
	k := keyboard{}
	for i, o := range p.Request.Options {
		if o.Kind.Allows() && !fitsWhole(p) || people.OptionWords(&p.Request, o) == "" {
			continue
		}
		text, action := people.Choice(&p.Request, o), strconv.Itoa(i)
		if people.UTF16(text) > maxLabel {
			text = "Answer " + strconv.Itoa(i+1)
		}
		if o.Text {
			if only, ok := people.TextOption(p, fitsWhole(p)); !ok || only != i {
				continue
			}
			action = actSay
		}
		k.Rows = append(k.Rows, []button{to(text, action)})
	}
	return &k
}

// moreButtons makes the buttons of the second step, for options that a single press must not choose. A
// label contains the option's effect, and its name or number. The text of the message contains the
// full name.
func moreButtons(p *schemas.Prompt) *keyboard {
	var k keyboard
	for _, i := range otherOptions(p) {
		k.Rows = append(k.Rows, []button{{people.OptionLabel(p, i, maxLabel), callback(p, strconv.Itoa(i))}})
	}
	k.Rows = append(append(k.Rows, reachRows(p)...), back(p))
	return &k
}

func back(p *schemas.Prompt) []button { return []button{{"Back", callback(p, actBack)}} }

// otherOptions returns the indexes of the options that only More offers; see people.Offer.Options. For an
// agent's question, the label of a long option is the option's number. For any other request, Telegram
// does not offer an option whose label is too long for a button.
func otherOptions(p *schemas.Prompt) []int {
	offer := people.Offer{Prompt: p, Whole: fitsWhole(p)}
	return slices.DeleteFunc(offer.Options(), func(i int) bool {
		return p.Request.Kind != schemas.KindQuestion && people.UTF16(people.OptionLabel(p, i, maxLabel)) > maxLabel
	})
}

// answerFor returns the answer to p for the action of a button. ok is false if p does not offer that
// action on this channel.
func answerFor(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	return people.AnswerFor(p, fitsWhole(p), otherOptions(p), action, from)
}
