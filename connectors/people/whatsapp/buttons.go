package whatsapp

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The actions of buttons. An action that is a number is an index in the options of a question.
const (
	actAllow = "a"
	actDeny  = "d"
)

// showButton is the id of the button of a template: it asks for the questions that wait.
const showButton = "v1:show"

// buttonData is the id of a button: the digest of the request, the action, the number of calls that the
// message shows, and the request. It is valid only for this request, and not for calls that joined
// later. It does not prove who tapped the button.
type buttonData struct {
	digest      string
	action      string
	waiters     int
	session, id string // both empty if they do not fit
}

func dataOf(p *schemas.Prompt, action string) buttonData {
	return buttonData{p.Digest, action, max(1, p.Waiters), p.SessionID, p.PendingID}
}

func (b buttonData) String() string {
	sum, _ := hex.DecodeString(b.digest) // the engine made the digest; if it is not hexadecimal, the button matches no request
	head := "v1:" + base64.RawURLEncoding.EncodeToString(sum) + ":" + b.action + "." + strconv.Itoa(b.waiters)
	if whole := head + ":" + b.session + ":" + b.id; len(whole) <= maxID && b.session != "" {
		return whole
	}
	return head
}

// readButton parses the id of a button. It returns false for an id that nod does not make.
func readButton(id string) (b buttonData, ok bool) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 && len(parts) != 5 || parts[0] != "v1" {
		return b, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(parts[1])
	action, count, _ := strings.Cut(parts[2], ".")
	b = buttonData{digest: hex.EncodeToString(sum), action: action}
	b.waiters, _ = strconv.Atoi(count) // 0 if it is no number
	if len(parts) == 5 {
		b.session, b.id = parts[3], parts[4]
		if !schemas.ValidID(b.session) || !schemas.ValidID(b.id) {
			return b, false
		}
	}
	return b, err == nil && len(sum) == 32 && b.waiters > 0 && action != "" && b.String() == id
}

// mayAllow reports whether a person can allow p here: the chat shows the whole request, p is no
// question, and an allow does not need the code word, which would stay in the chat.
func mayAllow(p *schemas.Prompt) bool {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	return once && p.Request.Kind != schemas.KindQuestion && fitsWhole(p) && !p.HasCondition(schemas.ConditionCodeWord)
}

// buttons returns the buttons of a pending prompt. There may be none.
func buttons(p *schemas.Prompt) (all []button) {
	add := func(title, action string) {
		all = append(all, button{"reply", reply{dataOf(p, action).String(), title}})
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
		data, _ := readButton(all[i].Reply.ID) // nod has just made this id
		n, _ := strconv.Atoi(data.action)
		all[i].Reply.Title = "Answer " + strconv.Itoa(n+1)
	}
	return all
}

func allowTitle(p *schemas.Prompt) string {
	switch {
	case p.Request.Kind == schemas.KindPermission: // the message says how long the permission lasts
		return "Allow in session"
	case people.Times(p) != "":
		return "Allow once " + people.Times(p)
	}
	return "Allow once"
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
		for _, i := range choices(p) {
			if strconv.Itoa(i) == action {
				return schemas.Answer{
					Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID,
					Digest: p.Digest, Waiters: p.Waiters, OptionID: p.Request.Options[i].OptionID, From: from,
				}, true
			}
		}
		return a, false
	case action == actAllow && mayAllow(p):
		return people.Utterance{Word: people.Yes}.Answer(p, from)
	case action == actDeny:
		return people.Utterance{Word: people.No}.Answer(p, from)
	}
	return a, false
}
