package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
)

// A key file has one of these suffixes: keySuffix if it has an nkey's seed, credsSuffix if it has a user
// for servers in operator mode.
const (
	keySuffix   = ".nk"
	credsSuffix = ".creds"
)

// Keys is a directory of keys. Each key has its own file, which only the owner can read. Only Rotate
// replaces such a file, and only Revoke removes one.
type Keys struct {
	dir      string
	operator *operator // nil if the keys are plain nkeys
}

// OpenKeys opens the keys of a data directory, and makes a missing directory for them. It refuses a
// directory to which other users have rights.
func OpenKeys(dataDir string) (*Keys, error) {
	dir := filepath.Join(dataDir, "keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the key directory: %w: fix its permissions, or name another data directory with --data", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("check the key directory: %w", err)
	}
	if exposed(info) {
		return nil, fmt.Errorf("other users may read the key directory %s (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	operator, err := openOperator(dir)
	if err != nil {
		return nil, err
	}
	return &Keys{dir: dir, operator: operator}, nil
}

// exposed reports whether other users have rights to a file. On Windows, files have no mode bits, and
// exposed returns false. There, the protection of the user profile must suffice.
func exposed(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// Dir returns the directory of the keys.
func (k *Keys) Dir() string { return k.dir }

// Path returns the path of the key file for this ID. The file may be missing.
func (k *Keys) Path(id ID) string { return filepath.Join(k.dir, id.String()+k.suffix()) }

func (k *Keys) suffix() string {
	if k.operator != nil {
		return credsSuffix
	}
	return keySuffix
}

// Add makes a key for this ID. If there is such a key already, Add keeps it and returns fs.ErrExist.
func (k *Keys) Add(id ID) (User, error) {
	if err := id.Check(); err != nil {
		return User{}, err
	}
	if issued, err := k.issued(id); err != nil {
		return User{}, err
	} else if len(issued) > 0 {
		return User{}, fmt.Errorf("%s has a key already, in %s or wherever it was moved: revoke it first: %w", id, k.Path(id), fs.ErrExist)
	}
	content, err := k.newKey(id)
	if err != nil {
		return User{}, fmt.Errorf("make a key for %s: %w", id, err)
	}
	if err := k.addAdmitting(id); err != nil {
		return User{}, err
	}
	if err := WriteNew(k.Path(id), content); errors.Is(err, fs.ErrExist) {
		return User{}, fmt.Errorf("%s has a key already, %s: remove the file first to replace it: %w", id, k.Path(id), fs.ErrExist)
	} else if err != nil {
		return User{}, fmt.Errorf("write the key of %s: %w", id, err)
	}
	return k.User(id)
}

// newKey makes a key and returns the content of its file.
func (k *Keys) newKey(id ID) ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	if k.operator != nil {
		return k.operator.issue(id, pair)
	}
	seed, err := pair.Seed()
	return slices.Concat(seed, []byte("\n")), err // a copy, because Wipe overwrites the original
}

// Put stores a key that was made on another machine. If this ID already has a different key, Put
// keeps that key and returns an error.
func (k *Keys) Put(id ID, seed string) error {
	if err := id.Check(); err != nil {
		return err
	}
	if k.operator != nil {
		return fmt.Errorf("%s has keys for servers in operator mode: name another directory with --data or NOD_DATA", k.dir)
	}
	public, err := publicKey([]byte(seed))
	if err != nil {
		return fmt.Errorf("the key of %s is damaged", id) // the error leaves out the library's error, which may quote the seed
	}
	err = WriteNew(k.Path(id), []byte(seed+"\n"))
	if errors.Is(err, fs.ErrExist) {
		if u, err := k.User(id); err == nil && u.PublicKey == public {
			return nil
		}
		return fmt.Errorf("%s has another key already, %s: remove the file first", id, k.Path(id))
	}
	if err != nil {
		return fmt.Errorf("keep the key of %s: %w", id, err)
	}
	return nil
}

// Ensure makes missing keys. It fails if an existing key is unusable. It does not make a key that was
// issued and whose file is now kept elsewhere.
func (k *Keys) Ensure(ids ...ID) error {
	for _, id := range ids {
		_, err := k.User(id)
		if errors.Is(err, fs.ErrNotExist) {
			issued, listed := k.issued(id)
			if len(issued) > 0 {
				continue
			}
			if err = listed; err == nil {
				_, err = k.Add(id)
			}
		}
		if errors.Is(err, fs.ErrExist) { // another process has just made the key
			_, err = k.User(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// User returns the public half of the key for this ID. It refuses a key file that is missing
// (fs.ErrNotExist), damaged, or readable by others.
func (k *Keys) User(id ID) (User, error) {
	path := k.Path(id)
	info, err := os.Stat(path)
	if err != nil {
		return User{}, fmt.Errorf("%s has no key: %w", id, err)
	}
	if exposed(info) {
		return User{}, fmt.Errorf("other users may read the key %s (mode %04o): chmod 600 it, "+
			"or remove it to have a new one made if others had access", path, info.Mode().Perm())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return User{}, fmt.Errorf("read the key of %s: %w", id, err)
	}
	defer clear(content)
	public, err := k.publicKey(content)
	if err != nil {
		// The error leaves out the library's error, which may quote the seed.
		return User{}, fmt.Errorf("the key %s is damaged: restore it, or remove it to have a new one made", path)
	}
	admits, err := k.admits(id)
	return User{ID: id, PublicKey: public, Admits: admits}, err
}

// publicKey returns the public half of the key in the content of a file.
func (k *Keys) publicKey(content []byte) (string, error) {
	if k.operator != nil {
		return userOf(content)
	}
	return publicKey(content)
}

func publicKey(seed []byte) (string, error) {
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(public) {
		err = nkeys.ErrIncompatibleKey
	}
	return public, err
}

// Users returns the users of all current keys in the directory, sorted by name. It fails if a key is
// unusable. Otherwise the fault would be noticed only when the user of that key connects.
func (k *Keys) Users() ([]User, error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	var users []User
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), k.suffix())
		if !ok {
			continue // a temporary file, or another file that is not nod's
		}
		id, err := ParseID(name)
		if err != nil {
			return nil, fmt.Errorf("the key %s has no valid name: %w", filepath.Join(k.dir, e.Name()), err)
		}
		user, err := k.User(id)
		if err != nil {
			return nil, err
		}
		users = append(users, user)
	}
	return users, nil
}

// WriteNew writes a new file that only its owner can read. The file is written completely or not at
// all. If the file exists, the error is fs.ErrExist. WriteNew uses a link because, unlike a rename, a
// link never replaces a file.
func WriteNew(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // CreateTemp gives its files the mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeSeed makes a key, and writes its seed to a new file, with the lines of text after it. An existing
// file stays.
func writeSeed(path string, create func() (nkeys.KeyPair, error), after ...string) error {
	pair, err := create()
	if err != nil {
		return err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	content := slices.Concat(seed, []byte("\n"), []byte(strings.Join(append(after, ""), "\n")))
	defer clear(content)
	if err := WriteNew(path, content); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// syncDir syncs the names in a directory, so that new files survive a power cut.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
