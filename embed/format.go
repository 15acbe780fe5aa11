package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// A step converts a data directory from one format to the next, while no nod runs on the directory.
// If a step failed or was interrupted, nod restores the backup, so a step never sees partly converted
// data.
type step struct {
	what string // a description of what the step does, for messages; it begins with "to"
	do   func(ctx context.Context, dir string) error
}

// steps lists all steps, of which the first converts format 1 to format 2. A new version of nod needs
// a step only if older versions would misread its data.
func steps() []step { return nil }

// formatName is the name of the file with a data directory's format.
const formatName = "format.json"

// format is the content of format.json. A directory without this file is new, or has data of format 1
// from before nod wrote the file.
type format struct {
	Format int    `json:"format"`
	Nod    string `json:"nod"` // the version of nod that wrote the file
	// Backup is the backup to restore if the steps are interrupted. It is set only while steps run.
	Backup string `json:"backup,omitempty"`
}

// DataFormat returns the format of a data directory, or 0 if dir contains no data.
func DataFormat(dir string) (int, error) {
	f, err := readFormat(dir, 0)
	return f.Format, err
}

// openData makes a backup of a data directory with an older format, and runs the steps to the
// current format. If a step fails, openData restores the backup. It refuses a directory with a
// newer format. Errors are one line.
func openData(ctx context.Context, dir, version string, steps []step, log *slog.Logger) error {
	current := len(steps) + 1
	f, err := readFormat(dir, current)
	if err != nil {
		return err
	}
	if f.Format > current {
		return fmt.Errorf("the data directory %s has format %d, of nod %s, and this nod, %s, knows formats up to %d: install nod %s again, or name another directory with --data",
			dir, f.Format, f.Nod, version, current, f.Nod)
	}
	if f.Backup != "" {
		log.Warn("the data was being brought to a newer format when nod was stopped: it is put back first", "backup", f.Backup)
		if err := goBack(dir, &f); err != nil {
			return err
		}
	}
	if f.Format < current {
		if err := migrate(ctx, dir, &f, steps, log); err != nil {
			return err
		}
	}
	if now := (format{Format: current, Nod: version}); f != now {
		return now.write(dir)
	}
	return nil
}

// migrate makes a backup of a directory, and runs the steps that the directory's format lacks. If a
// step fails, migrate restores the backup.
func migrate(ctx context.Context, dir string, f *format, steps []step, log *slog.Logger) error {
	var err error
	if f.Backup, err = backUp(dir, f.Format); err != nil {
		return fmt.Errorf("back up the data directory before it is changed: %w: nothing was changed; make room or fix the permissions", err)
	}
	log.Info("the data is brought to a newer format", "from", f.Format, "to", len(steps)+1, "backup", f.Backup)
	if err := f.write(dir); err != nil {
		return err
	}
	for _, s := range steps[f.Format-1:] {
		if err := s.do(ctx, dir); err != nil {
			err = fmt.Errorf("bring the data directory to this nod's format (to %s): %w", s.what, err)
			if back := goBack(dir, f); back != nil {
				return fmt.Errorf("%w; and %w", err, back)
			}
			return fmt.Errorf("%w: the data is as it was, and nod %s still reads it", err, f.Nod)
		}
	}
	return nil
}

func goBack(dir string, f *format) error {
	if err := restore(dir, f.Backup); err != nil {
		return fmt.Errorf("put the data back from %s: %w: fix that and start nod again", f.Backup, err)
	}
	f.Backup = ""
	return f.write(dir)
}

// readFormat reads a directory's format. For a new directory it returns the current format.
func readFormat(dir string, current int) (format, error) {
	path := filepath.Join(dir, formatName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "nats")); err == nil {
			return format{Format: 1, Nod: "of an early version"}, nil
		}
		return format{Format: current}, nil
	}
	var f format
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Format < 1 {
		err = errors.New("it names no format")
	}
	if err != nil {
		return f, fmt.Errorf("find the format of the data directory: %s: %w: restore that file from a backup", path, err)
	}
	return f, nil
}

// write replaces format.json atomically, and returns once the file is on disk. If it fails, the old
// file stays.
func (f format) write(dir string) error {
	data, err := json.Marshal(f)
	if err == nil {
		err = writeSynced(filepath.Join(dir, formatName), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the format of the data directory: %w", err)
	}
	return nil
}
