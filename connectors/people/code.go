package people

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Codes makes the codes of prompts on a channel that cannot store them. Every worker of the channel makes
// the same codes, also after a restart. The bytes are a secret key of the channel; an agent without the
// key cannot search for a request with a code that a person is about to type.
type Codes []byte

// maxCounted is the largest number of identical calls that Find considers for one prompt. A code depends
// on this number, so Find tries each number from 1.
const maxCounted = 1000

// Of returns the code of p for its recipient. The code depends on the request's content and on p.Waiters,
// the number of calls that the message shows.
func (key Codes) Of(p *schemas.Prompt, recipient string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join([]string{p.SessionID, p.PendingID, p.Digest, recipient, strconv.Itoa(max(1, p.Waiters))}, "\x00")))
	code := make([]byte, 0, CodeLength)
	for sum := mac.Sum(nil); len(code) < CodeLength; {
		for _, b := range sum {
			if i := int(b & 31); i < len(codeAlphabet) && len(code) < CodeLength {
				code = append(code, codeAlphabet[i])
			}
		}
		next := sha256.Sum256(sum)
		sum = next[:]
	}
	return string(code)
}

// Find returns the recipient's pending request whose message shows the code, with the number of calls
// that the message shows. ok is false if no request, or more than one, has the code.
func (key Codes) Find(ctx context.Context, desk Desk, code, recipient string) (found schemas.Prompt, ok bool, err error) {
	ambiguous := false
	err = desk.EachPending(ctx, schemas.Query{Recipient: recipient}, func(page []schemas.Prompt) error {
		for i := range page {
			p, messages := key.shows(page[i], code, recipient)
			if messages == 0 {
				continue
			}
			ambiguous = ambiguous || messages > 1 || ok && p.Key() != found.Key() // two pages may contain the same request
			found, ok = p, true
		}
		return nil
	})
	if err != nil || ambiguous {
		return schemas.Prompt{}, false, err
	}
	return found, ok, nil
}

// shows tries the possible numbers of calls. It returns p with a number whose message has this code, and
// in messages the count of such numbers. The count is above 1 only if two codes are equal by chance.
func (key Codes) shows(p schemas.Prompt, code, recipient string) (shown schemas.Prompt, messages int) {
	for n := 1; n <= min(max(1, p.Waiters), maxCounted); n++ {
		if q := AsShown(p, n); key.Of(&q, recipient) == code {
			shown, messages = q, messages+1
		}
	}
	return shown, messages
}
