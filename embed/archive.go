package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
)

// A backup is a directory with three parts: the copies of the streams in streamsDir, the other files
// of a data directory in filesDir, and the manifest. Until the backup is complete, the directory has
// another name.
const (
	manifestName  = "manifest.json"
	streamsDir    = "streams"
	filesDir      = "files"
	archiveFormat = 1
)

// notArchived are two entries of a data directory that a backup leaves out. The stores are copied as
// streams instead. The key of the web inbox is left out because a restore must end all earlier
// logins.
var notArchived = []string{"nats", "web"}

// Manifest describes a backup.
type Manifest struct {
	Format     int              `json:"format"`
	Nod        string           `json:"nod"`         // the version of nod that made the backup
	DataFormat int              `json:"data_format"` // the format of the data directory; 0 if the backup has none
	MadeAt     time.Time        `json:"made_at"`     // everything that was decided before this time is in the backup
	Streams    []archivedStream `json:"streams"`
	Files      []archivedFile   `json:"files,omitempty"`
}

type archivedStream struct {
	Name string `json:"name"`
	bus.Snapshot
	archivedFile
}

// archivedFile is a file of a backup. Path is relative to the backup, with slashes.
type archivedFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// BackupOptions configure Backup.
type BackupOptions struct {
	// Conn is a connection with all rights on the stores, in the role owner-store.
	Conn *bus.Conn
	// DataDir is the data directory of the nod. If the stores are on other NATS servers, DataDir is
	// empty, because only their streams are copied.
	DataDir string
	To      string       // the directory to create; it must not exist
	Version string       // nod's version
	Report  func(string) // is called with a line of text about each step; may be nil
}

// Backup copies all stores of a running nod, and the files of its data directory, into a new
// directory. This directory appears only when it is complete and on disk. The copy of a stream has
// everything that was acknowledged before the call. Only the owner can read the backup, because it
// contains keys.
func Backup(ctx context.Context, o BackupOptions) (Manifest, error) {
	m := Manifest{Format: archiveFormat, Nod: o.Version, MadeAt: time.Now().UTC()}
	to, err := o.target()
	if err != nil {
		return m, err
	}
	unfinished := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".unfinished") // an earlier backup that was killed may have left this directory
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(filepath.Dir(to), 0o700), os.Mkdir(unfinished, 0o700), os.Mkdir(filepath.Join(unfinished, streamsDir), 0o700)); err != nil {
		return m, fmt.Errorf("make the backup: %w", err)
	}
	if err := o.fill(ctx, &m, unfinished); err != nil {
		return m, errors.Join(fmt.Errorf("make the backup: %w", err), os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, to); err != nil {
		return m, fmt.Errorf("make the backup: %w", err)
	}
	return m, syncDir(filepath.Dir(to))
}

// target returns the absolute path of the backup. It refuses an existing path. It also refuses a path
// in the data directory, because the backup would then be copied into itself.
func (o *BackupOptions) target() (string, error) {
	to, err := filepath.Abs(o.To)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(to); err == nil {
		return "", fmt.Errorf("%s exists: name a new directory for the backup", to)
	}
	if o.DataDir == "" {
		return to, nil
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(dir, to); err == nil && !strings.HasPrefix(rel, "..") && !strings.HasPrefix(rel, backups+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is in the data directory: name another place, best on another disk", to)
	}
	return to, nil
}

func (o *BackupOptions) fill(ctx context.Context, m *Manifest, dir string) error {
	for _, name := range bus.SavedStreams() {
		s, err := o.copyStream(ctx, dir, name)
		if err != nil {
			return err
		}
		m.Streams = append(m.Streams, s)
		o.report(fmt.Sprintf("copied %s, %d bytes", name, s.Bytes))
	}
	if o.DataDir != "" {
		if err := o.copyFiles(m, dir); err != nil {
			return err
		}
		o.report(fmt.Sprintf("copied %d files of the data directory", len(m.Files)))
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, manifestName), append(text, '\n')); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Join(dir, streamsDir)), syncDir(dir))
}

func (o *BackupOptions) report(line string) {
	if o.Report != nil {
		o.Report(line)
	}
}

func (o *BackupOptions) copyStream(ctx context.Context, dir, name string) (archivedStream, error) {
	s := archivedStream{Name: name, archivedFile: archivedFile{Path: streamsDir + "/" + name}}
	f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(s.Path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return s, err
	}
	sum := sha256.New()
	s.Snapshot, err = o.Conn.Snapshot(ctx, name, io.MultiWriter(f, sum))
	if err == nil {
		s.Bytes, err = f.Seek(0, io.SeekCurrent)
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return s, errors.Join(err, f.Sync(), f.Close())
}

// copyFiles copies the files of the data directory, without the stores, and adds the copies to the
// manifest.
func (o *BackupOptions) copyFiles(m *Manifest, dir string) (err error) {
	if m.DataFormat, err = DataFormat(o.DataDir); err != nil {
		return err
	}
	names, err := data(o.DataDir)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filesDir)
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(notArchived, name) || strings.HasPrefix(name, ".") {
			continue
		}
		if err := copyTree(filepath.Join(o.DataDir, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	m.Files, err = listFiles(dir, to)
	return errors.Join(err, syncDir(to))
}

func listFiles(root, dir string) (files []archivedFile, err error) {
	return files, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := describeFile(path)
		f.Path = filepath.ToSlash(rel)
		files = append(files, f)
		return err
	})
}

func describeFile(path string) (archivedFile, error) {
	in, err := os.Open(path)
	if err != nil {
		return archivedFile{}, err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	return archivedFile{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// openArchive reads the manifest of a backup, and checks all files of the backup against it.
func openArchive(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no backup of nod: it has no %s", dir, manifestName)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read the backup %s: %w", dir, err)
	}
	if m.Format != archiveFormat || m.MadeAt.IsZero() {
		return m, fmt.Errorf("the backup %s has the format %d, of nod %s, and this nod knows format %d: use that nod", dir, m.Format, m.Nod, archiveFormat)
	}
	files := slices.Clone(m.Files)
	var names []string
	for _, s := range m.Streams {
		files, names = append(files, s.archivedFile), append(names, s.Name)
	}
	if !slices.Equal(names, bus.SavedStreams()) {
		return m, fmt.Errorf("the backup %s is not complete: it has the stores %v", dir, names)
	}
	for _, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return m, fmt.Errorf("the backup %s names a file outside it: %q", dir, f.Path)
		}
		now, err := describeFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err == nil && (now.SHA256 != f.SHA256 || now.Bytes != f.Bytes) {
			err = fmt.Errorf("%s is not as it was written", f.Path)
		}
		if err != nil {
			return m, fmt.Errorf("the backup %s is damaged: %w: use another one", dir, err)
		}
	}
	return m, nil
}
