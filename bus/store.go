package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
)

// Store is the whole persistent state of the engines. Every write to a bucket is a compare-and-set. A
// read of a key sees all writes to the key that were acknowledged before the read, except as
// Bucket.Confirm describes.
type Store struct {
	Records  *Records
	Sessions *Bucket // sessions and standing answers
	Presence *Bucket // leases: clients, workers, input locks, active sessions, engines
	Shown    *Bucket // messages that show prompts, and the claims on them
	Settings *Bucket // settings, freezes, pairing and login codes
	Log      *Log

	conn *Conn
}

// OpenStore opens the stores, and makes missing stores with this number of replicas. Existing stores keep
// their replicas and limits; OpenStore only turns their direct reads on or off (see allowDirect). It
// waits for JetStream until ctx ends.
func OpenStore(ctx context.Context, c *Conn, replicas int) (*Store, error) {
	return openStore(ctx, c, replicas, c.js.CreateStream, (*kvStream).allowDirect)
}

// OpenExistingStore opens the stores and changes nothing. It fails if a store is missing.
func OpenExistingStore(ctx context.Context, c *Conn) (*Store, error) {
	missing := func(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) { return nil, errNoStore }
	leave := func(*kvStream, context.Context) error { return nil }
	return openStore(ctx, c, 1, missing, leave)
}

var errRestoring = errors.New("a restore of the stores is not finished: run nod restore again")

var errNoStore = errors.New("it does not exist: an engine makes it when it starts")

type createStream func(context.Context, jetstream.StreamConfig) (jetstream.Stream, error)

func openStore(ctx context.Context, c *Conn, replicas int, create createStream, setReads func(*kvStream, context.Context) error) (*Store, error) {
	s := &Store{conn: c}
	open := func(config jetstream.StreamConfig, prefix string) (*kvStream, error) {
		stream, err := c.stream(ctx, replicated(config, replicas), create)
		if err != nil {
			return nil, err
		}
		k := &kvStream{conn: c, name: config.Name, stream: stream, prefix: prefix, reads: make(chan struct{}, maxReads)}
		return k, nil
	}
	records, err := open(recordsConfig(replicas), recordPrefix)
	if err == nil {
		err = setReads(records, ctx)
	}
	if err != nil {
		return nil, err
	}
	log, err := open(logConfig(), "")
	if err != nil {
		return nil, err
	}
	if c.server != nil { // only the records and the log need grouped syncs, because the buckets get few writes, each of which the server syncs
		records.disk, log.disk = c.server.syncs.of(records.name), c.server.syncs.of(log.name)
	}
	s.Records, s.Log = &Records{kvStream: records}, &Log{kvStream: log}
	for _, b := range s.buckets() {
		k, err := open(bucketConfig(b.name, b.async, replicas), "$KV."+b.name+".")
		if err == nil {
			err = setReads(k, ctx)
		}
		if err != nil {
			return nil, err
		}
		*b.into = &Bucket{kvStream: k, confirms: newActionGroup()}
	}
	return s, nil
}

func replicated(config jetstream.StreamConfig, replicas int) jetstream.StreamConfig {
	config.Replicas = replicas
	if replicas > 1 {
		config.PersistMode = jetstream.DefaultPersistMode // asynchronous persistence works with a single replica only
	}
	return config
}

type bucketSpec struct {
	into  **Bucket
	name  string
	async bool // the server may acknowledge a write before the write is on disk, because the content may be lost
}

func (s *Store) buckets() []bucketSpec {
	return []bucketSpec{
		{&s.Sessions, "permission_sessions", false},
		{&s.Presence, "client_presence", true},
		{&s.Shown, "shown_prompts", false}, // this bucket is not asynchronous: if a claim were lost, a prompt could be shown twice without a hint at the repetition
		{&s.Settings, "permission_settings", false},
	}
}

// stream opens a stream, and calls the function create if the stream is missing. Until ctx ends, it
// waits for another engine that is making the stream, for the election of a leader, for the servers
// of the replicas to join their cluster, and for the end of a restore.
func (c *Conn) stream(ctx context.Context, config jetstream.StreamConfig, create createStream) (jetstream.Stream, error) {
	level := slog.LevelWarn // only the first wait is logged as a warning, to tell the user the reason for the delay
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		stream, err := c.js.Stream(hop, config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = create(hop, config)
		}
		cancel()
		switch {
		case err == nil && stream.CachedInfo().Config.Metadata[restoreMark] == "":
			return stream, nil
		case err == nil:
			err = errRestoring
			c.log.Log(ctx, level, "bus: waiting for nod restore to finish", "store", config.Name)
			level = slog.LevelInfo
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse): // another engine has just made the stream
		case apiCode(err) == jetstream.JSErrCodeJetStreamNotEnabled, apiCode(err) == jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			return nil, fmt.Errorf("open the store %s: JetStream is off for this account on the NATS server: enable it in its configuration", config.Name)
		case isServerMissing(err):
			c.log.Log(ctx, level, "bus: waiting for more servers of the NATS cluster", "store", config.Name, "replicas", config.Replicas, "error", err)
			level = slog.LevelInfo
		case errors.Is(err, errNoStore), isPermanent(err), apiCode(err) == codeNoReplicas:
			return nil, fmt.Errorf("open the store %s: %w", config.Name, err)
		}
		if pause(ctx, try) != nil && errors.Is(err, errRestoring) {
			return nil, fmt.Errorf("open the store %s: %w", config.Name, err)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open the store %s: JetStream does not reply (%w): check that a majority of the servers is up and that these credentials are those of the stores", config.Name, err)
		}
	}
}

