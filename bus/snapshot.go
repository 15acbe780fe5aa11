package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Snapshot describes the copy of a stream, in the words of the server when the copy began.
type Snapshot struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// The subjects of JetStream's API for copies of streams. nats.go has no functions for them.
const (
	snapshotSubject = "$JS.API.STREAM.SNAPSHOT."
	restoreSubject  = "$JS.API.STREAM.RESTORE."

	// snapshotChunk is the size of one part of a copy, in bytes.
	snapshotChunk = 128 << 10
	// snapshotSilence is how long the server may send nothing during a copy.
	snapshotSilence = 30 * time.Second
	// restoreWithin bounds the time that a server takes to store one part of a copy, or to make the
	// stream from all parts.
	restoreWithin = 5 * time.Minute
)

// Snapshot writes a copy of a stream with its durable consumers to w, while the stream is in use. The
// copy has all messages that were acknowledged before the call, and perhaps later ones. If the
// connection is lost, Snapshot fails even if the connection comes back, because a part of the copy
// may be lost. The connection needs all rights on the stores.
func (c *Conn) Snapshot(ctx context.Context, stream string, w io.Writer) (Snapshot, error) {
	connected, end := c.whileConnected(ctx)
	defer end()
	s, err := c.snapshot(connected, stream, w)
	if lost := context.Cause(connected); lost != nil {
		err = lost
	}
	if err != nil {
		return s, fmt.Errorf("copy %s: %w", stream, err)
	}
	return s, nil
}

var errConnectionLost = errors.New("the connection to the server was lost")

// whileConnected returns a context that ends, with the cause errConnectionLost, when the connection
// is lost or if it is already lost. The caller must call the returned function end, which releases
// the context.
func (c *Conn) whileConnected(ctx context.Context) (_ context.Context, end func()) {
	lost := c.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	ctx, cancel := context.WithCancelCause(ctx)
	if !c.nc.IsConnected() {
		cancel(errConnectionLost)
	}
	go func() {
		if _, ok := <-lost; ok {
			cancel(errConnectionLost)
		}
	}()
	return ctx, func() {
		c.nc.RemoveStatusListener(lost)
		cancel(nil)
	}
}

func (c *Conn) snapshot(ctx context.Context, stream string, w io.Writer) (Snapshot, error) {
	parts := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(parts)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { _ = sub.Unsubscribe() }() // Unsubscribe fails only on a closed connection
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return Snapshot{}, err
	}
	var reply struct {
		Snapshot
		Error *jetstream.APIError `json:"error"`
	}
	request := map[string]any{"deliver_subject": parts, "chunk_size": snapshotChunk, "jsck": false}
	if err := c.apiCall(ctx, snapshotSubject+stream, request, &reply); err != nil {
		return Snapshot{}, err
	}
	if reply.Error != nil {
		return Snapshot{}, reply.Error
	}
	for {
		within, cancel := context.WithTimeout(ctx, snapshotSilence)
		msg, err := sub.NextMsgWithContext(within)
		cancel()
		if err != nil {
			return Snapshot{}, fmt.Errorf("the server sends no more of it: %w", err)
		}
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != "204" {
				return Snapshot{}, fmt.Errorf("the server has stopped: %s %s", status, msg.Header.Get("Description"))
			}
			return reply.Snapshot, nil
		}
		if _, err := w.Write(msg.Data); err != nil {
			return Snapshot{}, err
		}
		if msg.Reply != "" {
			if err := c.nc.Publish(msg.Reply, nil); err != nil {
				return Snapshot{}, err
			}
		}
	}
}

// codeRestoreExists is the code of the server's error if the stream to restore exists. nats.go has no
// name for this code.
const codeRestoreExists jetstream.ErrorCode = 10130

// ErrStoreExists means that the stream to restore exists. For some seconds after a restore was killed, it
// may also mean that the server still waits for the rest of that restore.
var ErrStoreExists = errors.New("the store exists")

// Restore makes a stream from a copy, with the configuration in the Snapshot. The error is
// ErrStoreExists if the stream exists. The connection needs all rights on the stores.
func (c *Conn) Restore(ctx context.Context, stream string, s Snapshot, r io.Reader) error {
	if err := c.restore(ctx, stream, s, r); err != nil {
		return fmt.Errorf("restore %s: %w", stream, err)
	}
	return nil
}

func (c *Conn) restore(ctx context.Context, stream string, s Snapshot, r io.Reader) error {
	var begun struct {
		DeliverSubject string              `json:"deliver_subject"`
		Error          *jetstream.APIError `json:"error"`
	}
	if err := c.apiCall(ctx, restoreSubject+stream, s, &begun); err != nil {
		return err
	}
	if begun.Error != nil && begun.Error.ErrorCode == codeRestoreExists {
		return fmt.Errorf("%w (%w)", ErrStoreExists, begun.Error)
	}
	if begun.Error != nil {
		return begun.Error
	}
	part := make([]byte, snapshotChunk)
	for {
		n, err := io.ReadFull(r, part)
		if n > 0 {
			if err := c.sendPart(ctx, begun.DeliverSubject, part[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return c.sendPart(ctx, begun.DeliverSubject, nil) // an empty part tells the server that there are no more parts
		}
		if err != nil {
			return err
		}
	}
}

// sendPart sends one part of a copy. It returns the error in the server's reply, if there is one.
func (c *Conn) sendPart(ctx context.Context, subject string, part []byte) error {
	within, cancel := context.WithTimeout(ctx, restoreWithin)
	defer cancel()
	msg, err := c.requestKnown(within, subject, part)
	if err != nil {
		return err
	}
	var reply struct {
		Error *jetstream.APIError `json:"error"`
	}
	if len(bytes.TrimSpace(msg.Data)) == 0 {
		return nil
	}
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return fmt.Errorf("read the server's reply: %w", err)
	}
	if reply.Error != nil {
		return reply.Error
	}
	return nil
}

// requestKnown sends a request to a subject that another server of the cluster has just begun to serve.
// It sends the request again until this connection's server knows the subject; before that, the request
// reaches no server.
func (c *Conn) requestKnown(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	known, cancel := context.WithTimeout(ctx, 2*hopTimeout)
	defer cancel()
	for try := 0; ; try++ {
		msg, err := c.nc.RequestWithContext(ctx, subject, data)
		if !errors.Is(err, nats.ErrNoResponders) || pause(known, try) != nil {
			return msg, err
		}
	}
}

// apiCall sends one request to JetStream's API and decodes the reply.
func (c *Conn) apiCall(ctx context.Context, subject string, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, 2*hopTimeout)
	defer cancel()
	msg, err := c.nc.RequestWithContext(within, subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return errors.New("JetStream does not reply: these credentials are not those of the stores (owner-store.nk)")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(msg.Data, reply)
}
