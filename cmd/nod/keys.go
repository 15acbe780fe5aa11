package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" default:"1" help:"List the keys of the data directory."`
	Add    keysAddCmd    `cmd:"" help:"Make a key."`
	Revoke keysRevokeCmd `cmd:"" help:"Remove a key, and close its connections."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key; the earlier one is accepted for a while too."`
	Config keysConfigCmd `cmd:"" help:"Print accounts and users to put into a NATS server's configuration."`
	Push   keysPushCmd   `cmd:"" help:"Send the accounts, with all revocations, to running NATS servers in operator mode."`
}

func (e *env) keys() (*roles.Keys, error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	return roles.OpenKeys(place.DataDir)
}

type keysListCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

// Run lists the keys with their public halves. It prints no secrets.
func (c *keysListCmd) Run(e *env) error {
	keys, err := e.keys()
	if err != nil {
		return err
	}
	users, err := keys.Users()
	if err != nil {
		return err
	}
	type row struct {
		Name      string `json:"name"`
		Account   string `json:"account"`
		Mode      string `json:"mode"`
		PublicKey string `json:"public_key"`
		File      string `json:"file"`
	}
	mode := "nkey"
	if keys.Operator() {
		mode = "jwt"
	}
	rows := make([]row, 0, len(users))
	for _, u := range users {
		rows = append(rows, row{u.String(), string(u.Account()), mode, u.PublicKey, keys.Path(u.ID)})
	}
	elsewhere, err := keys.Elsewhere()
	if err != nil {
		return err
	}
	for _, u := range elsewhere {
		rows = append(rows, row{u.String(), string(u.Account()), mode, u.PublicKey, ""})
	}
	if c.JSON {
		return e.printJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprintf(e.stdout, "%-22s %-8s %-5s %s\n", r.Name, r.Account, r.Mode, cmp.Or(r.File, "(not in this directory)"))
	}
	return nil
}

type keysAddCmd struct {
	Name string `arg:"" help:"The role and name: agent-NAME, connector-NAME, web, observer or token-service."`
	operatorFlag
}

// Run creates a key. If a nod runs on this data directory, it accepts the key before Run returns.
func (c *keysAddCmd) Run(e *env) error {
	id, err := roles.ParseID(c.Name)
	if err != nil {
		return err
	}
	keys, unlock, err := e.lockedKeys(c.operatorFlag)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.checkJobs(keys, id); err != nil {
		return err
	}
	_, err = keys.Add(id)
	if errors.Is(err, fs.ErrExist) {
		return keyElsewhere(keys, id, fmt.Errorf("%s has a key already, %s: nod keys rotate %s replaces it, nod keys revoke %s takes it away", id, keys.Path(id), id, id))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, keys.Path(id))
	if id.Role == roles.Observer {
		flag := "--nkey"
		if keys.Operator() {
			flag = "--creds"
		}
		fmt.Fprintf(e.stderr, "with the nats command: nats %s %s --inbox-prefix %s …\n", flag, keys.Path(id), id.InboxPrefix())
	}
	if id.Role == roles.TokenService {
		return e.tokenServiceInForce(keys)
	}
	return e.keysInForce(keys, func() (bool, error) { return e.accepts(id, keys.Path(id)) })
}

// keyElsewhere returns err unchanged, unless the file of the key was moved. Then it returns an error that
// says what to do.
func keyElsewhere(keys *roles.Keys, id roles.ID, err error) error {
	elsewhere, listed := keys.Elsewhere()
	if listed != nil {
		return errors.Join(err, listed)
	}
	if _, stat := os.Stat(keys.Path(id)); stat == nil || !slices.ContainsFunc(elsewhere, func(u roles.User) bool { return u.ID == id }) {
		return err
	}
	return fmt.Errorf("the key of %s is not in this directory: put it back to %s, or take it away with nod keys revoke %s and make another with nod keys add %s", id, keys.Path(id), id, id)
}

