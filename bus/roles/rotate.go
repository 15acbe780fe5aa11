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

// untilMark is in the name of the file that notes a replaced key: the key file's name, untilMark, the
// second at which the replaced key ends, and the last characters of its public half. The file
// contains the public half of the replaced key, whose seed is gone.
const untilMark = ".until-"

// Rotate replaces the key of this ID by a new key. Until the overlap has passed, servers accept both
// keys. If Rotate is killed, either the old key still works, or the new key is stored completely.
func (k *Keys) Rotate(id ID, overlap time.Duration) (u User, until time.Time, err error) {
	old, err := k.User(id)
	if err != nil {
		return User{}, time.Time{}, err
	}
	if id.Role == TokenService { // the two keys cannot overlap, because a server knows only one issuer of users
		return User{}, time.Time{}, fmt.Errorf("the keys of %s cannot overlap: nod keys revoke %s, then nod keys add %s", id, id, id)
	}
	content, err := k.newKey(id)
	if err != nil {
		return User{}, time.Time{}, fmt.Errorf("make a key for %s: %w", id, err)
	}
	until = time.Now().Add(overlap).Truncate(time.Second)
	// Rotate first notes the old key, and then replaces it. A server that reads the directory in between
	// accepts the old key as the current key. The note stays after the overlap, because the log has
	// signatures by the old key.
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

// Revoke removes the key of this ID and then, one after another, the replaced keys that are still
// accepted. If Revoke is killed, it must be called again. The error is fs.ErrNotExist if the ID had
// no key, in operator mode if it never had one.
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
	if err := k.removeAdmitting(id); err != nil {
		return err
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

// earlierKey is a key that a new key has replaced.
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

// Earlier returns the users of replaced keys whose overlap is not over at the time in the parameter
// now. It ignores a damaged note about a replaced key, because the new key works without the note.
func (k *Keys) Earlier(now time.Time) (users []User, err error) {
	earlier, err := k.earlier()
	for _, e := range earlier {
		if public, ok := e.public(); ok && now.Before(e.until) {
			users = append(users, User{ID: e.id, PublicKey: public, Until: e.until})
		}
	}
	return users, err
}

// Replaced returns the public halves of all replaced keys of this ID.
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

// replace replaces a file that only its owner can read. Even after a kill or a power cut, the file
// has either the old content or the new content.
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
