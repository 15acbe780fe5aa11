package whatsapptest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// event is one message or report about which the server calls the webhook.
type event struct{ fields map[string]any }

// body returns the bytes of the webhook's call about an event.
func (e *event) body() []byte {
	value := map[string]any{"messaging_product": "whatsapp", "metadata": map[string]any{"display_phone_number": display, "phone_number_id": Number}}
	for k, v := range e.fields {
		value[k] = v
	}
	data, err := json.Marshal(map[string]any{"object": "whatsapp_business_account", "entry": []any{
		map[string]any{"id": "1", "changes": []any{map[string]any{"field": "messages", "value": value}}},
	}})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return data
}

// Sign returns the signature of a body with the app secret.
func Sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(AppSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Hook sets the address of the webhook, as a user does in Meta's console. It does not check the address.
func (s *Server) Hook(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = address
}

// Verify checks the address of the webhook as the real server does.
func (s *Server) Verify(token string) error {
	s.mu.Lock()
	address := s.hook
	s.mu.Unlock()
	resp, err := http.Get(address + "?" + url.Values{"hub.mode": {"subscribe"}, "hub.challenge": {"1158201444"}, "hub.verify_token": {token}}.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(said) != "1158201444" {
		return fmt.Errorf("the callback URL could not be validated: %d %q %w", resp.StatusCode, said, err)
	}
	return nil
}

func (s *Server) push(e *event) {
	s.queue = append(s.queue, e)
	select {
	case s.arrived <- struct{}{}:
	default: // deliver has not read the last signal yet, so no second signal is needed
	}
}

func (s *Server) report(m *message, state string, f *failure) {
	about := map[string]any{"id": m.ID, "status": state, "timestamp": fmt.Sprint(s.now().Unix()), "recipient_id": m.person}
	if m.callback != "" {
		about["biz_opaque_callback_data"] = m.callback
	}
	if f != nil {
		about["errors"] = []any{map[string]any{"code": f.code, "title": f.words, "message": f.words}}
	}
	s.push(&event{map[string]any{"statuses": []any{about}}})
}

// Unconfirmed returns the number of calls that the webhook has not confirmed.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// deliver calls the webhook for one event after another. If the webhook does not confirm an
// event, deliver sends it again after the other events.
func (s *Server) deliver() {
	pause := 2 * time.Millisecond
	for {
		s.mu.Lock()
		var next *event
		if len(s.queue) > 0 && s.hook != "" {
			next = s.queue[0]
		}
		address := s.hook
		s.mu.Unlock()
		wait := time.NewTimer(pause)
		switch {
		case next == nil:
			select {
			case <-s.arrived:
			case <-wait.C:
			case <-s.done:
				wait.Stop()
				return
			}
		case s.call(address, next):
			s.confirm(next)
			pause = 2 * time.Millisecond
		default:
			s.postpone()
			select {
			case <-wait.C:
			case <-s.done:
				wait.Stop()
				return
			}
			pause = min(2*pause, 100*time.Millisecond)
		}
		wait.Stop()
	}
}

// call calls the webhook about an event, and reports whether the webhook confirmed the event.
func (s *Server) call(address string, e *event) bool {
	body := e.body()
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", Sign(body))
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *Server) confirm(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = append(s.confirmed, e)
	if i := slices.Index(s.queue, e); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
}

// postpone moves the first event to the end of the queue.
func (s *Server) postpone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 1 {
		s.queue = append(s.queue[1:], s.queue[0])
	}
}

// Replay sends every call again that the webhook has confirmed so far, newest first. The parameter times
// says how many times it sends each call.
func (s *Server) Replay(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(slices.Clone(s.confirmed)) {
		for range times {
			s.push(&event{e.fields})
		}
	}
}
