package roles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

const operatorDir = "operator"

// operator is the part of a key directory that signs for servers in operator mode. It has the seeds
// of a NATS operator and of the signing keys of the operator's accounts. A key directory has either
// an operator or plain nkeys.
//
// Each seed has its own file, which may be kept elsewhere until the seed has to sign. The accounts'
// own seeds are not kept at all, because they could sign users with any rights.
type operator struct {
	dir   string
	state operatorState
}

// operatorState is the public part of an operator. It is stored in the file operator.json.
type operatorState struct {
	Operator string             `json:"operator"` // the operator's JWT
	Accounts map[Account]string `json:"accounts"` // public keys
	Signers  map[string]string  `json:"signers"`  // public keys
	// Admits is nil without a token service. Sentinel is the JWT of a user without rights. A server treats
	// a client without a key as this user.
	Admits   *Admits `json:"admits,omitempty"`
	Sentinel string  `json:"sentinel,omitempty"`
}

// text returns the content of operator.json.
func (s operatorState) text() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// The operator has two seeds. accountSeed signs accounts. operatorSeed is the operator's own, and is
// needed only to replace accountSeed.
const (
	operatorSeed = "operator"
	accountSeed  = "accounts"
)

func (o *operator) path(name string) string { return filepath.Join(o.dir, name) }

// openOperator returns the operator of a key directory, or nil if the directory has plain nkeys.
func openOperator(keysDir string) (*operator, error) {
	o := &operator{dir: filepath.Join(keysDir, operatorDir)}
	info, err := os.Stat(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the operator's directory: %w", err)
	}
	if exposed(info) {
		return nil, fmt.Errorf("other users may read the operator's directory %s (mode %04o): chmod 700 it", o.dir, info.Mode().Perm())
	}
	return o, o.load()
}

func (o *operator) load() error {
	o.state = operatorState{Accounts: map[Account]string{}, Signers: map[string]string{}}
	text, err := os.ReadFile(o.path("operator.json"))
	if errors.Is(err, fs.ErrNotExist) { // the command that made the directory was killed before it wrote this file
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o.state)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w: restore it from a copy", o.path("operator.json"), err)
	}
	return nil
}

// lock waits until no other command changes the operator's directory. It then reads the directory's state
// again.
func (o *operator) lock() (unlock func(), err error) {
	file := flock.New(o.path("lock"), flock.SetPermissions(0o600))
	if err := file.Lock(); err != nil {
		return nil, fmt.Errorf("lock the operator's directory %s: %w", o.dir, err)
	}
	return func() { _ = file.Unlock() }, o.load() // Unlock fails only if the file was closed
}

// complete makes all missing keys: in a new directory every key, and later the keys of roles that this
// version of nod has added. If complete is killed, its next call makes the rest.
func (o *operator) complete() error {
	issued, err := o.users(issuedDir)
	if err != nil {
		return err
	}
	if o.state.Operator == "" && len(issued) > 0 {
		return fmt.Errorf("%s is missing, but its accounts have users: restore it from a copy", o.path("operator.json"))
	}
	before, err := o.state.text()
	if err != nil {
		return err
	}
	for _, a := range accountNames() {
		if o.state.Accounts[a] == "" {
			if o.state.Accounts[a], err = newPublicKey(nkeys.CreateAccount); err != nil {
				return fmt.Errorf("make an account: %w", err)
			}
		}
	}
	for _, s := range signers() {
		if o.state.Signers[s.name] == "" {
			if o.state.Signers[s.name], err = o.ensureSeed(s.name, nkeys.CreateAccount); err != nil {
				return err
			}
		}
	}
	if o.state.Operator == "" {
		if o.state.Operator, err = o.newOperator(); err != nil {
			return err
		}
	}
	if err := o.completeSentinel(); err != nil {
		return err
	}
	after, err := o.state.text()
	if err != nil {
		return err
	}
	if !bytes.Equal(after, before) {
		if err := o.store(after); err != nil {
			return err
		}
	}
	return o.ensurePush()
}

