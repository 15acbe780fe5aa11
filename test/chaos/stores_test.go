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

// evidence is all that the checks go by.
type evidence struct {
	Began  time.Time // of the history: the broker's clock, since no server's is stepped
	Events []*event
	Faults []span        // one after another
	End    time.Duration // when what was left had been given time to settle
	Stored stored
	Phone  []telegramtest.Message // Carl's chat
}

// stored is what the stores hold at the end.
type stored struct {
	Records map[string]schemas.Record // by key
	Raw     map[string]string         // the same as text, which names the calls that wait with others
	Keys    map[string][]string       // by session
	Logged  map[string]*schemas.Decision
	Pending map[string]bool // what people are shown as open
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

// waiting is what a record says of the calls that wait for its decision.
type waiting struct {
	Joined  string // the question that it is among
	Waiters []struct {
		PendingID string `json:"pending_id"`
		Stays     bool
		Decision  *schemas.Decision
	}
	Decision *schemas.Decision
}

// verdict is the decision about one of a record's calls, or nil.
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

// decision is the stored one of a request: its own record's, or of the question that
// it waits with, or what the log has of one that was decided at once. The one that it
// waits with tells it under its own id.
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

// crowded reports whether several calls wait, or waited, for a question, or whether
// the request waits for another's.
func (s *stored) crowded(key string) bool {
	var rec waiting
	raw, ok := s.Raw[key]
	return ok && json.Unmarshal([]byte(raw), &rec) == nil && (len(rec.Waiters) > 1 || rec.Joined != "")
}

// named are the records of a session that name an id: its own, and those in which
// it waits or waited.
func (s *stored) named(session, id string) (records []schemas.Record) {
	for _, key := range s.Keys[session] {
		if strings.Contains(s.Raw[key], `"`+id+`"`) {
			records = append(records, s.Records[key])
		}
	}
	return records
}

// readStores reads all that is stored, beside nod.
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
			return nil // no request's: what a quorum confirms reads with
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

// each calls f for every message of a stream that is there now.
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
