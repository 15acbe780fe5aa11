package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// evidence is what the checks examine.
type evidence struct {
	Began  time.Time // the start of the history; this is also broker time, because no test steps the broker's clock
	Events []*event
	Faults []span        // the faults in order; they do not overlap
	End    time.Duration // the end of the history, after the last stories and views
	Stored stored
	Phone  []telegramtest.Message // the messages in Carl's chat
}

// stored is the content of the stores at the end of the history.
type stored struct {
	Records map[string]schemas.Record    // the records, by key
	Raw     map[string]string            // the JSON of the records, by key
	Keys    map[string][]string          // the keys of the records, by session
	Logged  map[string]*schemas.Decision // the decisions in the log, by the request's key
	Pending map[string]bool              // the keys of the requests that a desk lists as pending
}

func newStored() stored {
	return stored{map[string]schemas.Record{}, map[string]string{}, map[string][]string{}, map[string]*schemas.Decision{}, map[string]bool{}}
}

func (s *stored) keep(key string, rec schemas.Record, raw string) {
	if _, there := s.Records[key]; !there {
		session, _ := schemas.SplitKey(key)
		s.Keys[session] = append(s.Keys[session], key)
	}
	s.Records[key], s.Raw[key] = rec, raw
}

// waiting is the part of a record about the calls that wait for its decision.
type waiting struct {
	Joined  string // the id of the question that the request has joined
	Waiters []struct {
		PendingID string `json:"pending_id"`
		Stays     bool
		Decision  *schemas.Decision
	}
	Decision *schemas.Decision
}

// verdict returns the decision about one call of the record. It returns nil if there is none.
func (w *waiting) verdict(id string) *schemas.Decision {
	for _, call := range w.Waiters {
		if call.PendingID == id && call.Stays {
			return nil
		} else if call.PendingID == id && call.Decision != nil {
			return call.Decision
		}
	}
	return w.Decision
}

// decision returns the stored decision of a request. It looks in the request's own record, in the record of
// the question that the request has joined, and in the log, which has the decisions that were made at once.
// The method puts the id of the request into a decision that belongs to a question. Without a decision, the
// method returns nil.
func (s *stored) decision(key string) *schemas.Decision {
	session, id := schemas.SplitKey(key)
	var rec waiting
	if raw, ok := s.Raw[key]; !ok || json.Unmarshal([]byte(raw), &rec) != nil {
		return s.Logged[key]
	}
	if d := rec.verdict(id); d != nil {
		return d
	}
	var question waiting
	if raw, ok := s.Raw[schemas.Key(session, rec.Joined)]; rec.Joined == "" || !ok || json.Unmarshal([]byte(raw), &question) != nil {
		return s.Logged[key]
	}
	d := question.verdict(id)
	if d == nil || d.PendingID == id {
		return d
	}
	own := *d
	own.PendingID = id
	return &own
}

// crowded reports whether a question has or had several waiters, or whether the request has joined
// another question.
func (s *stored) crowded(key string) bool {
	var rec waiting
	raw, ok := s.Raw[key]
	return ok && json.Unmarshal([]byte(raw), &rec) == nil && (len(rec.Waiters) > 1 || rec.Joined != "")
}

// The method named returns the records of a session that contain the id of a request. These are the request's
// own record, and the records of questions that have or had the request as a waiter.
func (s *stored) named(session, id string) (records []schemas.Record) {
	for _, key := range s.Keys[session] {
		if strings.Contains(s.Raw[key], `"`+id+`"`) {
			records = append(records, s.Records[key])
		}
	}
	return records
}

// readStores reads the stores directly from the servers. It reads the list of pending requests from nod.
func (w *world) readStores(ctx context.Context) (stored, error) {
	s := newStored()
	id := roles.ID{Role: roles.OwnerStore}
	key, err := nats.NkeyOptionFromSeed(w.place.keys().Path(id))
	if err != nil {
		return s, err
	}
	nc, err := nats.Connect(w.place.urls("people"), key, nats.CustomInboxPrefix(id.InboxPrefix()))
	if err != nil {
		return s, fmt.Errorf("read the stores: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return s, err
	}
	const records = "$KV.pending_permissions."
	if err := each(ctx, js, "KV_pending_permissions", records+">", func(subject string, data []byte) error {
		key := strings.TrimPrefix(subject, records)
		if !strings.Contains(key, ".") {
			return nil // this is no record, but the barrier that a scan writes before it reads
		}
		var rec schemas.Record
		if err := json.Unmarshal(data, &rec); err != nil {
			return fmt.Errorf("read the record %s: %w", key, err)
		}
		s.keep(key, rec, string(data))
		return nil
	}); err != nil {
		return s, err
	}
	if err := each(ctx, js, "permission_log", ">", func(_ string, data []byte) error {
		var e schemas.LogEntry
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if e.Decision != nil {
			s.Logged[schemas.Key(e.SessionID, e.PendingID)] = e.Decision
		}
		return nil
	}); err != nil {
		return s, err
	}
	prompts, err := w.ann().desk.Pending(ctx, schemas.Query{})
	for _, p := range prompts {
		s.Pending[p.Key()] = true
	}
	return s, err
}

// The function each calls f for every message in a stream, except for markers of deletions.
func each(ctx context.Context, js jetstream.JetStream, stream, filter string, f func(subject string, data []byte) error) error {
	st, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("read %s: %w", stream, err)
	}
	consumer, err := st.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}})
	if err != nil {
		return fmt.Errorf("read %s: %w", stream, err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", stream, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read %s: %w", stream, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for range info.NumPending {
		msg, err := messages.Next()
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if msg.Headers().Get("KV-Operation") != "" {
			continue
		}
		if err := f(msg.Subject(), msg.Data()); err != nil {
			return err
		}
	}
	return nil
}
