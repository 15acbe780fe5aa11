package whatsapp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/schemas"
)

// post calls the webhook with a body, and returns the status of the reply.
func (w *world) post(body, signature string) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+w.listen+"/nod/whatsapp", strings.NewReader(body))
	w.NoError(err)
	if signature != "" {
		req.Header.Set("X-Hub-Signature-256", signature)
	}
	var resp *http.Response
	w.waits(func() bool { // wait until the webhook listens
		resp, err = http.DefaultClient.Do(req)
		if err != nil {
			req.Body = nopCloser(body)
		}
		return err == nil
	})
	defer resp.Body.Close()
	return resp.StatusCode
}

type closer struct{ *bytes.Reader }

func (closer) Close() error { return nil }

func nopCloser(body string) closer { return closer{bytes.NewReader([]byte(body))} }

// yes returns a call with Ann's tap on Allow.
func (w *world) yes(from, number string, at time.Time, id string) string {
	w.t.Helper()
	quoted, err := json.Marshal(id)
	w.NoError(err)
	return fmt.Sprintf(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":%q},"messages":[`+
		`{"id":%q,"from":%q,"timestamp":"%d","type":"interactive","interactive":{"type":"button_reply","button_reply":{"id":%s,"title":"Allow once"}}}]}}]}]}`,
		number, w.last().ID, from, at.Unix(), quoted)
}

// Only a call whose exact bytes are signed with the app secret is handled.
func TestOnlySignedCallsAreHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, m := w.shows()
	defer w.run()()
	body := w.yes(ann, whatsapptest.Number, time.Now(), m.Buttons[0].ID)
	right := whatsapptest.Sign([]byte(body))
	for _, signature := range []string{
		"", "sha256=", "sha256=00", strings.TrimPrefix(right, "sha256="), "sha1=" + right[7:], right[:len(right)-1], right + "00",
		strings.Repeat("0", len(right)), whatsapptest.Sign([]byte(body + " ")), "SHA256=" + right[7:],
	} {
		w.Equal(http.StatusForbidden, w.post(body, signature), "%q", signature)
	}
	for _, changed := range []string{body + " ", strings.Replace(body, ann, "4712", 1), strings.ToUpper(body), ""} {
		w.Equal(http.StatusForbidden, w.post(changed, right))
	}
	w.Zero(w.desk.answered())
	w.Equal(http.StatusOK, w.post(body, right))
	w.Equal(1, w.desk.answered())
}

// A signed call that is malformed, about another phone number, without a person, in a group or too old
// decides nothing.
func TestOtherCallsDecideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, m := w.shows()
	defer w.run()()
	id := m.Buttons[0].ID
	for body, status := range map[string]int{
		"":                      http.StatusBadRequest,
		"null":                  http.StatusBadRequest,
		`{"object":"page"}`:     http.StatusBadRequest,
		`[]`:                    http.StatusBadRequest,
		strings.Repeat("[", 99): http.StatusBadRequest,
		w.yes(ann, "1065403522429", time.Now(), id):                                                            http.StatusOK,
		w.yes("", whatsapptest.Number, time.Now(), id):                                                         http.StatusOK,
		w.yes(ann, whatsapptest.Number, time.Now().Add(-9*24*time.Hour), id):                                   http.StatusOK,
		strings.Replace(w.yes(ann, whatsapptest.Number, time.Now(), id), `"from"`, `"group_id":"g","from"`, 1): http.StatusOK,
	} {
		w.Equal(status, w.post(body, whatsapptest.Sign([]byte(body))), body)
	}
	w.Equal(http.StatusRequestEntityTooLarge, w.post(strings.Repeat(" ", 5<<20), ""))
	w.Zero(w.desk.answered())
}

func TestTheAddressIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.run()()
	w.waits(func() bool { return w.Verify(whatsapptest.VerifyToken) == nil })
	for _, token := range []string{"", "x", whatsapptest.VerifyToken + "x", whatsapptest.AppSecret} {
		w.Error(w.Verify(token), token)
	}
}

// Meta's calls may arrive late, repeatedly and in another order, even after nod has restarted. An
// answer counts once, and a repeated thaw does not end a later freeze.
func TestRepeatedAndLateCallsHaveNoSecondEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, m := w.shows()
	stop := w.run()
	w.Write(ann, "/freeze", "")
	w.Write(ann, "/thaw", "")
	w.Write(ann, "/freeze again", "")
	w.Tap(ann, m.ID, m.Buttons[0].ID)
	w.quiet()
	w.Equal("freeze thaw freeze", w.desk.did())
	w.Equal(1, w.desk.answered())
	read := len(w.Chat(ann))
	w.Error(stop())

	w.open()
	defer w.run()()
	w.Replay(3)
	w.quiet()
	w.Equal("freeze thaw freeze", w.desk.did())
	w.Equal(1, w.desk.answered())
	w.Len(w.Chat(ann), read, "a repeated message gets no second reply")
}

// A call is confirmed only after nod has stored or refused its answer.
func TestNothingIsConfirmedBeforeNodTookIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, m := w.shows()
	defer w.run()()
	w.quiet()
	body := w.yes(ann, whatsapptest.Number, time.Now(), m.Buttons[0].ID)
	w.desk.mu.Lock()
	w.desk.err = schemas.Errorf(schemas.CodeUnavailable, "no engine")
	w.desk.mu.Unlock()
	for range 3 {
		w.Equal(http.StatusServiceUnavailable, w.post(body, whatsapptest.Sign([]byte(body))))
	}
	w.desk.mu.Lock()
	w.desk.err = nil
	w.desk.mu.Unlock()
	w.Equal(http.StatusOK, w.post(body, whatsapptest.Sign([]byte(body))))
	w.Equal(1, w.desk.answered())
	w.Equal(http.StatusOK, w.post(body, whatsapptest.Sign([]byte(body))))
	w.Equal(1, w.desk.answered())
}

// Even if an engine cannot remember handled messages, nod accepts answers. With such an engine, nod
// carries out no thaw.
func TestAnOlderEngineStillGetsAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.desk.noMarks = schemas.Errorf(schemas.CodeValidation, "code: only the web inbox marks codes")
	_, m := w.shows()
	defer w.run()()
	w.Write(ann, "/thaw", "")
	w.Tap(ann, m.ID, m.Buttons[0].ID)
	w.told("Allowed once")
	w.quiet()
	w.Equal(1, w.desk.answered())
	w.Empty(w.desk.did())
}

// FuzzButtons submits invented ids of buttons. Only the ids of buttons that nod has shown may
// answer a request.
func FuzzButtons(f *testing.F) {
	for _, id := range []string{"", "v1:show", "allow_once", "v1::a.1", "v1:" + strings.Repeat("A", 43) + ":a.1:S-1:perm-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		w := newWorld(t)
		_, m := w.shows()
		defer w.run()()
		for _, b := range m.Buttons {
			if b.ID == id {
				return
			}
		}
		body := w.yes(ann, whatsapptest.Number, time.Now(), id)
		w.post(body, whatsapptest.Sign([]byte(body)))
		w.Zero(w.desk.answered())
	})
}