func (o *operator) store(state []byte) error {
	if err := replace(o.path("operator.json"), state); err != nil {
		return fmt.Errorf("write the operator's public keys: %w", err)
	}
	return nil
}

// newPublicKey returns the public half of a new key, whose seed is not kept.
func newPublicKey(create func() (nkeys.KeyPair, error)) (string, error) {
	pair, err := create()
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// ensureSeed returns the public key of the seed with this name, and makes the seed if it is missing.
func (o *operator) ensureSeed(name string, create func() (nkeys.KeyPair, error)) (public string, err error) {
	if err := writeSeed(o.path(name+keySuffix), create); err != nil {
		return "", fmt.Errorf("make the key %s: %w", name, err)
	}
	stored, err := o.seed(name)
	if err != nil {
		return "", err
	}
	defer stored.Wipe()
	return stored.PublicKey()
}

func (o *operator) seed(name string) (nkeys.KeyPair, error) {
	path := o.path(name + keySuffix)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the seed %s, which has to sign this, is not here: put it back for this command: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the seed: %w", err)
	}
	if exposed(info) {
		return nil, fmt.Errorf("other users may read the seed %s (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the seed: %w", err)
	}
	defer clear(text)
	pair, err := nkeys.FromSeed(bytes.Clone(bytes.TrimSpace(text))) // the key pair keeps the slice, so it gets a copy
	if err != nil {
		return nil, fmt.Errorf("the seed %s is damaged: restore it", path) // the error leaves out the library's error, which may quote the seed
	}
	return pair, nil
}

// newOperator returns the JWT of a new operator. It makes servers accept only accounts that the key
// accounts.nk has signed.
func (o *operator) newOperator() (string, error) {
	own, err := o.ensureSeed(operatorSeed, nkeys.CreateOperator)
	if err != nil {
		return "", err
	}
	signs, err := o.ensureSeed(accountSeed, nkeys.CreateOperator)
	if err != nil {
		return "", err
	}
	pair, err := o.seed(operatorSeed)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	c := jwt.NewOperatorClaims(own)
	c.Name, c.SystemAccount, c.StrictSigningKeyUsage = "nod", o.state.Accounts[System], true
	c.SigningKeys.Add(signs)
	token, err := c.Encode(pair)
	if err != nil {
		return "", fmt.Errorf("sign the operator's JWT: %w", err)
	}
	return token, nil
}

// userJWT signs the JWT of the user who has this public key.
func (o *operator) userJWT(signedBy string, a Account, name, public string) (string, error) {
	sign, err := o.seed(signedBy)
	if err != nil {
		return "", err
	}
	defer sign.Wipe()
	return jwt.IssueUserJWT(sign, o.state.Accounts[a], public, name, 0)
}

// user signs the JWT of a user, and returns the content of the user's key file.
func (o *operator) user(signedBy string, a Account, name string, user nkeys.KeyPair) ([]byte, error) {
	public, err := user.PublicKey()
	if err != nil {
		return nil, err
	}
	token, err := o.userJWT(signedBy, a, name, public)
	if err != nil {
		return nil, err
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(token, seed)
}

const pushName = "push" + credsSuffix

// ensurePush makes the key file of the user that sends accounts to running servers. It does nothing if
// that user's signing seed is kept elsewhere.
func (o *operator) ensurePush() error {
	_, err := os.Stat(o.path(pushName))
	if _, missing := os.Stat(o.path(pushSigner + keySuffix)); err == nil || missing != nil {
		return nil
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return fmt.Errorf("make the key that sends accounts: %w", err)
	}
	defer pair.Wipe()
	file, err := o.user(pushSigner, System, pushSigner, pair)
	if err == nil {
		err = WriteNew(o.path(pushName), file)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the key that sends accounts: %w", err)
	}
	return nil
}
