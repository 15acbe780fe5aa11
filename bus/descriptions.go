package bus

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// description is the stored configuration of a stream or a consumer. Its directory has two files for it:
// JetStreamMetaFile with the configuration, and JetStreamMetaFileSum with the checksum. nats-server
// writes them one after the other, for some streams without a sync. After a power cut or a kill, the
// checksum may therefore differ, or the configuration may be missing. The server would then leave out the
// stream or the consumer, with all its messages.
type description struct {
	dir string
	key string // the key with which the checksum is computed
	// fresh makes a new description from the configuration that nod gives the stream or consumer.
	fresh func() (any, error)
}

// repairStores rewrites the damaged descriptions of nod's streams and consumers, removes damaged
// positions of consumers, and keeps all messages. The rewritten descriptions lack settings that an
// engine applies later, such as the limits of the log. No server may run on the directory during the
// call.
func repairStores(storeDir string, log *slog.Logger) error {
	root := filepath.Join(storeDir, "jetstream")
	for _, config := range storeConfigs(1) {
		dirs, _ := fs.Glob(os.DirFS(root), path.Join("*", "streams", config.Name)) // Glob fails only for a malformed pattern
		for _, dir := range dirs {
			if err := repairStream(filepath.Join(root, filepath.FromSlash(dir)), config, log); err != nil {
				return fmt.Errorf("repair the stores: %w: check the disk and the owner of the files, then start nod again", err)
			}
		}
	}
	return nil
}

func repairStream(dir string, config jetstream.StreamConfig, log *slog.Logger) error {
	if err := ofStream(dir, config).repair(log); err != nil {
		return err
	}
	for _, d := range ofConsumers(dir, config.Name) {
		if err := d.repair(log); err != nil {
			return err
		}
		if err := dropDamagedState(d.dir, log); err != nil {
			return err
		}
	}
	return nil
}

// storeConfigs returns the configurations that nod gives its streams, for this number of replicas.
func storeConfigs(replicas int) []jetstream.StreamConfig {
	configs := []jetstream.StreamConfig{recordsConfig(replicas), replicated(logConfig(), replicas), promptsConfig(replicas)}
	for _, b := range new(Store).buckets() {
		configs = append(configs, replicated(bucketConfig(b.name, b.async, replicas), replicas))
	}
	return configs
}

// consumerConfig returns the configuration of a durable consumer of nod. The AckWait in it is
// provisional, because each engine that opens the consumer sets the engine's own AckWait.
func consumerConfig(stream, consumer string) (config jetstream.ConsumerConfig, ok bool) {
	const ackWait = 30 * time.Second
	outbox, clock := outboxConfig(ackWait), clockConfig(ackWait)
	switch {
	case stream == promptsConfig(1).Name:
		return promptsConsumer(consumer), true
	case stream == recordsConfig(1).Name && consumer == outbox.Durable:
		return outbox, true
	case stream == recordsConfig(1).Name && consumer == clock.Durable:
		return clock, true
	}
	return config, false
}

func ofStream(dir string, config jetstream.StreamConfig) description {
	return description{dir: dir, key: config.Name, fresh: func() (any, error) {
		info := server.FileStreamInfo{Created: time.Now().UTC()}
		return &info, convert(config, &info.StreamConfig)
	}}
}

// ofConsumers returns the descriptions of nod's durable consumers of a stream.
func ofConsumers(streamDir, stream string) (found []description) {
	entries, _ := os.ReadDir(filepath.Join(streamDir, "obs")) // a stream without consumers has no such directory
	for _, e := range entries {
		name := e.Name()
		config, ok := consumerConfig(stream, name)
		if !ok || !e.IsDir() {
			continue
		}
		found = append(found, description{dir: filepath.Join(streamDir, "obs", name), key: stream + "/" + name, fresh: func() (any, error) {
			info := server.FileConsumerInfo{Created: time.Now().UTC(), Name: name}
			return &info, convert(config, &info.ConsumerConfig)
		}})
	}
	return found
}

// convert converts a configuration from the client's type to the server's type, which has the same JSON.
func convert(config, into any) error {
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (d description) file() string { return filepath.Join(d.dir, server.JetStreamMetaFile) }

func (d description) sumFile() string { return filepath.Join(d.dir, server.JetStreamMetaFileSum) }

func (d description) repair(log *slog.Logger) error {
	intact, err := d.intact()
	if intact || err != nil {
		return err
	}
	info, err := d.fresh()
	if err != nil {
		return err
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	log.Warn("bus: a power cut or a kill has damaged the description of a store; it is written anew, and the messages stay", "file", d.file())
	if err := replaceFile(d.file(), data); err != nil {
		return err
	}
	return replaceFile(d.sumFile(), []byte(d.sum(data)))
}

// intact reports whether the description agrees with its checksum. If a file exists but cannot be read,
// intact returns an error, because the description may be intact.
func (d description) intact() (bool, error) {
	data, err := os.ReadFile(d.file())
	sum, serr := os.ReadFile(d.sumFile())
	if err = cmp.Or(err, serr); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && len(data) > 0 && string(sum) == d.sum(data), err
}

// sum returns the checksum of data as nats-server computes it.
func (d description) sum(data []byte) string {
	key := sha256.Sum256([]byte(d.key))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		panic(err) // New64 fails only for a key of another length
	}
	_, _ = h.Write(data) // the Write of a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// replaceFile replaces a whole file durably. It uses the name of the server's temporary files for its
// own temporary file, so that the next write overwrites a file that a crash has left.
func replaceFile(path string, data []byte) error {
	tmp, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
