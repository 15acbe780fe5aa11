package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
)

// Prompts is the work-queue stream permission_prompts. From it workers take prompts, and the outcomes
// of prompts that they have shown.
type Prompts struct {
	// AckWait is a time limit for workers. If a worker reports no progress with an unacknowledged prompt
	// for AckWait, another worker gets the prompt. 0 means 10 s.
	AckWait time.Duration

	conn   *Conn
	stream jetstream.Stream
}

// PromptGrace is how long the queue keeps a prompt's messages after the prompt's deadline, so that a
// worker can still get the outcome.
const PromptGrace = time.Hour

// OpenPrompts opens the stream of prompts, and makes a missing one. The stream is in the account STORE;
// connectors use it through an import.
func OpenPrompts(ctx context.Context, c *Conn, replicas int) (*Prompts, error) {
	stream, err := c.stream(ctx, promptsConfig(replicas), c.js.CreateStream)
	if err != nil {
		return nil, err
	}
	return &Prompts{conn: c, stream: stream}, nil
}

func promptsConfig(replicas int) jetstream.StreamConfig {
	config := jetstream.StreamConfig{
		Name:        "permission_prompts",
		Subjects:    []string{"nod.v1.prompt.>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.WorkQueuePolicy,
		AllowMsgTTL: true,
		Replicas:    replicas,
		Duplicates:  2 * time.Minute,
	}
	if replicas <= 1 {
		config.PersistMode = jetstream.AsyncPersistMode // a crash may lose prompts without harm, because the sweep sends them again
	}
	return config
}

// Send queues a prompt for its connector, with the trace of ctx if there is one. If Send is called again
// within two minutes for the same recipient and revision, the server drops the second message.
func (p *Prompts) Send(ctx context.Context, prompt schemas.Prompt) error {
	data, err := schemas.Encode(&prompt)
	if err != nil {
		return fmt.Errorf("encode a prompt: %w", err)
	}
	msg := nats.NewMsg(schemas.PromptSubject(prompt.Connector, prompt.SessionID, prompt.PendingID))
	msg.Data, msg.Header = data, traceHeader(ctx, msg.Header)
	ttl(msg.Header, max(time.Until(prompt.Deadline), 0)+PromptGrace)
	id := fmt.Sprintf("%s.%s.%s.%d", prompt.Connector, prompt.Recipient, prompt.Key(), prompt.Revision)
	return retryOperation(ctx, "queue a prompt for "+prompt.Connector, func(ctx context.Context) error {
		_, err := p.conn.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
		return err
	})
}

// Serve makes the consumer that a connector's workers share. Only an engine may call Serve.
func (p *Prompts) Serve(ctx context.Context, connector string) error {
	config := promptsConsumer(connector)
	config.AckWait = cmp.Or(p.AckWait, config.AckWait)
	_, err := p.conn.queue(ctx, p.stream, nil, config)
	return err
}

// Keep makes a connector's consumer again if the consumer is lost. If the server does not say whether the
// consumer exists, Keep does nothing and returns nil.
func (p *Prompts) Keep(ctx context.Context, connector string) error {
	hop, cancel := context.WithTimeout(ctx, hopTimeout)
	_, err := p.stream.Consumer(hop, connector)
	cancel()
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return p.Serve(ctx, connector)
}

func promptsConsumer(connector string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       connector,
		FilterSubject: "nod.v1.prompt." + connector + ".>",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       10 * time.Second,
		MaxAckPending: -1, // with a limit of unacknowledged messages, those to one unreachable chat could delay other chats
	}
}

// PromptQueue opens a connector's queue. An engine makes the queue when a worker registers, so
// PromptQueue waits for the queue until ctx ends.
func (c *Conn) PromptQueue(ctx context.Context, connector string) (*Queue, error) {
	q := &Queue{conn: c, name: connector}
	q.open = func(ctx context.Context) (jetstream.Consumer, error) {
		return c.js.Consumer(ctx, "permission_prompts", connector)
	}
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		var err error
		q.consumer, err = q.open(hop)
		cancel()
		if err == nil {
			q.ackWait = q.consumer.CachedInfo().Config.AckWait
			return q, nil
		}
		if pause(ctx, try) != nil {
			return nil, fmt.Errorf("open the prompts of %s: %w", connector, err)
		}
	}
}