type keysRevokeCmd struct {
	Name string `arg:"" help:"The key, as nod keys list names it."`
}

// Run removes a key. Before Run returns, the nod that runs on this data directory closes the key's
// connections.
func (c *keysRevokeCmd) Run(e *env) error {
	id, err := roles.ParseID(c.Name)
	if err != nil {
		return err
	}
	keys, unlock, err := e.lockedKeys(operatorFlag{})
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(keys.Path(id)); err == nil && slices.Contains(roles.First(), id) && id.Role != roles.Agent {
		return fmt.Errorf("nod itself needs the key %s: nod keys rotate %s replaces it", id, id)
	}
	old, err := os.CreateTemp("", "nod-revoked-*") // a copy of the key, to check that the server refuses it
	if err != nil {
		return fmt.Errorf("copy the key, to see that it is refused: %w", err)
	}
	defer os.Remove(old.Name())
	defer old.Close()
	seed, err := os.ReadFile(keys.Path(id))
	if err == nil {
		_, err = old.Write(seed)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the key, to see that it is refused: %w", err)
	}
	if err := keys.Revoke(id); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no key here: nod keys list names all", id)
	} else if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s is revoked\n", id)
	if embed.UsesKey(id) {
		fmt.Fprintln(e.stderr, "a part of nod up that uses this key is cut off until nod up is started again, which makes a new key")
	}
	return e.revocationInForce(keys, id, func() (bool, error) {
		if len(seed) == 0 { // an earlier run has removed the key
			return true, nil
		}
		accepted, err := e.accepts(id, old.Name())
		return !accepted, err
	})
}

type keysRotateCmd struct {
	Name    string        `arg:"" help:"The key, as nod keys list names it."`
	Signer  bool          `name:"signer" help:"In operator mode: replace the signing key of a role, such as agent, because its seed was stolen."`
	Overlap time.Duration `default:"1h" placeholder:"D" help:"How long the earlier key is accepted too (1h)."`
}

// Run replaces a key by a new one. Before Run returns, the nod that runs on this data directory accepts
// both keys; after the overlap it accepts only the new key.
func (c *keysRotateCmd) Run(e *env) error {
	if c.Signer {
		return e.rotateSigner(c.Name)
	}
	id, err := roles.ParseID(c.Name)
	if err != nil {
		return err
	}
	if c.Overlap < 0 {
		return fmt.Errorf("the overlap %s is negative: use 0 to refuse the earlier key at once", c.Overlap)
	}
	keys, unlock, err := e.lockedKeys(operatorFlag{})
	if err != nil {
		return err
	}
	defer unlock()
	_, until, err := keys.Rotate(id, c.Overlap)
	if errors.Is(err, fs.ErrNotExist) {
		return keyElsewhere(keys, id, fmt.Errorf("%s has no key here: nod keys add %s makes one", id, id))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, keys.Path(id))
	if c.Overlap > 0 && keys.Operator() {
		fmt.Fprintf(e.stderr, "the earlier key of %s is accepted until you run nod keys push after %s\n", id, until.Local().Format(time.DateTime))
	} else if c.Overlap > 0 {
		fmt.Fprintf(e.stderr, "the earlier key of %s is accepted until %s; start the programs that use it again before then\n", id, until.Local().Format(time.DateTime))
	}
	if embed.UsesKey(id) {
		fmt.Fprintln(e.stderr, "nod's own parts use the earlier key until nod up is started again; it is accepted until then")
	}
	follows := func() (bool, error) {
		if id.Role == roles.EngineStore { // the new key cannot be checked, because nod up may admit this role only from its own process
			return true, nil
		}
		return e.accepts(id, keys.Path(id))
	}
	if c.Overlap == 0 {
		return e.revocationInForce(keys, id, follows)
	}
	return e.keysInForce(keys, follows)
}

