package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// untilMark is between the name of a key's file and the second at which its earlier key ends, which the end
// of that key's public half follows. Such a file has the public half; the seed is gone.
const untilMark = ".until-"

// Rotate replaces the key of id by a new one. The earlier key is accepted too, until the overlap has
// passed. If Rotate is killed at any moment, the earlier key still works, or the new one is complete.
func (k *Keys) Rotate(id ID, overlap time.Duration) (u User, until time.Time, err error) {
	old, err := k.User(id)
	if err != nil {
		return User{}, time.Time{}, err
	}
	content, err := k.newKey(id)
	if err != nil {
		return User{}, time.Time{}, fmt.Errorf("make a key for %s: %w", id, err)
	}
	until = time.Now().Add(overlap).Truncate(time.Second)
	// The earlier key is noted first: a server that reads the directory between the two steps
	// accepts it as the current one. The note stays, because the log has signatures of the key.
	note := k.Path(id) + untilMark + strconv.FormatInt(until.Unix(), 10) + "-" + old.PublicKey[len(old.PublicKey)-8:]
	if err := WriteNew(note, []byte(old.PublicKey+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return User{}, time.Time{}, fmt.Errorf("note the earlier key of %s: %w", id, err)
	}
	if err := replace(k.Path(id), content); err != nil {
		return User{}, time.Time{}, fmt.Errorf("write the new key of %s: %w", id, err)
	}
	u, err = k.User(id)
	return u, until, err
}

// Revoke removes the key of id, and the earlier ones that are still accepted. It removes them one
// after another; after a kill, run it again. The error is fs.ErrNotExist if there was none.
func (k *Keys) Revoke(id ID) error {
	earlier, err := k.earlier()
	if err != nil {
		return err
	}
	removed, err := k.revokeIssued(id)
	if err != nil {
		return err
	}
	for _, e := range earlier {
		if e.id != id {
			continue
		}
		if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an earlier key of %s: %w", id, err)
		}
		removed = true
	}
	err = os.Remove(k.Path(id))
	if errors.Is(err, fs.ErrNotExist) && removed {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("remove the key of %s: %w", id, err)
	}
	return syncDir(k.dir)
}

// earlierKey is a key that another one has replaced.
type earlierKey struct {
	id    ID
	path  string
	until time.Time
}

func (k *Keys) earlier() (all []earlierKey, err error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	for _, e := range entries {
		name, rest, ok := strings.Cut(e.Name(), k.suffix()+untilMark)
		end, _, _ := strings.Cut(rest, "-")
		second, err := strconv.ParseInt(end, 10, 64)
		if !ok || err != nil {
			continue
		}
		id, err := ParseID(name)
		if err != nil {
			return nil, fmt.Errorf("the key %s has no valid name: %w", filepath.Join(k.dir, e.Name()), err)
		}
		all = append(all, earlierKey{id, filepath.Join(k.dir, e.Name()), time.Unix(second, 0)})
	}
	return all, nil
}

// Earlier returns the users of replaced keys whose overlap has not passed at now. A damaged note is
// left out: the new key works without it.
func (k *Keys) Earlier(now time.Time) (users []User, err error) {
	earlier, err := k.earlier()
	for _, e := range earlier {
		if public, ok := e.public(); ok && now.Before(e.until) {
			users = append(users, User{ID: e.id, PublicKey: public, Until: e.until})
		}
	}
	return users, err
}

// Replaced returns the public halves of all keys of id that another one has replaced.
func (k *Keys) Replaced(id ID) (public []string, err error) {
	earlier, err := k.earlier()
	for _, e := range earlier {
		if p, ok := e.public(); ok && e.id == id {
			public = append(public, p)
		}
	}
	return public, err
}

func (e earlierKey) public() (key string, ok bool) {
	text, err := os.ReadFile(e.path)
	key = strings.TrimSpace(string(text))
	return key, err == nil && nkeys.IsValidPublicUserKey(key)
}

// replace replaces a file, readable by its owner alone: after a kill or a power cut it has the old
// content or the new one.
func replace(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
