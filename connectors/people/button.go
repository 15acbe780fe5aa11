package people

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ButtonData is the data of a button. It contains the digest of the request, the action, the number of
// identical calls that the message shows and, if the channel has room for it, the request's session and
// id. The data is valid only for this request, and not for calls that joined later. A worker needs no
// stored state to use it. The data does not prove who pressed the button.
type ButtonData struct {
	Digest      string
	Action      string
	Waiters     int
	Session, ID string // both are empty if they do not fit into the button
}

// ButtonFor returns the data of the button under p with this action.
func ButtonFor(p *schemas.Prompt, action string) ButtonData {
	return ButtonData{p.Digest, action, max(1, p.Waiters), p.SessionID, p.PendingID}
}

// Text encodes b as a text of at most limit bytes. If the session and the id do not fit, it leaves them
// out; the text then has about 60 bytes.
func (b ButtonData) Text(limit int) string {
	sum, _ := hex.DecodeString(b.Digest) // the engine makes the digest; a button with a digest that is not hexadecimal matches no request
	head := "v1:" + base64.RawURLEncoding.EncodeToString(sum) + ":" + b.Action + "." + strconv.Itoa(b.Waiters)
	if whole := head + ":" + b.Session + ":" + b.ID; len(whole) <= limit && b.Session != "" {
		return whole
	}
	return head
}

// ReadButton parses the data of a button. ok is false for every text that ButtonData.Text would
// not return with this limit.
func ReadButton(text string, limit int) (b ButtonData, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 && len(parts) != 5 || parts[0] != "v1" {
		return b, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(parts[1])
	action, count, _ := strings.Cut(parts[2], ".")
	b = ButtonData{Digest: hex.EncodeToString(sum), Action: action}
	b.Waiters, _ = strconv.Atoi(count) // 0 if count is no number; a button must have at least 1
	if len(parts) == 5 {
		b.Session, b.ID = parts[3], parts[4]
		if !schemas.ValidID(b.Session) || !schemas.ValidID(b.ID) {
			return b, false
		}
	}
	return b, err == nil && len(sum) == 32 && b.Waiters > 0 && action != "" && b.Text(limit) == text
}

// The actions of the buttons that every channel has. Other buttons have as their action the index of a
// request's option, a result of Extent.Action, or an action that only their channel knows.
const (
	ActAllow = "a" // the button allows the request once
	ActDeny  = "d" // the button denies the request once
)

// AnswerFor returns the answer to p for the action of a button. It is for a channel that offers
// standing answers. whole says whether the channel shows the whole payload, and options are the
// indexes of the options that the channel offers. ok is false if the channel does not offer that
// action.
func AnswerFor(p *schemas.Prompt, whole bool, options []int, action string, from schemas.From) (a schemas.Answer, ok bool) {
	switch action {
	case ActAllow:
		if !whole || p.Request.Kind == schemas.KindQuestion {
			return a, false
		}
		return Utterance{Word: Yes}.Answer(p, from)
	case ActDeny:
		return Utterance{Word: No}.Answer(p, from)
	}
	if a, ok := StandingAnswer(p, whole, action, from); ok {
		return a, true
	}
	return OptionAnswer(p, options, action, from)
}

// OptionAnswer returns the answer for a button whose action is the index of an option. ok is
// false if that index is not among options.
func OptionAnswer(p *schemas.Prompt, options []int, action string, from schemas.From) (a schemas.Answer, ok bool) {
	for _, i := range options {
		if strconv.Itoa(i) == action {
			return chooses(p, i, from), true
		}
	}
	return a, false
}

// TextOption returns the index of the option of p that a person answers with a text. whole says whether
// the channel shows the whole payload. ok is false if the channel must not offer this option. ok is also
// false if p has several such options, because the text would not say which of them it answers.
func TextOption(p *schemas.Prompt, whole bool) (i int, ok bool) {
	i = -1
	for j, o := range p.Request.Options {
		switch {
		case !o.Text:
		case i >= 0, o.Kind.Allows() && !whole:
			return 0, false
		default:
			i = j
		}
	}
	return i, i >= 0
}

// TextAnswer returns an answer to p with a text that the person wrote. ok is false if p has no
// TextOption.
func TextAnswer(p *schemas.Prompt, whole bool, text string, from schemas.From) (a schemas.Answer, ok bool) {
	i, ok := TextOption(p, whole)
	if !ok {
		return a, false
	}
	a = chooses(p, i, from)
	a.Message = text
	return a, true
}

func chooses(p *schemas.Prompt, i int, from schemas.From) schemas.Answer {
	return schemas.Answer{
		Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID,
		Digest: p.Digest, Waiters: p.Waiters, OptionID: p.Request.Options[i].OptionID, From: from,
	}
}
