package voice

import (
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The sentences that a voice client speaks, except the sentences about a request.
const (
	sayYesOrNo    = "Say yes or no."
	sayNo         = "You can say no to deny it."
	sayAgain      = "Sorry, please repeat that."
	unclear       = "I did not understand that, and nothing changed."
	nothingWaits  = "Nothing waits for you."
	onScreen      = "Review it on the screen."
	notCode       = "Nothing changed. That was not the code word, or you may not decide this by voice."
	noMoreCodes   = "Nothing changed. There were too many wrong code words. " + onScreen
	askForCode    = "Please speak only the code word now."
	stopConfirm   = "Nothing is decided yet."
	tookOver      = "another voice client of yours has taken over"
	noLongerKnown = "you may no longer answer by voice"
)

// speech contains the sentences of a voice client about one prompt.
type speech struct {
	payload string // the payload as spoken, such as "Run command: make, in app"; empty if it cannot be spoken whole
	kind    string // a description of the request without its payload
	risk    string // such as "high risk"
	why     string // the reasons for the risk in nod's words, without their objects; may be empty
	deny    string // why the request can only be denied by voice; empty if it can also be allowed
	code    bool   // the person must say the code word to allow the request
}

// speechOf returns the sentences about p. If the payload and its directory cannot be spoken
// exactly and completely, the sentences do not contain the payload, and p can only be denied by
// voice.
func speechOf(p *schemas.Prompt) speech {
	s := speech{kind: kindOf(&p.Request), risk: riskOf(p.Risk) + " risk"}
	if why, ok := spell(people.RiskWords(p)); ok {
		s.why = why
	}
	place, placeOK := placeOf(p)
	if placeOK && place != "" {
		s.kind += ", " + place
	}
	said, ok := payloadOf(p)
	if ok && placeOK {
		s.payload = said
		if place != "" {
			s.payload += ", " + place
		}
	}
	_, allows := p.Request.OptionOfKind(schemas.AllowOnce)
	switch {
	case p.Request.Kind == schemas.KindQuestion:
		s.payload, s.deny = "", "It takes an answer of its own. "+onScreen
	case s.payload == "":
		s.deny = "It cannot be spoken whole. " + onScreen
	case !allows:
		s.deny = "It cannot be allowed once. " + onScreen
	}
	for _, condition := range p.Conditions {
		for c := range strings.SplitSeq(condition, ", ") {
			switch c {
			case "": // an empty condition: every voice client fulfils it
			case schemas.ConditionCodeWord:
				s.code = true
			default:
				s.deny = "To allow it takes " + c + ". " + onScreen
			}
		}
	}
	return s
}

// kindOf describes a request without any text of the agent.
func kindOf(r *schemas.Request) string {
	switch r.Kind {
	case schemas.KindPermission:
		return "A request for permissions"
	case schemas.KindQuestion:
		return "A question of the agent"
	}
	switch r.ActionType {
	case schemas.ActionCommand:
		return "A request to run a command"
	case schemas.ActionFileWrite:
		return "A request to write a file"
	case schemas.ActionFileRead:
		return "A request to read a file"
	case schemas.ActionNetwork:
		return "A request to reach the network"
	}
	return "A request to use a tool"
}

// riskOf returns a word for the risk. For a risk that this version of nod does not know, the word
// is "unknown".
func riskOf(r schemas.Risk) string {
	switch r {
	case schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh:
		return string(r)
	}
	return "unknown"
}

// payloadOf returns the complete input of a request in spoken words. No field is missing, because
// payloadOf uses the parts that every channel must show. ok is false if a part cannot be spoken exactly,
// or if the text is too long.
func payloadOf(p *schemas.Prompt) (spoken string, ok bool) {
	var all []string
	for _, part := range people.Unfolded(p, p.Request.CreatedAt) {
		if part.Group != people.Essential || part.Caption || part.Label == "Calls" && !part.Field {
			continue
		}
		said, ok := sayPart(part, &p.Request)
		if !ok {
			return "", false
		}
		all = append(all, said)
	}
	spoken = strings.Join(all, ", ")
	return spoken, len(all) > 0 && len(spoken) <= 2*maxSpoken
}

// sayPart returns the spoken words for one part of a payload. It leaves out the quotation marks
// that nod puts around the text of a short field.
func sayPart(part people.Part, r *schemas.Request) (string, bool) {
	label := part.Label
	if part.Field {
		said, ok := spell(label)
		if !ok {
			return "", false
		}
		label = said
	} else if label == "" && r.ActionType == schemas.ActionCommand && r.Kind == schemas.KindToolCall {
		label = "Run command"
	}
	if label == "" || !part.Quote && len(part.Lines) > 1 || len(part.Lines) == 0 {
		return "", false
	}
	var texts []string
	for _, line := range part.Lines {
		if part.Quote && len(part.Lines) > 1 && r.Kind != schemas.KindPermission {
			return "", false // speech cannot convey the line breaks
		}
		if inner, quoted := strings.CutPrefix(line, "“"); part.Field && quoted {
			line = strings.TrimSuffix(inner, "”")
		}
		said, ok := spell(line)
		if !ok {
			return "", false
		}
		texts = append(texts, said)
	}
	return label + ": " + strings.Join(texts, ", "), true
}

// placeOf returns the spoken words for the directory in which a call acts: the project's name and
// the path in the project, or the full path of a directory outside the project.
func placeOf(p *schemas.Prompt) (string, bool) {
	cwd := people.Directory(&p.Request)
	project := strings.TrimRight(p.Request.Project, "/")
	if project == "" && cwd == "" {
		return "", true
	}
	text := cwd
	switch below, inside := strings.CutPrefix(cwd, project+"/"); {
	case project == "":
	case cwd == "" || cwd == project:
		text = people.ProjectName(project)
	case inside && !strings.Contains("/"+below+"/", "/../"):
		text = people.ProjectName(project) + "/" + below
	}
	said, ok := spell(text)
	return "in " + said, ok
}

// question returns the sentences that ask the person about p.
func (s *speech) question(p *schemas.Prompt) string {
	var b strings.Builder
	if p.Repeat {
		b.WriteString("Asked again: ")
	}
	if s.payload == "" {
		b.WriteString(s.kind + ", " + s.risk)
	} else {
		b.WriteString(s.payload)
		if p.Risk != schemas.RiskLow {
			b.WriteString(". " + sentence(s.risk))
			if s.why != "" {
				b.WriteString(", because it " + s.why)
			}
		}
	}
	if p.Waiting > 1 {
		b.WriteString(", " + strconv.Itoa(p.Waiting) + " identical calls")
	}
	b.WriteString(". ")
	if p.Detached {
		b.WriteString("The agent has stopped waiting; an answer counts if it asks anew. ")
	}
	return b.String() + s.choices()
}

// choices returns the sentence that names the possible answers.
func (s *speech) choices() string {
	if s.deny != "" {
		return s.deny + " " + sayNo
	}
	return sayYesOrNo
}

// readBack returns the sentences that repeat a person's yes before it counts. The word that confirms is
// not the last word, because a microphone that hears only the end would otherwise confirm.
func (s *speech) readBack() string {
	how := "Say confirm to allow it, or no to deny it."
	if s.code {
		how = "Say the code word to allow it, or no to deny it."
	}
	return "You said yes to: " + s.payload + ", " + s.risk + ". " + how
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// ending returns the sentence about the outcome of a request. now is the broker's time.
func ending(d *schemas.Decision, now time.Time) string {
	e := (&schemas.Error{Code: schemas.CodeConflict}).WithDecision(d)
	return "That request has ended: " + strings.TrimPrefix(people.Refusal(e, now), "Nothing changed: ")
}
