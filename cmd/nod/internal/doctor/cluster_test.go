package doctor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/bus"
)

func TestAStoreOfAClusterIsJudged(t *testing.T) {
	well := bus.StoreState{Name: "KV_shown_prompts", Exists: true, Leader: "a", Replicas: 3, MaxBytes: -1,
		Followers: []bus.Follower{{Name: "b", Current: true}, {Name: "c", Current: true}}, Queues: []bus.QueueState{{Name: "q", Leader: "a", Readers: 1}}}
	for text, change := range map[string]func(*bus.StoreState){
		"ok: a leads it, and 3 replicas are current":                 func(*bus.StoreState) {},
		"wrong: it does not exist":                                   func(s *bus.StoreState) { s.Exists = false },
		"wrong: no server leads it, so it cannot be read or written": func(s *bus.StoreState) { s.Leader = "" },
		"wrong: replicas are missing: b is offline; c is not current (7 operations behind, last heard of 3s ago); d is not current (2 operations behind)": func(s *bus.StoreState) {
			s.Followers = []bus.Follower{{Name: "c", Lag: 7, Heard: 3 * time.Second}, {Name: "b", Offline: true, Current: true}, {Name: "d", Lag: 2}}
		},
		"note: replicas: 1, so it is lost or stops with one server":                         func(s *bus.StoreState) { s.Replicas, s.Followers = 1, nil },
		"wrong: its configuration differs from the one that nod makes in discard, max_msgs": func(s *bus.StoreState) { s.Differs = []string{"discard", "max_msgs"} },
		"note: it has 95 of at most 100 bytes":                                              func(s *bus.StoreState) { s.Bytes, s.MaxBytes = 95, 100 },
		"wrong: no server leads it, so its messages are not delivered":                      func(s *bus.StoreState) { s.Queues[0].Leader = "" },
		"wrong: no engine or worker reads it, and 5 messages wait":                          func(s *bus.StoreState) { s.Queues[0] = bus.QueueState{Leader: "a", Waiting: 2, Unacked: 3} },
		"note: no engine or worker reads it":                                                func(s *bus.StoreState) { s.Queues[0].Readers = 0 },
		"note: 2000 messages wait":                                                          func(s *bus.StoreState) { s.Queues[0].Waiting = 2000 },
		"wrong: read the state of KV_shown_prompts: context deadline exceeded":              func(s *bus.StoreState) { s.Err = errState },
	} {
		s := well
		s.Queues = append([]bus.QueueState(nil), well.Queues...)
		change(&s)
		found := store(&s)
		assert.Len(t, found, 1, text)
		assert.Equal(t, text, string(found[0].Level)+": "+found[0].What)
	}
}

var errState = errors.New("read the state of KV_shown_prompts: context deadline exceeded")

func TestOlderServersAreKnownByTheirVersion(t *testing.T) {
	for version, want := range map[string]bool{"2.15.0": false, "2.15.0-preview.1": false, "2.16.1": false, "3.0.0": false, "2.14.9": true, "2.9.25": true, "1.4.1": true, "": false, "x": false} {
		assert.Equal(t, want, older(version), version)
	}
}

func TestAServerIsKnownByItsHostAndPort(t *testing.T) {
	for url, host := range map[string]string{
		"nats://a:4222": "a:4222", "nats://a": "a:4222", "a": "a:4222", "a:4223": "a:4223",
		"tls://[::1]:4222": "[::1]:4222", "nats://[::1]": "[::1]:4222", "nats://user:secret@a:4222": "a:4222",
	} {
		assert.Equal(t, host, hostOf(url), url)
	}
}

func TestEachClockIsCompared(t *testing.T) {
	second, minute := time.Second, time.Minute
	for text, c := range map[string]struct {
		read   clocks
		leader time.Duration // of the server "led", which leads a store
	}{
		"ok: the clocks of this machine and of a, b, led are at most 1s apart":                                                                   {clocks{"a": new(time.Duration), "b": &second}, 0},
		"note: the clocks of this machine and of a, led are at most 3s apart: led is 3s behind this machine":                                     {clocks{"a": new(time.Duration)}, -3 * second},
		"wrong: the clocks of this machine and of a, led are at most 1m3s apart: a is 1m0s ahead of this machine; led is 3s behind this machine": {clocks{"a": &minute}, -3 * second},
	} {
		found := c.read.findings([]bus.StoreState{{Leader: "led", Ahead: c.leader, ClockKnown: true}, {Leader: "led"}, {}})
		assert.Len(t, found, 1, text)
		assert.Equal(t, text, string(found[0].Level)+": "+found[0].What)
	}
	found := clocks{"a": nil, "b": &second}.findings(nil)
	assert.Len(t, found, 2)
	assert.Equal(t, "the clocks of these servers cannot be read: a", found[0].What)
}
