package people

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// A Word is the meaning of a typed or spoken answer. The zero Word decides nothing.
type Word int

// The meanings of an answer.
const (
	Unclear Word = iota // the text is no answer, so the channel asks the person again
	Yes
	No
)

// An Utterance is the content of a typed or spoken answer.
type Utterance struct {
	Word   Word
	Code   string // the code of a request, in capitals; empty for an answer without a code
	Reason string // the text after "no CODE", unchanged
}

// The code of a prompt contains no vowels, so that it is never a word, and no L, because L looks like 1.
// There are 810,000 codes with CodeLength characters.
const (
	codeAlphabet = "0123456789BCDFGHJKMNPQRSTVWXYZ"
	CodeLength   = 4
)

// NewCode returns a random code for a prompt in a chat. It skips codes for which the function taken
// returns true. A code does not depend on the request, because an agent could otherwise search for a
// request with a code that a person is about to type.
func NewCode(taken func(code string) bool) string {
	for {
		code := make([]byte, 0, CodeLength)
		for len(code) < CodeLength {
			var b [1]byte
			rand.Read(b[:]) // Read never fails
			if i := int(b[0] & 31); i < len(codeAlphabet) {
				code = append(code, codeAlphabet[i])
			}
		}
		if !taken(string(code)) {
			return string(code)
		}
	}
}

// ReadText parses a typed answer: "yes", "no", "yes 7F3K", "no 7F3K" or "no 7F3K reason". It ignores
// upper and lower case, and spaces around and between the words. For any other text it returns the
// zero Utterance, whose Word is Unclear.
func ReadText(text string) Utterance {
	word, rest := cutWord(trim(text))
	code, reason := cutWord(rest)
	said := Utterance{Code: upper(code), Reason: reason}
	switch lower(word) {
	case "yes":
		said.Word = Yes
	case "no":
		said.Word = No
	}
	if said.Word == Unclear || code != "" && !isCode(said.Code) || said.Word == Yes && reason != "" {
		return Utterance{}
	}
	return said
}

// ReadWords parses a typed answer in a person's own words: "answer 7F3K words". The words are unchanged.
func ReadWords(text string) (code, words string, ok bool) {
	word, rest := cutWord(trim(text))
	code, words = cutWord(rest)
	code = upper(code)
	return code, words, lower(word) == "answer" && isCode(code) && words != ""
}

// trim removes the ASCII white space around s.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// cutWord splits s after its first word. Only spaces separate words.
func cutWord(s string) (word, rest string) {
	word, rest, _ = strings.Cut(s, " ")
	return word, strings.TrimLeft(rest, " ")
}

func isCode(s string) bool {
	return len(s) == CodeLength && strings.Trim(s, codeAlphabet) == ""
}

var voiceWords = map[string]Word{
	"yes": Yes, "approve": Yes, "ok": Yes, "okay": Yes, "continue": Yes,
	"no": No, "reject": No, "stop": No, "cancel": No,
}

// ReadVoice parses a transcript that consists of one of the words yes, approve, ok (or okay), continue,
// no, reject, stop and cancel. A longer transcript, such as a negation, is Unclear. nod cannot notice
// that a speech recogniser has dropped a "do not". The channel must therefore read a yes back to the
// person before it counts.
func ReadVoice(transcript string) Utterance { return Utterance{Word: voiceWords[Spoken(transcript)]} }

// Spoken returns a transcript in lower case, without the spaces around it and without the full stop that
// speech recognisers add at the end.
func Spoken(transcript string) string { return lower(strings.TrimSuffix(trim(transcript), ".")) }

// Pick returns the index of the request that the utterance answers, in the slice open. That slice
// contains the codes of the requests in this chat that wait for the person. An utterance without a code
// matches only if the slice has one element. ok is false if the utterance is Unclear, or if it matches no
// request or several.
func (said Utterance) Pick(open []string) (i int, ok bool) {
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

// NotUnderstood returns the reply to a text that is no answer. The slice open contains the codes of the
// requests that wait for the person.
func NotUnderstood(open []string) string {
	switch len(open) {
	case 0:
		return "Nothing is waiting for you."
	case 1:
		return fmt.Sprintf("I did not understand that, and nothing changed. Answer yes %s or no %s.", open[0], open[0])
	}
	return fmt.Sprintf("I did not understand that, and nothing changed. %d requests are waiting (%s): answer yes or no with a code, such as no %s.",
		len(open), strings.Join(open, ", "), open[0])
}

// Answer returns the person's answer to p. A yes chooses an option that allows once. A no chooses an
// option that denies once; if p has no such option, the no cancels the request. ok is false for an
// Unclear utterance, for a yes to an agent's question, and for a yes if p has no option that allows once.
// The caller must then send no answer. The answer counts for p.Waiters calls, so p must be the prompt
// that the person saw.
func (said Utterance) Answer(p *schemas.Prompt, from schemas.From) (a schemas.Answer, ok bool) {
	a = schemas.Answer{
		Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID,
		Digest: p.Digest, Waiters: p.Waiters, Message: said.Reason, From: from,
	}
	var option schemas.Option
	switch said.Word {
	case Yes:
		if p.Request.Kind == schemas.KindQuestion {
			return a, false // a yes names none of the answers to the agent's question, so it must choose none
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

// lower and upper change ASCII letters only. Unicode case folding would also turn other characters,
// such as the Kelvin sign, into ASCII letters.
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
