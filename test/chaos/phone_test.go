package chaos

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
)

// onPhone waits until Carl's phone shows a question with buttons. It returns a function that presses the
// button with a given label.
func (s *story) onPhone(ctx context.Context, id string) (press func(words string), err error) {
	var found telegramtest.Message
	err = every(ctx, 100*time.Millisecond, func() (there bool) {
		found, there = s.eyes.sees(id)
		return there
	})
	return func(words string) {
		for _, b := range found.Buttons {
			if strings.Contains(b.Text, words) {
				s.place.telegram().Press(carlID, carlID, found.ID, b.Data, false)
			}
		}
	}, err
}

// eyes has the questions with buttons on Carl's phone, by request id. The method watch reads them from
// the phone every 200 ms, for all stories.
type eyes struct {
	mu        sync.Mutex
	questions map[string]telegramtest.Message
}

func (e *eyes) sees(id string) (telegramtest.Message, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, there := e.questions[id]
	return m, there
}

func (e *eyes) watch(ctx context.Context, phone *telegramtest.Server) {
	_ = every(ctx, 200*time.Millisecond, func() bool { // the function every fails only when ctx ends
		questions := map[string]telegramtest.Message{}
		for _, m := range phone.Chat(carlID) {
			if id, ok := requestOn(m); ok && len(m.Buttons) > 0 {
				questions[id] = m
			}
		}
		e.mu.Lock()
		e.questions = questions
		e.mu.Unlock()
		return false
	})
}

func requestOn(m telegramtest.Message) (id string, ok bool) {
	_, rest, ok := strings.Cut(m.First, "Request: ")
	id, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSpace(id), ok
}
