package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// In operator mode a server accepts every user that a signing key has signed, even if the user's key file
// is gone. The directory therefore has a file for each such user, named by the ID and the public half of
// the key. The file is in issued and, after a revocation, in revoked.
const (
	issuedDir  = "issued"
	revokedDir = "revoked"
)

// ForOperator makes k a directory of keys for servers in operator mode, and makes the operator. It
// does nothing if k is such a directory already, and fails if the directory has plain nkeys.
func (k *Keys) ForOperator() error {
	if k.operator != nil {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(k.dir, "*"+keySuffix))
	if err != nil {
		return fmt.Errorf("list the keys: %w", err)
	}
	if len(files) > 0 {
		return fmt.Errorf("%s has plain keys, which servers in operator mode do not accept: name an empty directory with --data", k.dir)
	}
	if err := os.Mkdir(filepath.Join(k.dir, operatorDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the operator's directory: %w", err)
	}
	k.operator, err = openOperator(k.dir)
	if err != nil {
		return err
	}
	unlock, err := k.Lock()
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// Operator reports whether the keys are for servers in operator mode.
func (k *Keys) Operator() bool { return k.operator != nil }

// Lock waits until no other command changes the keys for servers in operator mode, and then keeps
// other commands from changing them. Without Lock, a command could send servers an account without
// the revocation of another command. Lock also makes the signing keys of roles that this version of
// nod has added. For plain nkeys, Lock does nothing.
func (k *Keys) Lock() (unlock func(), err error) {
	if k.operator == nil {
		return func() {}, nil
	}
	unlock, err = k.operator.lock()
	if err != nil {
		return nil, err
	}
	if err := k.operator.complete(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// issue signs a user for id, and returns the content of the user's key file. Before it returns, it notes
// the user in the directory issued, because servers accept every signed user.
func (o *operator) issue(id ID, pair nkeys.KeyPair) ([]byte, error) {
	content, err := o.user(id.signer(), id.Account(), id.jwtName(), pair)
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.path(issuedDir), 0o700); err != nil {
		return nil, err
	}
	return content, WriteNew(o.noted(issuedDir, User{ID: id, PublicKey: public}), nil)
}

func (o *operator) noted(dir string, u User) string {
	return filepath.Join(o.dir, dir, u.String()+"."+u.PublicKey)
}

// users returns the users in one of the two directories, issued or revoked.
func (o *operator) users(dir string) (users []User, err error) {
	entries, err := os.ReadDir(o.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the users: %w", err)
	}
	for _, e := range entries {
		name, public, _ := strings.Cut(e.Name(), ".")
		id, err := ParseID(name)
		if name == "" { // a temporary file
			continue
		}
		if err != nil || !nkeys.IsValidPublicUserKey(public) {
			return nil, fmt.Errorf("%s names no user: remove it if it is not nod's", filepath.Join(o.path(dir), e.Name()))
		}
		users = append(users, User{ID: id, PublicKey: public})
	}
	return users, nil
}

// Issued returns all users that servers in operator mode accept, sorted by name. Their key files may be
// elsewhere.
func (k *Keys) Issued() ([]User, error) {
	if k.operator == nil {
		return nil, nil
	}
	return k.operator.users(issuedDir)
}

// Elsewhere returns those users that servers in operator mode accept and whose key files are not in this
// directory. Their files were moved, or Rotate has replaced their keys.
func (k *Keys) Elsewhere() ([]User, error) {
	issued, err := k.Issued()
	if err != nil {
		return nil, err
	}
	here, err := k.Users()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(issued, func(u User) bool { return slices.Contains(here, u) }), nil
}

// issued returns the users with this ID that servers in operator mode accept.
func (k *Keys) issued(id ID) (users []User, err error) {
	all, err := k.Issued()
	for _, u := range all {
		if u.ID == id {
			users = append(users, u)
		}
	}
	return users, err
}

// revokeIssued notes that all users with this ID are revoked. Their key files are removed afterwards. It also
// reports true if only an earlier call has revoked users, because the command that made it may have been
// killed before it told the servers.
func (k *Keys) revokeIssued(id ID) (revoked bool, err error) {
	if k.operator == nil {
		return false, nil
	}
	users, err := k.issued(id)
	if err != nil {
		return false, err
	}
	if u, err := k.User(id); err == nil {
		users = append(users, u)
	}
	for _, u := range users {
		if err := k.operator.revoke(u); err != nil {
			return false, err
		}
	}
	all, err := k.operator.users(revokedDir)
	return slices.ContainsFunc(all, func(u User) bool { return u.ID == id }), err
}

func (o *operator) revoke(u User) error {
	err := os.MkdirAll(o.path(revokedDir), 0o700)
	if err == nil {
		err = WriteNew(o.noted(revokedDir, u), nil)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Remove(o.noted(issuedDir, u))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("note that a key of %s is revoked: %w", u.ID, err)
	}
	return nil
}

// revokeEarlier notes that a replaced key is revoked if its overlap is over at the time in the
// parameter now.
func (k *Keys) revokeEarlier(now time.Time) error {
	earlier, err := k.earlier()
	if err != nil {
		return err
	}
	issued, err := k.Issued()
	if err != nil {
		return err
	}
	for _, e := range earlier {
		public, ok := e.public()
		for _, u := range issued {
			if ok && u.ID == e.id && u.PublicKey == public && !now.Before(e.until) {
				if err := k.operator.revoke(u); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// userOf returns the public half of the key in a user's key file. It fails if the JWT in the file is
// about another key.
func userOf(content []byte) (string, error) {
	token, err := jwt.ParseDecoratedJWT(content)
	if err != nil {
		return "", err
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return "", err
	}
	pair, err := jwt.ParseDecoratedUserNKey(content)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err == nil && public != claims.Subject {
		err = nkeys.ErrIncompatibleKey
	}
	return public, err
}
