package people

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Word is what an utterance says. The zero Word decides nothing.
type Word int

// The words.
const (
	Unclear Word = iota // ask again
	Yes
	No
)

// Said is an utterance, understood as a whole or not at all.
type Said struct {
	Word   Word
	Code   string // which request, in capitals; empty for a bare yes or no
	Reason string // what follows "no CODE", as it was said
}

// The codes that people type: easy to say apart, and no vowels, so that none
// is a word. CodeLength of them make about 810,000.
const (
	codeAlphabet = "0123456789BCDFGHJKMNPQRSTVWXYZ"
	CodeLength   = 4
)

// NewCode is a random code for one prompt in one chat, unlike those taken. It
// is not made from the request: an agent could search for a request whose code
// a person is about to type.
func NewCode(taken func(code string) bool) string {
	for {
		code := make([]byte, 0, CodeLength)
		for len(code) < CodeLength {
			var b [1]byte
			rand.Read(b[:]) // never fails
			if i := int(b[0] & 31); i < len(codeAlphabet) {
				code = append(code, codeAlphabet[i])
			}
		}
		if !taken(string(code)) {
			return string(code)
		}
	}
}

// ReadText understands a typed answer: "yes", "no", "yes 7F3K", "no 7F3K" and
// "no 7F3K reason", in capitals or not, with spaces around and between.
// Whatever else is said, in whatever words, is Unclear.
func ReadText(text string) Said {
	word, rest := cutWord(trim(text))
	code, reason := cutWord(rest)
	said := Said{Code: upper(code), Reason: reason}
	switch lower(word) {
	case "yes":
		said.Word = Yes
	case "no":
		said.Word = No
	}
	if said.Word == Unclear || code != "" && !isCode(said.Code) || said.Word == Yes && reason != "" {
		return Said{}
	}
	return said
}

// trim takes off the blanks around what was typed or heard.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// cutWord splits off the first word. Only spaces part words.
func cutWord(s string) (word, rest string) {
	word, rest, _ = strings.Cut(s, " ")
	return word, strings.TrimLeft(rest, " ")
}

func isCode(s string) bool {
	return len(s) == CodeLength && strings.Trim(s, codeAlphabet) == ""
}

var voiceWords = map[string]Word{
	"yes": Yes, "approve": Yes, "ok": Yes, "continue": Yes,
	"no": No, "reject": No, "stop": No, "cancel": No,
}

// ReadVoice understands a transcript: yes, approve, ok, continue, or no, reject,
// stop, cancel, each as the whole utterance. With a code word, yes counts only
// when it is followed by it ("approve tango"); a no needs none. Anything more,
// a negation above all, is Unclear. A recogniser that drops a "do not" cannot
// be caught here: read the answer back before it counts.
func ReadVoice(transcript, codeWord string) Said {
	// Recognisers end what they hear like a sentence.
	text := lower(strings.TrimSuffix(trim(transcript), "."))
	if voiceWords[text] == No {
		return Said{Word: No}
	}
	if codeWord != "" {
		word, found := strings.CutSuffix(text, " "+lower(codeWord))
		if !found {
			return Said{}
		}
		text = word
	}
	if voiceWords[text] == Yes {
		return Said{Word: Yes}
	}
	return Said{}
}

// Pick is the place in open, the codes of what waits for this person in this
// chat, of the request that said decides: the one it names or, where it names
// none, the only one there is.
func (said Said) Pick(open []string) (i int, ok bool) {
	found := -1
	for i, code := range open {
		named := said.Code != "" && said.Code == code
		if named && found >= 0 {
			return 0, false
		}
		if named || said.Code == "" && len(open) == 1 {
			found = i
		}
	}
	return max(found, 0), found >= 0 && said.Word != Unclear
}

// Again is what a person reads whose words decided nothing.
func Again(open []string) string {
	switch len(open) {
	case 0:
		return "Nothing is waiting for you."
	case 1:
		return fmt.Sprintf("I did not understand that, and nothing changed. Answer yes %s or no %s.", open[0], open[0])
	}
	return fmt.Sprintf("I did not understand that, and nothing changed. %d requests are waiting (%s): answer yes or no with a code, such as no %s.",
		len(open), strings.Join(open, ", "), open[0])
}

// Answer makes the answer to p that said stands for: an offered option that
// allows once, or one that denies once. Where p offers none that denies once,
// a no cancels. Where it offers none that allows once, ok is false and nothing
// may be answered: a yes never chooses another option. It is about the calls that p
// counts: give it the prompt that the person was shown.
func (said Said) Answer(p *schemas.Prompt, from schemas.From) (a schemas.Answer, ok bool) {
	a = schemas.Answer{
		Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID,
		Digest: p.Digest, Waiters: p.Waiters, Message: said.Reason, From: from,
	}
	var option schemas.Option
	switch said.Word {
	case Yes:
		if p.Request.Kind == schemas.KindQuestion {
			return a, false // it would choose an answer that was not named
		}
		option, ok = p.Request.OptionOfKind(schemas.AllowOnce)
	case No:
		option, ok = p.Request.OptionOfKind(schemas.RejectOnce)
		a.Cancelled = !ok
		ok = true
	}
	a.OptionID = option.OptionID
	return a, ok
}

// lower and upper know ASCII alone: to others "oK" with the Kelvin sign is ok.
func lower(s string) string { return mapASCII(s, 'A', 'Z', 'a'-'A') }
func upper(s string) string { return mapASCII(s, 'a', 'z', 'A'-'a') }

func mapASCII(s string, from, to byte, shift int) string {
	b := []byte(s)
	for i, c := range b {
		if from <= c && c <= to {
			b[i] = byte(int(c) + shift)
		}
	}
	return string(b)
}
