package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/nats-io/jwt/v2"
)

// RotateSigner replaces the signing key of a role, such as "agent", whose seed was stolen. It signs
// anew those users of the role whose key files are in this directory, and returns the other users of
// the role. Once servers have the new accounts, they refuse everything that the old key has signed.
// If RotateSigner is killed, it must be called again. The caller holds Lock.
func (k *Keys) RotateSigner(name string) (elsewhere []User, err error) {
	o := k.operator
	if o == nil {
		return nil, fmt.Errorf("%s has plain keys, which nothing signs", k.dir)
	}
	if !slices.ContainsFunc(signers(), func(s signer) bool { return s.name == name }) {
		return nil, fmt.Errorf("no signing key is called %q: there are %s", name, signerNames())
	}
	delete(o.state.Signers, name)
	if name == sentinelSigner {
		o.state.Sentinel = ""
	}
	for _, file := range []string{name + keySuffix, name + credsSuffix} { // only push has a .creds file here
		if err := os.Remove(o.path(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the earlier signing key: %w", err)
		}
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	users, err := k.Users()
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if u.signer() == name {
			if err := k.signAgain(u.ID); err != nil {
				return nil, fmt.Errorf("sign the key of %s again: %w", u.ID, err)
			}
		}
	}
	elsewhere, err = k.Elsewhere()
	return slices.DeleteFunc(elsewhere, func(u User) bool { return u.signer() != name }), err
}

// signAgain replaces the JWT in a key file, and keeps the key.
func (k *Keys) signAgain(id ID) error {
	content, err := os.ReadFile(k.Path(id))
	if err != nil {
		return err
	}
	defer clear(content)
	pair, err := jwt.ParseDecoratedUserNKey(content)
	if err != nil {
		return errors.New("its file is damaged") // the error leaves out the library's error, which may quote the seed
	}
	defer pair.Wipe()
	signed, err := k.operator.user(id.signer(), id.Account(), id.jwtName(), pair)
	if err != nil {
		return err
	}
	return replace(k.Path(id), signed)
}

func signerNames() (names []string) {
	for _, s := range signers() {
		names = append(names, s.name)
	}
	return names
}
