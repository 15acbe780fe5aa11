package bus

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/roles"
)

// StoreState is the state of one of nod's streams on the NATS servers.
type StoreState struct {
	Name   string
	Exists bool
	// Leader is the name of the server that leads the stream, or empty if there is none. Without a
	// leader, the following fields are zero.
	Leader    string
	Followers []Follower
	Replicas  int
	// Differs lists, by their JSON names, those fields of the stream's configuration that differ from
	// the configuration that nod gives the stream. It leaves out the number of replicas and the limits
	// of the log, because they are settings.
	Differs         []string
	Bytes, MaxBytes int64 // MaxBytes is -1 if there is no limit
	// Ahead is how far the clock of the leader's server is ahead of this machine's clock. ClockKnown is
	// false if the server's clock could not be read.
	Ahead      time.Duration
	ClockKnown bool
	// Queues has the states of those durable consumers that nod has on the stream and that exist.
	Queues []QueueState
	// Err says why the server's clock and the queues could not be read.
	Err error
}

// Follower is a server that has a replica of a stream and does not lead it.
type Follower struct {
	Name string
	// Current means that the replica has the newest messages. Offline means that the leader
	// counts the server as gone.
	Current, Offline bool
	Lag              uint64        // the number of operations that the replica lacks
	Heard            time.Duration // the time since the leader last heard from the server
}

// QueueState is the state of a durable consumer.
type QueueState struct {
	Name, Leader     string
	Waiting, Unacked int // the number of messages that are not delivered yet, and of those not acknowledged yet
	Readers          int // the number of pulls that wait for messages; each engine or worker has at least one
}

// StoreStates reads the states of nod's stores, in a fixed order. The connection must have the key of an
// observer or a key of the account STORE.
func (c *Conn) StoreStates(ctx context.Context) (all []StoreState, err error) {
	exist, led, err := c.listStreams(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	for i, config := range storeConfigs(1) {
		s := StoreState{Name: config.Name, Exists: slices.Contains(exist, config.Name)}
		if info := led[config.Name]; info != nil {
			s.describe(info, c.ServerInfo().Name)
			s.Differs = differences(storeConfigs(s.Replicas)[i], info.Config)
			s.Err = c.inquire(ctx, &s)
		}
		all = append(all, s)
	}
	return all, nil
}

// listStreams returns the names of all streams, and the states of those that have a leader.
func (c *Conn) listStreams(ctx context.Context) (exist []string, led map[string]*jetstream.StreamInfo, err error) {
	hop, cancel := context.WithTimeout(ctx, 2*hopTimeout) // for streams without a leader, the servers wait 4 s before they reply
	defer cancel()
	names := c.js.StreamNames(hop)
	for name := range names.Name() {
		exist = append(exist, name)
	}
	if err := names.Err(); err != nil {
		return nil, nil, err
	}
	led = map[string]*jetstream.StreamInfo{}
	list := c.js.ListStreams(hop)
	for info := range list.Info() {
		led[info.Config.Name] = info
	}
	return exist, led, list.Err()
}

// describe takes over the state of a stream. Without a cluster, the only server leads it.
func (s *StoreState) describe(info *jetstream.StreamInfo, server string) {
	s.Leader, s.Replicas = server, info.Config.Replicas
	if cluster := info.Cluster; cluster != nil {
		s.Leader = cluster.Leader
		for _, p := range cluster.Replicas {
			s.Followers = append(s.Followers, Follower{p.Name, p.Current, p.Offline, p.Lag, p.Active})
		}
	}
	s.Bytes, s.MaxBytes = int64(info.State.Bytes), info.Config.MaxBytes
}

// differences lists the JSON names of the fields that nod's configuration sets and that are different in
// a stream.
func differences(ours, theirs jetstream.StreamConfig) (names []string) {
	var a, b map[string]any
	if convert(ours, &a) != nil || convert(theirs, &b) != nil {
		return []string{"config"}
	}
	for name, value := range a {
		switch name {
		case "num_replicas", "max_bytes", "max_age", "metadata", "allow_direct":
		default:
			inherits := slices.Contains([]any{nil, false, 0.0, ""}, value) // the server replaces a zero value by its default
			if !reflect.DeepEqual(value, b[name]) && !inherits {
				names = append(names, name)
			}
		}
	}
	if ours.AllowDirect != theirs.AllowDirect {
		names = append(names, "allow_direct")
	}
	slices.Sort(names)
	return names
}

// inquire asks the leader about the stream and its consumers. The reply has the time of the leader's
// server. If an observer has no right to ask about the stream, inquire does nothing.
func (c *Conn) inquire(ctx context.Context, s *StoreState) error {
	if !slices.Contains(roles.ObservedStreams(), s.Name) {
		return nil
	}
	hop, cancel := context.WithTimeout(ctx, 2*hopTimeout)
	defer cancel()
	asked := time.Now()
	stream, err := c.js.Stream(hop, s.Name)
	if err != nil {
		return fmt.Errorf("read the state of %s: %w", s.Name, err)
	}
	if at := stream.CachedInfo().TimeStamp; !at.IsZero() {
		s.Ahead, s.ClockKnown = at.Sub(asked.Add(time.Since(asked)/2)), true
	}
	list := stream.ListConsumers(hop)
	for info := range list.Info() {
		if _, ours := consumerConfig(s.Name, info.Name); !ours || info.Config.Durable == "" {
			continue
		}
		q := QueueState{Name: info.Name, Leader: s.Leader, Waiting: int(info.NumPending), Unacked: info.NumAckPending, Readers: info.NumWaiting}
		if info.Cluster != nil {
			q.Leader = info.Cluster.Leader
		}
		s.Queues = append(s.Queues, q)
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list the consumers of %s: %w", s.Name, err)
	}
	return nil
}