// isServerMissing reports whether err says that a stream cannot be made because servers of the cluster
// are down or have not joined it yet. The error's code also has permanent causes, such as too little
// storage, so isServerMissing looks at the error's text.
func isServerMissing(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != codeNoPlacement {
		return false
	}
	return strings.TrimSuffix(api.Description, ", peer offline") == "no suitable peers for placement"
}

// codeNoReplicas is the error of a server that cannot make replicas because it is in no cluster.
const codeNoReplicas jetstream.ErrorCode = 10074

func bucketConfig(bucket string, async bool, replicas int) jetstream.StreamConfig {
	config := jetstream.StreamConfig{
		Name:              "KV_" + bucket,
		Subjects:          []string{"$KV." + bucket + ".>"},
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardOld,
		AllowRollup:       true,
		AllowMsgTTL:       true,
		AllowDirect:       replicas == 1,
	}
	if async {
		config.PersistMode = jetstream.AsyncPersistMode
	}
	return config
}

// Bucket is a KV bucket. Its values are messages of package schemas, except for the values that
// PutDocument writes.
type Bucket struct {
	*kvStream
	confirms *actionGroup
}

// Get reads the value of a key into v and returns the value's revision. With ErrNotFound it returns
// the revision with which Put can create the key.
func (b *Bucket) Get(ctx context.Context, key string, v any) (revision uint64, err error) {
	val, err := b.get(ctx, key)
	if err != nil {
		return val.revision, err
	}
	if err := schemas.Load(val.data, v); err != nil {
		return val.revision, fmt.Errorf("read %s of %s: %w: %w", key, b.name, ErrUnreadable, err)
	}
	return val.revision, nil
}

// Put writes v under a key if the key is at the given revision, and returns the new revision. If the
// parameter lease is not 0, the broker removes the value after that duration. The error is ErrMoved
// if another write came first.
func (b *Bucket) Put(ctx context.Context, key string, v any, revision uint64, lease time.Duration) (uint64, error) {
	data, err := schemas.Encode(v)
	if err != nil {
		return 0, fmt.Errorf("encode %s of %s: %w", key, b.name, err)
	}
	header := nats.Header{}
	if lease > 0 {
		ttl(header, lease)
	}
	return b.put(ctx, key, data, revision, header)
}

// Document reads the bytes under a key, which need not be a message of package schemas.
func (b *Bucket) Document(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	val, err := b.get(ctx, key)
	return val.data, val.revision, err
}

// PutDocument writes bytes under a key if the key is at the given revision, and returns the new
// revision. The error is ErrMoved if another write came first.
func (b *Bucket) PutDocument(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return b.put(ctx, key, data, revision, nil)
}

// Remove deletes a key if the key is at the given revision. The error is ErrMoved if another write
// came first.
func (b *Bucket) Remove(ctx context.Context, key string, revision uint64) error {
	return b.remove(ctx, key, revision)
}

// ListKeys lists the keys that match a filter such as "agent.*", in no particular order. For up to a
// minute after its removal, a key is still listed.
func (b *Bucket) ListKeys(ctx context.Context, filter string) ([]string, error) {
	return b.keys(ctx, b.prefix, filter)
}

// NewestOf returns the revision of the last write or removal among the keys that match a filter such
// as "standing.session.S.*", or 0 if there was none. While this revision stays the same, the values
// of these keys that a caller has read are current, unless they have expired.
func (b *Bucket) NewestOf(ctx context.Context, filter string) (uint64, error) {
	val, err := b.last(ctx, b.prefix+filter)
	if errors.Is(err, ErrNotFound) {
		return val.revision, nil
	}
	return val.revision, err
}

// LiveKeys lists the existing keys that match a filter such as "worker.tg.*". The filter should match few
// keys, because LiveKeys reads each of them, to leave out removed keys.
func (b *Bucket) LiveKeys(ctx context.Context, filter string) ([]string, error) {
	listed, err := b.keys(ctx, b.prefix, filter)
	if err != nil {
		return nil, err
	}
	keys := listed[:0]
	for _, key := range listed {
		_, err := b.get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Watch returns at once. Until ctx ends, it calls the function changed for each key that was written
// or removed since the store was opened, one call at a time. It skips a write that another write has
// replaced. While the bus is unreachable, these calls are delayed. Watch never reports expired keys,
// so a caller must also read the bucket at intervals.
//
// nats.go makes a new consumer after every failure. Watch starts each consumer at a known revision,
// because a consumer that gets only new messages would miss changes during the failure.
func (b *Bucket) Watch(ctx context.Context, changed func(key string, revision uint64)) error {
	consumer, err := b.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: b.stream.CachedInfo().State.LastSeq + 1, HeadersOnly: true,
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", b.name, err)
	}
	run, err := consumer.Consume(func(m jetstream.Msg) {
		if meta, err := m.Metadata(); err == nil {
			changed(strings.TrimPrefix(m.Subject(), b.prefix), meta.Sequence.Stream)
		}
	}, jetstream.PullHeartbeat(idleBeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		b.conn.log.Info("bus: a watch is not served; it continues from its last position", "bucket", b.name, "error", err)
	}))
	if err != nil {
		return fmt.Errorf("watch %s: %w", b.name, err)
	}
	context.AfterFunc(ctx, run.Stop)
	return nil
}

// Newest returns the revision of the newest change in the bucket. If there is no leader, it tries again
// until ctx ends.
func (b *Bucket) Newest(ctx context.Context) (uint64, error) {
	var info *jetstream.StreamInfo
	err := retryOperation(ctx, "read the state of "+b.name, func(ctx context.Context) (err error) {
		info, err = b.stream.Info(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}
