package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrNotFound means that the key has no value.
	ErrNotFound = errors.New("not found")
	// ErrMoved means that the key is no longer at the revision that the caller gave. The caller must read
	// the key again.
	ErrMoved = errors.New("changed meanwhile")
	// ErrUnknown means that the store did not reply in time. The write may or may not have happened.
	ErrUnknown = errors.New("outcome unknown")
	// ErrTooLarge means that the value exceeds the size limit of a message. Nothing was written.
	ErrTooLarge = errors.New("too large to be stored")
	// ErrFull means that the servers have no room for the message, or that the stores are at a limit.
	// Nothing was written. A later try succeeds if there is room again.
	ErrFull = errors.New("the stores have no room")
	// ErrUnreadable means that this version of nod cannot decode the stored value.
	ErrUnreadable = errors.New("not readable")
)

// codeDuplicateInFlight means that the server is still storing a message with the same id. nats.go has no
// name for this code.
const codeDuplicateInFlight jetstream.ErrorCode = 10158

// operationHeader marks the tombstone of a deleted key. Tools for KV buckets expect this header.
const operationHeader = "KV-Operation"

// maxReads bounds the concurrent reads from a stream's leader. If the server's queue of JetStream calls
// overflows, the server drops all calls in it, including those of other clients.
const maxReads = 256

// kvStream is a stream that keeps the last value of each key, laid out like a KV bucket. nod does not use
// nats.go's KeyValue for two reasons: only the leader of several replicas may be read (see allowDirect),
// and scheduled messages need DiscardOld.
type kvStream struct {
	conn   *Conn
	name   string
	stream jetstream.Stream
	prefix string
	reads  chan struct{}
	disk   *groupSync // waits until messages are on disk; nil if no wait is needed
}

// allowDirect turns direct reads on for a bucket with one replica, and off for a bucket with several
// replicas. A direct read takes half as long as a read through the JetStream API, but followers answer it
// too, possibly with old values.
func (k *kvStream) allowDirect(ctx context.Context) error {
	config := k.stream.CachedInfo().Config
	alone := config.Replicas == 1
	if config.AllowDirect == alone {
		return nil
	}
	config.AllowDirect = alone
	return retryOperation(ctx, "open the store "+k.name+": set its read mode", func(ctx context.Context) error {
		stream, err := k.conn.js.UpdateStream(ctx, config)
		if err == nil {
			k.stream = stream
		}
		return err
	})
}

type storedValue struct {
	data     []byte
	revision uint64
	at       time.Time // when the value was written, in broker time
}

// get reads the last value of a key, with retries until ctx ends. If the key has no value, get returns
// ErrNotFound and the revision with which put can create the key: the revision of a deleted key's
// tombstone, or 0.
func (k *kvStream) get(ctx context.Context, key string) (storedValue, error) {
	return k.last(ctx, k.prefix+key)
}

func (k *kvStream) last(ctx context.Context, subject string) (storedValue, error) {
	return k.read(ctx, subject, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return k.stream.GetLastMsgForSubject(ctx, subject)
	})
}

// isEmpty reports whether no message matches a subject filter. A call takes a third of the time of a
// listing of the messages.
func (k *kvStream) isEmpty(ctx context.Context, filter string) (bool, error) {
	_, err := k.read(ctx, filter, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return k.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(filter))
	})
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return false, err
}

// read calls the function get until get succeeds or fails permanently, or ctx ends. It returns the value
// in the message. Errors name the message by its subject.
func (k *kvStream) read(ctx context.Context, subject string, get func(context.Context) (*jetstream.RawStreamMsg, error)) (storedValue, error) {
	select {
	case k.reads <- struct{}{}:
		defer func() { <-k.reads }()
	case <-ctx.Done():
		return storedValue{}, fmt.Errorf("read %s: %w", subject, ctx.Err())
	}
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		attempt := k.conn.attempt()
		msg, err := get(hop)
		cancel()
		k.conn.recordAttempt(attempt, err)
		switch {
		case err == nil:
			return k.stored(ctx, msg)
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return storedValue{}, ErrNotFound
		case isPermanent(err):
			return storedValue{}, fmt.Errorf("read %s: %w", subject, err)
		case errors.Is(err, nats.ErrNoResponders): // an operator may have added replicas, which turns direct reads off
			hop, cancel := context.WithTimeout(ctx, hopTimeout)
			_, _ = k.stream.Info(hop) // Info loads the new configuration; if Info fails, the next try of the read fails too
			cancel()
		}
		if pause(ctx, try) != nil {
			return storedValue{}, fmt.Errorf("read %s: %w (%v)", subject, ErrUnknown, err)
		}
	}
}

// stored decodes a message once it is on disk. It waits because the caller may report the message's
// content.
func (k *kvStream) stored(ctx context.Context, msg *jetstream.RawStreamMsg) (storedValue, error) {
	if err := k.disk.wait(ctx, msg.Sequence); err != nil {
		return storedValue{}, fmt.Errorf("read %s: %w", msg.Subject, err)
	}
	if msg.Header.Get(operationHeader) != "" {
		return storedValue{revision: msg.Sequence, at: msg.Time}, ErrNotFound
	}
	return storedValue{msg.Data, msg.Sequence, msg.Time}, nil
}

// publish sends a message once. If the revision is not 0, the message replaces the message at that
// revision. A nil error means that the message is stored and on disk.
func (k *kvStream) publish(ctx context.Context, msg *nats.Msg, revision uint64, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	w := StoreWrite{Store: k.name, Sent: time.Now()}
	ack, err := k.send(ctx, msg, revision, opts...)
	w.Acked = time.Now()
	if err == nil && k.disk != nil {
		err = k.disk.wait(ctx, ack.Sequence)
		w.Synced = time.Now()
	}
	if report := observer(ctx); report != nil {
		w.Failed = err != nil
		report(w)
	}
	return ack, err
}