// revocationInForce waits until the servers refuse a revoked key.
func (e *env) revocationInForce(keys *roles.Keys, id roles.ID, follows func() (bool, error)) error {
	if keys.Operator() {
		return e.accountInForce(keys, id, follows)
	}
	return e.keysInForce(keys, follows)
}

// keysInForce waits until the nod that runs on this data directory follows a change of its keys. If nod
// does not run the servers, keysInForce prints what to do there.
func (e *env) keysInForce(keys *roles.Keys, follows func() (bool, error)) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if keys.Operator() { // these servers accept every user whose key a signing key of the accounts has signed, so they need no change
		if place.URL == "" {
			return nil
		}
		return e.await(follows, "the servers at "+bus.Address(place.URL))
	}
	_, err = bus.ReadRun(place.DataDir)
	if errors.Is(err, bus.ErrNotRunning) {
		fmt.Fprintf(e.stderr, "no nod runs on %s: it follows at its next start. For your own NATS servers, put the text of `nod keys config --data %s` into the configuration of each one, and reload it with `nats-server --signal reload`: only then a new key is accepted, and a removed one refused and its connections closed\n",
			place.DataDir, place.DataDir)
		return nil
	}
	if err != nil {
		return err
	}
	return e.await(follows, "the nod that runs on "+place.DataDir)
}

// await waits until a server follows a change of the keys.
func (e *env) await(follows func() (bool, error), who string) error {
	ctx, cancel := context.WithTimeout(e.ctx, 30*time.Second)
	defer cancel()
	for {
		done, err := follows()
		if done {
			fmt.Fprintln(e.stderr, "nod follows: this is in force")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the keys have changed, but %s does not follow: see its log, or start it again (%w)", who, cmp.Or(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// accepts reports whether the nod that runs on this data directory accepts a key.
func (e *env) accepts(id roles.ID, creds string) (bool, error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return false, err
	}
	place.Creds, place.TokenFile = creds, ""
	ctx, cancel := context.WithTimeout(e.ctx, 5*time.Second)
	defer cancel()
	conn, err := bus.Join(ctx, place, id, e.log)
	if errors.Is(err, bus.ErrRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	conn.Close()
	return true, nil
}

type keysConfigCmd struct {
	operatorFlag
	ResolverDir string `name:"resolver-dir" default:"/var/lib/nod-nats/accounts" placeholder:"DIR" help:"In operator mode: the directory in which each server keeps the accounts (/var/lib/nod-nats/accounts)."`
	NSC         string `name:"nsc" placeholder:"DIR" type:"path" help:"In operator mode: write the accounts to this directory for another operator to sign, and print the nsc commands that do it."`
}

// Run prints the NATS accounts and users for this data directory's keys, in the syntax of a
// nats-server configuration.
func (c *keysConfigCmd) Run(e *env) error {
	keys, unlock, err := e.lockedKeys(c.operatorFlag)
	if err != nil {
		return err
	}
	defer unlock()
	if c.NSC != "" && !keys.Operator() {
		return fmt.Errorf("%s has plain keys, which no operator signs: name an empty directory with --data, and add --jwt", keys.Dir())
	}
	if err := keys.Ensure(roles.First()...); err != nil {
		return err
	}
	if err := e.checkJobs(keys); err != nil {
		return err
	}
	if keys.Operator() {
		return c.operatorConfig(e, keys)
	}
	users, err := keys.Users()
	if err != nil {
		return err
	}
	earlier, err := keys.Earlier(time.Now())
	if err != nil {
		return err
	}
	for _, u := range earlier {
		fmt.Fprintf(e.stderr, "the earlier key of %s is in the text until %s: print it anew after that\n", u.ID, u.Until.Local().Format(time.DateTime))
	}
	_, err = fmt.Fprint(e.stdout, roles.Config{Users: append(users, earlier...), Admitting: roles.TokenServices(users)}.String())
	return err
}
