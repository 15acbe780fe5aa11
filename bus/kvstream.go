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

// What a store says of a key.
var (
	// ErrNotFound: there is no value under the key.
	ErrNotFound = errors.New("not found")
	// ErrMoved: the key is not at the revision that was named; read it again.
	ErrMoved = errors.New("changed meanwhile")
	// ErrUnknown: the store gave no answer in time, so that the write may or
	// may not have happened.
	ErrUnknown = errors.New("outcome unknown")
	// ErrTooLarge: the value is longer than a message may be; nothing was written.
	ErrTooLarge = errors.New("too large to be stored")
	// ErrUnreadable: there is a record, and it is none that this version reads.
	ErrUnreadable = errors.New("not readable")
)

// codeDuplicateInFlight answers a message id whose first message is still
// being stored; nats.go has no name for it.
const codeDuplicateInFlight jetstream.ErrorCode = 10158

// operationHeader marks what KV tools leave behind when they delete a key.
const operationHeader = "KV-Operation"

// maxReads bounds the leader reads in flight: the server drops its whole
// JetStream queue, bystanders' calls included, when that overflows.
const maxReads = 256

// kvStream is a stream that holds the last value of each key: a KV bucket made by
// hand, because of several replicas none but the leader may be read (see direct)
// and scheduled messages need DiscardOld.
type kvStream struct {
	conn   *Conn
	name   string
	stream jetstream.Stream
	prefix string
	reads  chan struct{}
}

// direct has a bucket of one replica alone answer reads by itself, which takes
// half as long as by way of the JetStream API. Of several replicas a follower
// would answer too, with what is old: there every read goes to the leader.
func (k *kvStream) direct(ctx context.Context) error {
	config := k.stream.CachedInfo().Config
	alone := config.Replicas == 1
	if config.AllowDirect == alone {
		return nil
	}
	config.AllowDirect = alone
	hop, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	stream, err := k.conn.js.UpdateStream(hop, config)
	if err != nil {
		return fmt.Errorf("open the store %s: set how it is read: %w", k.name, err)
	}
	k.stream = stream
	return nil
}

// value is what a key holds and the revision it has.
type value struct {
	data     []byte
	revision uint64
	at       time.Time // when it was stored, in broker time
}

// get reads the last value of a key, trying again while ctx allows. With
// ErrNotFound the revision is what a create must name, 0 but for a key that
// somebody deleted by hand.
func (k *kvStream) get(ctx context.Context, key string) (value, error) {
	return k.last(ctx, k.prefix+key)
}

func (k *kvStream) last(ctx context.Context, subject string) (value, error) {
	return k.read(ctx, subject, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return k.stream.GetLastMsgForSubject(ctx, subject)
	})
}

// none reports whether there is nothing on any subject that matches a filter. It
// takes a third of the time of listing what there is.
func (k *kvStream) none(ctx context.Context, filter string) (bool, error) {
	_, err := k.read(ctx, filter, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return k.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(filter))
	})
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return false, err
}

// read gets one message, of which subject says what it is about.
func (k *kvStream) read(ctx context.Context, subject string, get func(context.Context) (*jetstream.RawStreamMsg, error)) (value, error) {
	select {
	case k.reads <- struct{}{}:
		defer func() { <-k.reads }()
	case <-ctx.Done():
		return value{}, fmt.Errorf("read %s: %w", subject, ctx.Err())
	}
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		attempt := k.conn.attempt()
		msg, err := get(hop)
		cancel()
		k.conn.tried(attempt, err)
		switch {
		case err == nil && msg.Header.Get(operationHeader) == "":
			return value{msg.Data, msg.Sequence, msg.Time}, nil
		case err == nil:
			return value{revision: msg.Sequence, at: msg.Time}, ErrNotFound
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return value{}, ErrNotFound
		case isPermanent(err):
			return value{}, fmt.Errorf("read %s: %w", subject, err)
		case errors.Is(err, nats.ErrNoResponders): // it may have got more replicas
			hop, cancel := context.WithTimeout(ctx, hopTimeout)
			_, _ = k.stream.Info(hop) // how it is to be read; where that fails, so does the next try
			cancel()
		}
		if pause(ctx, try) != nil {
			return value{}, fmt.Errorf("read %s: %w (%v)", subject, ErrUnknown, err)
		}
	}
}

// put writes data under key if the key is still at revision, and returns the
// new revision. Where the outcome of a try is unknown the same write is tried
// again: it is won, too, when the key is found to hold just this data. ErrMoved
// means that another write came first.
func (k *kvStream) put(ctx context.Context, key string, data []byte, revision uint64, header nats.Header) (uint64, error) {
	for try := 0; ; try++ {
		msg := &nats.Msg{Subject: k.prefix + key, Data: data, Header: header}
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		attempt := k.conn.attempt()
		ack, err := k.conn.js.PublishMsg(hop, msg, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithRetryAttempts(0))
		cancel()
		k.conn.tried(attempt, err)
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
				return seq, won(seq)
			}
		}
		if pause(ctx, try) != nil {
			return 0, fmt.Errorf("write %s: %w (%v)", key, ErrUnknown, err)
		}
	}
}

// won turns a revision of 0 into ErrMoved.
func won(revision uint64) error {
	if revision == 0 {
		return ErrMoved
	}
	return nil
}

// compare looks after a lost write whether the key really moved (it may not
// have: another write can be in flight that fails), and whether it was this
// very write that moved it, in which case it returns the revision.
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

// remove deletes key if it is still at revision. The marker goes after a
// minute, by when every reader has seen it.
func (k *kvStream) remove(ctx context.Context, key string, revision uint64) error {
	header := nats.Header{}
	header.Set(operationHeader, "DEL")
	ttl(header, time.Minute)
	_, err := k.put(ctx, key, nil, revision, header)
	return err
}

// keys lists the keys that match a filter such as "S.*", in no order.
func (k *kvStream) keys(ctx context.Context, prefix, filter string) ([]string, error) {
	var info *jetstream.StreamInfo
	err := retry(ctx, "list "+k.name, func(ctx context.Context) (err error) {
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

// apiCode is the JetStream error code in err, or 0.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// apiUnavailable reports whether JetStream said that it cannot serve for now, as a
// server does that has no majority.
func apiUnavailable(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// isConflict reports whether a write lost its compare-and-set. Replicated streams
// answer with another code than single ones.
func isConflict(err error) bool {
	code := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// isPermanent reports whether trying again cannot help: the server understood and
// refused, or the connection is gone for good.
func isPermanent(err error) bool {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) {
		return true
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.Code < 500 && api.ErrorCode != codeDuplicateInFlight
}