// send sends a message without waiting for the disk. A caller may use send for the first of two messages
// in one stream if it waits for the second message.
func (k *kvStream) send(ctx context.Context, msg *nats.Msg, revision uint64, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	hop, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	if k.conn.server != nil {
		k.conn.server.room.look()
	}
	sent := k.disk.replacing(revision, msg.Size())
	attempt := k.conn.attempt()
	ack, err := k.conn.js.PublishMsg(hop, msg, append(opts, jetstream.WithRetryAttempts(0))...)
	k.conn.recordAttempt(attempt, err)
	sent(err != nil && apiCode(err) == 0)
	if apiCode(err) == codeStoreFailed || apiUnavailable(err) {
		k.disk.check()
	}
	if isFull(err) {
		err = fmt.Errorf("%w (%w)", ErrFull, err)
	}
	return ack, err
}

// isFull reports whether the servers have refused a message because a limit of the server, the account or
// the stream leaves no room for it. nats.go has no names for these codes.
func isFull(err error) bool {
	switch apiCode(err) {
	case codeNoResources, codeNoStorage, codeAccountFull:
		return true
	case codeStoreFailed: // the stream is at its own limit if the text says "maximum"
		return strings.Contains(err.Error(), "maximum")
	}
	return false
}

// codeAccountFull means that the account is at its limit.
const codeAccountFull jetstream.ErrorCode = 10002

// codeStoreFailed means that the server could not write a message to its disk. nats.go has no name for
// this code.
const codeStoreFailed jetstream.ErrorCode = 10077

// put writes data under a key if the key is at the given revision, and returns the new revision. If
// the outcome of a write is unknown, put writes again. It succeeds if the key already has exactly
// this data. The error is ErrMoved if another write came first.
func (k *kvStream) put(ctx context.Context, key string, data []byte, revision uint64, header nats.Header) (uint64, error) {
	for try := 0; ; try++ {
		msg := &nats.Msg{Subject: k.prefix + key, Data: data, Header: header}
		ack, err := k.publish(ctx, msg, revision, jetstream.WithExpectLastSequencePerSubject(revision))
		if err == nil {
			return ack.Sequence, nil
		}
		if errors.Is(err, nats.ErrMaxPayload) {
			return 0, fmt.Errorf("write %s: %w: %d bytes", key, ErrTooLarge, len(data))
		}
		if !isConflict(err) && isPermanent(err) {
			return 0, fmt.Errorf("write %s: %w", key, err)
		}
		if isConflict(err) {
			seq, moved, rerr := k.compare(ctx, key, data, revision)
			if rerr != nil {
				return 0, rerr
			}
			if moved {
				return seq, movedIfZero(seq)
			}
		}
		if pause(ctx, try) != nil {
			return 0, fmt.Errorf("write %s: %w (%v)", key, ErrUnknown, err)
		}
	}
}

// movedIfZero returns ErrMoved for revision 0, which compare returns if the key has another client's
// data.
func movedIfZero(revision uint64) error {
	if revision == 0 {
		return ErrMoved
	}
	return nil
}

// compare reads a key after a conflict. If the key is still at the given revision, the conflicting
// write has failed, and the result moved is false. Otherwise moved is true. In that case, if the key
// has this data, the caller's own write was stored, and the result seq is its revision. If the key
// has other data, seq is 0.
func (k *kvStream) compare(ctx context.Context, key string, data []byte, revision uint64) (seq uint64, moved bool, err error) {
	now, err := k.get(ctx, key)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return 0, false, err
	case now.revision == revision:
		return 0, false, nil
	case err == nil && bytes.Equal(now.data, data):
		return now.revision, true, nil
	}
	return 0, true, nil
}

// remove deletes a key if the key is at the given revision. The message that marks the deletion, the
// tombstone, expires after a minute. By then every reader has seen it.
func (k *kvStream) remove(ctx context.Context, key string, revision uint64) error {
	header := nats.Header{}
	header.Set(operationHeader, "DEL")
	ttl(header, time.Minute)
	_, err := k.put(ctx, key, nil, revision, header)
	return err
}

// keys lists the keys that match a filter such as "S.*", in no particular order. The parameter prefix
// is the part of the messages' subjects that precedes the key.
func (k *kvStream) keys(ctx context.Context, prefix, filter string) ([]string, error) {
	var info *jetstream.StreamInfo
	err := retryOperation(ctx, "list "+k.name, func(ctx context.Context) (err error) {
		info, err = k.stream.Info(ctx, jetstream.WithSubjectFilter(prefix+filter))
		return err
	})
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, prefix))
	}
	return keys, nil
}

func ttl(header nats.Header, d time.Duration) {
	header.Set(jetstream.MsgTTLHeader, d.Truncate(time.Second).String())
}

func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// apiUnavailable reports whether JetStream cannot serve calls at the moment, for example because the
// servers have no majority.
func apiUnavailable(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// isConflict reports whether a write lost its compare-and-set. The code for this is different in
// replicated streams.
func isConflict(err error) bool {
	code := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// isPermanent reports whether a retry cannot help soon: the server has refused the call, the message is
// too large, the connection is closed, the disk has failed, or the stores are full.
func isPermanent(err error) bool {
	if errors.Is(err, ErrFull) || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, errDisk) || errors.Is(err, errServerClosed) {
		return true
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.Code < 500 && api.ErrorCode != codeDuplicateInFlight
}
