package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/roles"
)

const (
	// If the stream of the records has maxWatches consumers, observers get no further watch, because
	// each consumer costs the server memory, and work at each change of a record.
	maxWatches = 64
	// watchIdle is the longest time for which the server keeps a watch that has no subscriber.
	watchIdle = 5 * time.Minute
	// minWatchBeat is the shortest interval between heartbeats of a watch.
	minWatchBeat = time.Second
	// watchMark marks the consumers that observers made and may delete.
	watchMark = "nod-observer"
)

// watchRequest is a JetStream request for a consumer. It has only the fields that an observer may choose.
type watchRequest struct {
	Config struct {
		DeliverPolicy  json.RawMessage `json:"deliver_policy,omitempty"`
		OptStartSeq    uint64          `json:"opt_start_seq,omitempty"`
		OptStartTime   *time.Time      `json:"opt_start_time,omitempty"`
		FilterSubject  string          `json:"filter_subject"`
		DeliverSubject string          `json:"deliver_subject"`
		HeadersOnly    bool            `json:"headers_only,omitempty"`
		Heartbeat      time.Duration   `json:"idle_heartbeat,omitempty"`
		Inactive       time.Duration   `json:"inactive_threshold,omitempty"`
	} `json:"config"`
}

// ServeWatches lets observers follow the bucket of records, until the caller calls the returned
// function. JetStream needs a consumer for this. An observer has no right to make a consumer, because
// the request for it names the subject to which the server delivers, and by naming a subject of the
// stores an observer could write into the stores. An engine therefore makes the consumer. The
// consumer delivers only to an observer, needs no acknowledgements, and ends some time after its
// observer has gone.
//
// On a server without credentials every client makes its own consumers, and ServeWatches does
// nothing.
func (r *Records) ServeWatches(edge *Conn) (stop func(), err error) {
	if edge.Open() {
		return func() {}, nil
	}
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // Unsubscribe fails only on a closed connection, which has no subscriptions
		}
	}
	for subject, handle := range map[string]func(context.Context, string, []byte) []byte{
		roles.WatchSubject:   r.watchFor,
		roles.UnwatchSubject: r.unwatch,
	} {
		sub, err := edge.nc.QueueSubscribe(subject+">", "engines", func(m *nats.Msg) {
			if !strings.HasPrefix(m.Reply, roles.ImportedReplies) { // the request does not come from an observer
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), hopTimeout)
			defer cancel()
			name, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, subject), ".")
			_ = m.Respond(handle(ctx, name, m.Data)) // an observer that gets no reply sends its request again
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("serve observers: %w", err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

// watchFor makes the consumer that an observer asks for, and returns the server's reply.
func (r *Records) watchFor(ctx context.Context, name string, body []byte) []byte {
	var asked watchRequest
	if err := json.Unmarshal(body, &asked); err != nil {
		return apiRefusal("the request is not JSON of a consumer")
	}
	c := asked.Config
	switch {
	case !strings.HasPrefix(c.DeliverSubject, roles.ObserverInbox):
		return apiRefusal("an observer can follow records only into its own inbox: set the inbox prefix to " + strings.TrimSuffix(roles.ObserverInbox, "."))
	case !strings.HasPrefix(c.FilterSubject, recordPrefix):
		return apiRefusal("an observer can follow records only, with a filter that begins with " + recordPrefix)
	}
	info, err := r.stream.Info(ctx)
	if err != nil {
		return apiRefusal("the store of the records does not reply: try again")
	}
	if info.State.Consumers >= maxWatches {
		return apiRefusal(fmt.Sprintf("the records have %d consumers already: end other watches, or try again in five minutes", info.State.Consumers))
	}
	config := map[string]any{
		"name": name, "metadata": map[string]string{watchMark: "1"},
		"ack_policy": "none", "max_deliver": 1, "replay_policy": "instant", "mem_storage": true, "num_replicas": 1,
		"deliver_subject": c.DeliverSubject, "filter_subject": c.FilterSubject, "headers_only": c.HeadersOnly,
		"idle_heartbeat":     max(c.Heartbeat, minWatchBeat),
		"inactive_threshold": min(max(c.Inactive, 5*time.Second), watchIdle),
	}
	if len(c.DeliverPolicy) > 0 {
		config["deliver_policy"] = c.DeliverPolicy
	}
	if c.OptStartSeq > 0 {
		config["opt_start_seq"] = c.OptStartSeq
	}
	if c.OptStartTime != nil {
		config["opt_start_time"] = c.OptStartTime
	}
	// With the action "create", the server refuses the name of an existing consumer.
	request, err := json.Marshal(map[string]any{"stream_name": r.name, "action": "create", "config": config})
	if err != nil {
		return apiRefusal("the request is not valid")
	}
	return r.forward(ctx, "$JS.API.CONSUMER.CREATE."+r.name+"."+name+"."+c.FilterSubject, request)
}

// unwatch ends a watch. It deletes no consumer that is not a watch.
func (r *Records) unwatch(ctx context.Context, name string, _ []byte) []byte {
	var found struct {
		Config jetstream.ConsumerConfig `json:"config"`
	}
	reply := r.forward(ctx, "$JS.API.CONSUMER.INFO."+r.name+"."+name, nil)
	if err := json.Unmarshal(reply, &found); err != nil || found.Config.Metadata[watchMark] == "" {
		return apiRefusal("no observer has made a watch with this name")
	}
	return r.forward(ctx, "$JS.API.CONSUMER.DELETE."+r.name+"."+name, nil)
}

func (r *Records) forward(ctx context.Context, subject string, request []byte) []byte {
	reply, err := r.conn.nc.RequestWithContext(ctx, subject, request)
	if err != nil {
		return apiRefusal("the server does not reply: try again")
	}
	return reply.Data
}

func apiRefusal(text string) []byte {
	data, _ := json.Marshal(map[string]any{"error": jetstream.APIError{Code: 403, Description: text}}) // Marshal cannot fail on these types
	return data
}
