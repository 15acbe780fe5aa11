package acp

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/schemas"
)

// maxQueued is the length of a subscriber's queue. The stream drops a subscriber whose queue is full.
const maxQueued = 64

// Stream sends all subscribers each request that waits for a person. A new subscriber first gets
// the requests that are pending at that time. Stream is safe for concurrent use.
type Stream struct {
	mu      sync.Mutex
	pending []pending
	subs    map[*subscriber]bool
	ended   bool
}

// pending is a request that waits for a person, with its notification as JSON.
type pending struct {
	request schemas.Request
	encoded []byte
}

// subscriber is one client of the stream. When the stream closes the queue, why contains the status and
// the reason that the client gets.
type subscriber struct {
	queue chan []byte
	why   websocket.CloseError
}

// NewStream returns a stream without subscribers.
func NewStream() *Stream { return &Stream{subs: map[*subscriber]bool{}} }

type notification struct {
	Type      string    `json:"type"`
	Action    string    `json:"action"`
	Payload   payload   `json:"payload"`
	Timestamp time.Time `json:"timestamp"`
}

// payload contains the fields of a request that subscribers get.
type payload struct {
	PendingID     string             `json:"pending_id"`
	SessionID     string             `json:"session_id"`
	TaskID        string             `json:"task_id,omitempty"`
	ToolCallID    string             `json:"tool_call_id"`
	Title         string             `json:"title"`
	Options       []schemas.Option   `json:"options"`
	ActionType    schemas.ActionType `json:"action_type"`
	ActionDetails json.RawMessage    `json:"action_details"`
	CreatedAt     time.Time          `json:"created_at"`
}

func newNotification(r *schemas.Request) ([]byte, error) {
	return schemas.Encode(notification{
		Type: "notification", Action: "session.permission.requested", Timestamp: time.Now().UTC(),
		Payload: payload{
			r.PendingID, r.SessionID, r.TaskID, r.ToolCallID, r.Title, r.Options, r.ActionType, r.ActionDetails, r.CreatedAt,
		},
	})
}

// add sends the request r to all subscribers, and to each client that subscribes before the caller
// calls done. It drops a subscriber whose queue is full. If the Stream is nil, add does nothing.
func (s *Stream) add(r schemas.Request) (done func()) {
	if s == nil {
		return func() {}
	}
	encoded, err := newNotification(&r)
	if err != nil { // this cannot happen, because nod has accepted the request
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, pending{r, encoded})
	for sub := range s.subs {
		select {
		case sub.queue <- encoded:
		default:
			s.drop(sub, websocket.StatusTryAgainLater, "too slow: connect again to get the pending requests")
		}
	}
	return func() { s.remove(r.PendingID) }
}

func (s *Stream) remove(pendingID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(p pending) bool { return p.request.PendingID == pendingID })
}

// find returns the pending request with this id. If sessionID is set, the request must belong to that
// session.
func (s *Stream) find(sessionID, pendingID string) (schemas.Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.request.PendingID == pendingID && (sessionID == "" || sessionID == p.request.SessionID) {
			return p.request, true
		}
	}
	return schemas.Request{}, false
}

// subscribe adds a subscriber. Its second result is the notifications about all pending requests, which
// the caller must send first, because they are not in the subscriber's queue.
func (s *Stream) subscribe() (*subscriber, [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscriber{queue: make(chan []byte, maxQueued)}
	s.subs[sub] = true
	if s.ended {
		s.drop(sub, websocket.StatusGoingAway, "nod acp has ended")
	}
	first := make([][]byte, len(s.pending))
	for i, p := range s.pending {
		first[i] = p.encoded
	}
	return sub, first
}

func (s *Stream) unsubscribe(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, sub)
}

// drop closes a subscriber's queue. The client still gets the notifications in the queue, and then code
// and reason. The caller must hold s.mu.
func (s *Stream) drop(sub *subscriber, code websocket.StatusCode, reason string) {
	delete(s.subs, sub)
	sub.why = websocket.CloseError{Code: code, Reason: reason}
	close(sub.queue)
}

// Close ends all subscriptions. If a client subscribes after Close, it gets the pending requests, and
// its subscription ends.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for sub := range s.subs {
		s.drop(sub, websocket.StatusGoingAway, "nod acp has ended")
	}
}
