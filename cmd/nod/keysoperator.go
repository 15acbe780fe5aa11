package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// operatorFlag is the flag of the commands that may create a key directory.
type operatorFlag struct {
	JWT bool `name:"jwt" help:"Make the keys for NATS servers in operator mode. The directory remembers it."`
}

// lockedKeys opens the keys for a change. The caller must call unlock.
func (e *env) lockedKeys(o operatorFlag) (keys *roles.Keys, unlock func(), err error) {
	if keys, err = e.keys(); err != nil {
		return nil, nil, err
	}
	if o.JWT {
		if err := keys.ForOperator(); err != nil {
			return nil, nil, err
		}
	}
	unlock, err = keys.Lock()
	return keys, unlock, err
}

// accountInForce sends the account of a role to the servers, and waits until they follow the change. Without
// the servers' address it prints what to do.
func (e *env) accountInForce(keys *roles.Keys, id roles.ID, follows func() (bool, error)) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL == "" {
		fmt.Fprintf(e.stderr, "your servers do not know this yet: run `nod keys push --data %s --nats-url URL`; if another operator signs your accounts, let it run the commands of `nod keys config --data %s --nsc DIR`. Only then a key that is revoked or replaced is refused and its connections closed\n",
			place.DataDir, place.DataDir)
		return nil
	}
	changed := []roles.Account{id.Account()}
	if id.Role == roles.TokenService { // the users that a token service signs are in another account
		changed = append(changed, roles.AgentID("").Account())
	}
	if err := e.push(keys, changed); err != nil {
		return err
	}
	return e.await(follows, "the servers at "+bus.Address(place.URL))
}

// tokenServiceInForce prints how to make the servers ask a new token service.
func (e *env) tokenServiceInForce(keys *roles.Keys) error {
	if !keys.Operator() {
		fmt.Fprintln(e.stderr, "a NATS server learns of a token service only at its start: start nod up again, or your own servers with the new text of nod keys config, one after another")
		return nil
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "give each server the new text of `nod keys config --data %s`, and reload it with `nats-server --signal reload`; then run nod keys push\n", place.DataDir)
	return nil
}

// pushAll sends all accounts to the servers, except the servers' own account, which is in their
// configuration.
func (e *env) pushAll(keys *roles.Keys) error {
	return e.push(keys, roles.Pushed())
}

// push sends accounts to the running servers.
func (e *env) push(keys *roles.Keys, accounts []roles.Account) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL == "" {
		return errors.New("name the servers to push to with --nats-url or NOD_URL")
	}
	servers, err := bus.PushSigned(e.ctx, place.URL, keys, accounts, e.log)
	if errors.Is(err, bus.ErrRefused) {
		return fmt.Errorf("the servers at %s do not trust this directory's operator: give them the text of nod keys config, or let their own operator sign the accounts (nod keys config --nsc DIR)", bus.Address(place.URL))
	}
	if err != nil {
		return err
	}
	names := make([]string, len(accounts))
	for i, a := range accounts {
		names[i] = string(a)
	}
	fmt.Fprintf(e.stderr, "%s: stored by %s\n", strings.Join(names, ", "), strings.Join(servers, ", "))
	return nil
}

// rotateSigner replaces a signing key. If the servers' address is known, it also sends them the accounts.
func (e *env) rotateSigner(name string) error {
	keys, unlock, err := e.lockedKeys(operatorFlag{})
	if err != nil {
		return err
	}
	defer unlock()
	elsewhere, err := keys.RotateSigner(name)
	if err != nil {
		return err
	}
	for _, u := range elsewhere {
		fmt.Fprintf(e.stderr, "a key of %s is not in this directory and has to be replaced: nod keys revoke %s, then nod keys add %s\n", u.ID, u.ID, u.ID)
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if name == "push" { // this signing key is that of the servers' own account, which is not pushed
		fmt.Fprintln(e.stderr, "your servers do not know this yet: give each one the new text of nod keys config, and start it again")
		return nil
	}
	if place.URL == "" {
		fmt.Fprintln(e.stderr, "your servers do not know this yet: run nod keys push, or let the operator that signs your accounts run the commands of nod keys config --nsc DIR")
		return nil
	}
	return e.pushAll(keys)
}

type keysPushCmd struct{}

// Run sends the accounts to the running servers. The accounts contain the revocations of all revoked
// keys, and of all replaced keys whose overlap has passed.
func (keysPushCmd) Run(e *env) error {
	keys, unlock, err := e.lockedKeys(operatorFlag{})
	if err != nil {
		return err
	}
	defer unlock()
	if !keys.Operator() {
		return fmt.Errorf("%s has plain keys, which are in the servers' configuration: nod keys config", keys.Dir())
	}
	return e.pushAll(keys)
}

// operatorConfig prints the configuration of servers in operator mode. With --nsc it prepares the
// accounts for another operator to sign.
func (c *keysConfigCmd) operatorConfig(e *env, keys *roles.Keys) error {
	accounts, err := keys.AccountJWTs(time.Now())
	if err != nil {
		return err
	}
	if c.NSC != "" {
		return c.forNSC(e, keys, roles.AccountsOf(accounts, roles.Pushed()...))
	}
	_, err = fmt.Fprint(e.stdout, keys.OperatorConfig(accounts, c.ResolverDir))
	return err
}

// forNSC writes the accounts to files, and prints the commands with which another operator signs and
// publishes them.
func (c *keysConfigCmd) forNSC(e *env, keys *roles.Keys, accounts []roles.AccountJWT) error {
	if err := os.MkdirAll(c.NSC, 0o755); err != nil {
		return fmt.Errorf("write the accounts: %w", err)
	}
	for _, a := range accounts {
		file := filepath.Join(c.NSC, a.Name()+".jwt")
		if err := os.WriteFile(file, []byte(a.JWT+"\n"), 0o644); err != nil {
			return fmt.Errorf("write the account %s: %w", a.Account, err)
		}
		fmt.Fprintf(e.stdout, "nsc import account --force --overwrite --file %s\n", shellQuoted(file))
	}
	for _, a := range accounts {
		fmt.Fprintf(e.stdout, "nsc push --account %s\n", a.Name())
	}
	if lines := keys.AdmitConfig(); lines != "" {
		fmt.Fprintf(e.stderr, "for the token service, each server's configuration also needs these lines, and a reload:\n%s", lines)
	}
	return nil
}
