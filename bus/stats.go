package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nodbus/nod/schemas"
)

// statsQuiet is how long eachInstance waits for a further reply.
const statsQuiet = 300 * time.Millisecond

// ServiceStats are the statistics of one instance of a service.
type ServiceStats struct {
	ID   string
	data json.RawMessage
}

// Into decodes the data that the service's ServiceOptions.Stats has returned.
func (s ServiceStats) Into(v any) error { return json.Unmarshal(s.data, v) }

// ServiceStats asks every instance of a service for its statistics.
func (c *Conn) ServiceStats(ctx context.Context, service string) ([]ServiceStats, error) {
	var all []ServiceStats
	err := c.eachInstance(ctx, micro.StatsVerb, service, func(reply []byte) {
		if stats, ok := readStats(reply); ok {
			all = append(all, stats)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
	}
	return all, nil
}

func readStats(reply []byte) (ServiceStats, bool) {
	var stats micro.Stats
	if json.Unmarshal(reply, &stats) != nil || len(stats.Endpoints) == 0 {
		return ServiceStats{}, false
	}
	return ServiceStats{stats.ID, stats.Endpoints[0].Data}, true
}

// Instance is a running instance of a service.
type Instance struct{ Service, ID, Version string }

// Instances lists the running instances of all services that this connection reaches, sorted by service
// and id.
func (c *Conn) Instances(ctx context.Context) ([]Instance, error) {
	var all []Instance
	err := c.eachInstance(ctx, micro.PingVerb, "", func(reply []byte) {
		var ping micro.Ping
		if json.Unmarshal(reply, &ping) == nil && ping.Name != "" {
			all = append(all, Instance{ping.Name, ping.ID, ping.Version})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("ask the running services: %w", err)
	}
	slices.SortFunc(all, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// eachInstance sends a request to every instance of a service, or of all services if service is
// empty. It calls f with each reply, and returns when no further reply comes for statsQuiet.
func (c *Conn) eachInstance(ctx context.Context, verb micro.Verb, service string, f func(reply []byte)) error {
	s, err := c.survey(verb, service)
	if err != nil {
		return err
	}
	defer s.end()
	return s.ask(ctx, f)
}

// survey is a request to every instance of a service. It can be sent several times.
type survey struct {
	nc             *nats.Conn
	subject, inbox string
	sub            *nats.Subscription
}

func (c *Conn) survey(verb micro.Verb, service string) (*survey, error) {
	subject, err := micro.ControlSubject(verb, service, "")
	if err != nil {
		return nil, err
	}
	s := &survey{nc: c.nc, subject: subject, inbox: c.nc.NewRespInbox()}
	s.sub, err = c.nc.SubscribeSync(s.inbox)
	return s, err
}

// ask sends the request and calls f with each reply, until no further reply comes for statsQuiet.
// Some of the replies may be late replies to an earlier request.
func (s *survey) ask(ctx context.Context, f func(reply []byte)) error {
	if err := s.nc.PublishRequest(s.subject, s.inbox, nil); err != nil {
		return err
	}
	for {
		quiet, cancel := context.WithTimeout(ctx, statsQuiet)
		msg, err := s.sub.NextMsgWithContext(quiet)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
			return nil
		}
		if err != nil {
			return err
		}
		f(msg.Data)
	}
}

func (s *survey) end() { _ = s.sub.Unsubscribe() } // Unsubscribe fails only on a closed connection

// Follow waits until every instance of a service reports in its statistics that it has reached a
// revision. The parameter revisionName is the name of the revision in the statistics. The instances
// are those that have replied within the last replyCounts and, if the function running is not nil,
// those that it lists. If ctx ends first, Follow returns the ids of the instances without this
// revision, including listed instances that do not reply. It fails if no instance replies.
func (c *Conn) Follow(ctx context.Context, service, revisionName string, revision uint64, running func(context.Context) ([]string, error)) (laggards []string, err error) {
	survey, err := c.survey(micro.StatsVerb, service)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
	}
	defer survey.end()
	replies, heard := map[string]reported{}, false
	for try := 0; ; try++ {
		err := survey.ask(ctx, func(reply []byte) {
			if stats, ok := readStats(reply); ok {
				replies[stats.ID] = reported{stats, time.Now()}
			}
		})
		switch {
		case ctx.Err() != nil && heard:
			return laggards, nil
		case ctx.Err() != nil:
			return nil, schemas.Errorf(schemas.CodeUnavailable, "no engine reports its state: check that one is running")
		case err != nil:
			return nil, fmt.Errorf("ask %s for its statistics: %w", service, err)
		}
		current := recent(replies)
		late, err := behind(ctx, current, revisionName, revision, running)
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err != nil:
			continue
		case len(current) > 0 && len(late) == 0:
			return nil, nil
		case len(late) > 0: // if the list is empty only because no instance replies any more, the previous list stays
			laggards = late
		}
		heard = heard || len(current) > 0
		_ = pause(ctx, min(try, 2)) // pause fails only if ctx has ended, which the next round notices
	}
}

// reported is the last reply of an instance, with the time at which the reply came.
type reported struct {
	ServiceStats
	at time.Time
}

// replyCounts is how long a reply counts. It is longer than statsQuiet, because a reply can be late on a
// busy machine. It is short, because an instance that has stopped must not count for long.
const replyCounts = 3 * time.Second

// recent returns the replies that still count, and removes the others from the map.
func recent(replies map[string]reported) (all []ServiceStats) {
	for id, r := range replies {
		if time.Since(r.at) > replyCounts {
			delete(replies, id)
			continue
		}
		all = append(all, r.ServiceStats)
	}
	return all
}

// The function behind returns the ids of those instances that have not reached the revision or do not
// reply.
func behind(ctx context.Context, stats []ServiceStats, revisionName string, revision uint64, running func(context.Context) ([]string, error)) (ids []string, err error) {
	if running != nil {
		if ids, err = running(ctx); err != nil {
			return nil, err
		}
	}
	for _, s := range stats {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == s.ID })
		var data map[string]uint64
		if s.Into(&data) != nil || data[revisionName] < revision {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// CallStats are the statistics of one endpoint of a service since its start.
type CallStats struct {
	Endpoint string
	Calls    int
}

// Calls returns the statistics of the service's endpoints.
func (s *Service) Calls() []CallStats {
	var all []CallStats
	for _, e := range s.svc.Stats().Endpoints {
		all = append(all, CallStats{e.Name, e.NumRequests})
	}
	return all
}
