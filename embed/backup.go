package embed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// backups is the directory in a data directory that contains its backups. nod itself removes only
// unfinished backups from it.
const backups = "backups"

// notData are the entries of a data directory that a backup leaves out: the backups, the logs, the
// file with the format of the data, and files that nod makes again at each start.
var notData = []string{backups, formatName, "lock", "run.json", "launcher", "logs", "reserve"}

// backUp copies the data of a directory into a new directory under backups, and returns the
// path of the copy. The path exists only once the copy is complete.
func backUp(dir string, format int) (string, error) {
	at := filepath.Join(dir, backups)
	unfinished := filepath.Join(at, ".unfinished")
	if err := errors.Join(os.MkdirAll(at, 0o700), os.RemoveAll(unfinished), os.Mkdir(unfinished, 0o700)); err != nil {
		return "", err
	}
	if err := copyData(dir, unfinished); err != nil {
		return "", err
	}
	path := filepath.Join(at, fmt.Sprintf("format-%d-%s", format, time.Now().UTC().Format("20060102T150405.000Z")))
	if err := os.Rename(unfinished, path); err != nil {
		return "", err
	}
	return path, syncDir(at)
}

func restore(dir, backup string) error {
	if _, err := os.Stat(backup); err != nil {
		return err
	}
	entries, err := data(dir)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return copyData(backup, dir)
}

// data lists the entries of a data directory that belong in a backup.
func data(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !slices.Contains(notData, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func copyData(from, to string) error {
	names, err := data(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyTree(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return syncDir(to)
}

// copyTree copies files, directories and links with their modes. It skips other entries, such
// as sockets.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch info, err := e.Info(); {
		case err != nil:
			return err
		case e.IsDir():
			return os.Mkdir(target, info.Mode().Perm()|0o700)
		case e.Type() == fs.ModeSymlink:
			leads, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(leads, target)
		case e.Type().IsRegular():
			return copyFile(path, target, info.Mode().Perm())
		}
		return nil
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// writeSynced replaces a file's content atomically, and returns once the content is on disk.
func writeSynced(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // CreateTemp makes files with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir syncs the names in a directory, so that they survive a power cut. It ignores the error of the
// sync, because some systems cannot sync a directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
