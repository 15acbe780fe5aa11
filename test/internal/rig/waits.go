package rig

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/nodbus/nod/bus/roles"
)

// Tick is the interval at which a test polls a condition. It polls for Patience at most.
const Tick = 50 * time.Millisecond

// Soon polls a condition until it is true. If it does not become true within Patience, the test fails.
func (e *Env) Soon(what string, holds func() bool) {
	e.T.Helper()
	e.Eventually(holds, Patience, 10*time.Millisecond, what)
}

// Passed waits until the broker's clock is past the given time.
func (e *Env) Passed(at time.Time) {
	e.T.Helper()
	ahead, err := e.Store.BrokerTime(e.Ctx)
	e.NoError(err)
	select {
	case <-time.After(time.Until(at) - ahead + 20*time.Millisecond):
	case <-e.Ctx.Done():
		e.NoError(e.Ctx.Err())
	}
}

// Heard waits until every engine of the test reports at least the given revision in its statistics. The field
// of the statistics has a name such as settings_revision. Unlike Owner.Follow, Heard also waits for an engine
// that replies too slowly, and returns as soon as the last engine has replied.
func (e *Env) Heard(revisionName string, revision uint64) {
	e.T.Helper()
	running := 0
	for _, n := range e.Engines {
		if n.Engine != nil {
			running++
		}
	}
	nc := e.RawConn(roles.ID{Role: roles.Owner})
	defer nc.Close()
	inbox := nc.NewInbox()
	replies, err := nc.SubscribeSync(inbox)
	e.NoError(err)
	subject, err := micro.ControlSubject(micro.StatsVerb, "nod-engine", "")
	e.NoError(err)
	following := map[string]bool{}
	e.Soon("every engine follows the "+revisionName, func() bool {
		e.NoError(nc.PublishRequest(subject, inbox, nil))
		for len(following) < running {
			msg, err := replies.NextMsg(300 * time.Millisecond)
			if err != nil {
				return false
			}
			if id, reached := reported(msg.Data, revisionName); reached >= revision {
				following[id] = true
			}
		}
		return true
	})
}

// reported returns an engine's id and its revision from the engine's statistics.
func reported(statistics []byte, revisionName string) (id string, revision uint64) {
	var stats micro.Stats
	var data map[string]uint64
	if json.Unmarshal(statistics, &stats) != nil || len(stats.Endpoints) == 0 || json.Unmarshal(stats.Endpoints[0].Data, &data) != nil {
		return "", 0
	}
	return stats.ID, data[revisionName]
}

// OutboxIdle reports whether the outbox has handled all stored changes.
func (e *Env) OutboxIdle() bool { return e.QueueIdle("KV_pending_permissions", "nod-outbox") }

// QueueIdle reports whether a consumer has handled all messages of its stream. It also looks for the newest
// message, because the consumer's count of waiting messages lags behind the stream.
func (e *Env) QueueIdle(stream, consumer string) bool {
	c, err := e.Raw.Consumer(e.Ctx, stream, consumer)
	if err != nil {
		return false
	}
	info := c.CachedInfo()
	if info.NumPending != 0 || info.NumAckPending != 0 {
		return false
	}
	s, err := e.Raw.Stream(e.Ctx, stream)
	if err != nil {
		return false
	}
	newest, err := s.GetLastMsgForSubject(e.Ctx, cmp.Or(info.Config.FilterSubject, ">"))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true
	}
	return err == nil && newest.Sequence <= info.Delivered.Stream
}
