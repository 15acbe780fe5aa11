package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
)

// led lists the streams and consumers of the cluster, each of which has a leader. The name of a consumer has
// the form "stream.consumer".
var led = []string{
	"KV_pending_permissions", "KV_permission_sessions", "KV_permission_settings", "KV_shown_prompts", "permission_prompts", "permission_log",
	"KV_pending_permissions.nod-outbox", "KV_pending_permissions.nod-clock", "permission_prompts.telegram",
}

// api sends a JetStream API request with the owner's key. It connects to the servers' client ports
// directly, so that cut network paths do not affect it.
func (c *cluster) api(ctx context.Context, subject string, into any) error {
	id := roles.ID{Role: roles.OwnerStore}
	key, err := nats.NkeyOptionFromSeed(c.keys().Path(id))
	if err != nil {
		return err
	}
	var urls []string
	for n, port := range c.ports {
		urls = append(urls, fmt.Sprintf("nats://%s:%d", c.host(n), port))
	}
	nc, err := nats.Connect(strings.Join(urls, ","), key, nats.CustomInboxPrefix(id.InboxPrefix()), nats.Timeout(time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, "$JS.API."+subject, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(msg.Data, into)
}

// leader returns the number of the server that leads a stream or a consumer. If no server reports a
// leader before ctx ends, leader returns 0.
func (c *cluster) leader(ctx context.Context, what string) int {
	subject := "STREAM.INFO." + what
	if stream, consumer, ok := strings.Cut(what, "."); ok {
		subject = "CONSUMER.INFO." + stream + "." + consumer
	}
	var info struct {
		Cluster struct{ Leader string }
	}
	n := 0
	_ = every(ctx, 200*time.Millisecond, func() bool {
		if c.api(ctx, subject, &info) != nil {
			return false
		}
		_, err := fmt.Sscanf(info.Cluster.Leader, "n%d", &n)
		return err == nil
	})
	return n
}

func (c *cluster) led(ctx context.Context, rng *rand.Rand) (*process, error) {
	return c.servers[c.target(ctx, rng)], nil
}

// stepDown makes the leader of a random stream or consumer step down. It ignores errors, because the
// servers may not reply during a fault.
func (c *cluster) stepDown(ctx context.Context, rng *rand.Rand) error {
	what := led[rng.IntN(len(led))]
	subject := "STREAM.LEADER.STEPDOWN." + what
	if stream, consumer, ok := strings.Cut(what, "."); ok {
		subject = "CONSUMER.LEADER.STEPDOWN." + stream + "." + consumer
	}
	var reply json.RawMessage
	_ = c.api(ctx, subject, &reply)
	return nil
}
