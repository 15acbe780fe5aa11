package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
)

// No client can know how many servers there are. If every server that has replied so far has stored
// all accounts, PushAccounts still waits for pushQuiet, in case a further server replies.
const pushQuiet = time.Second

// PushAccounts sends accounts to the servers at a URL, with the key file at the path creds. It
// returns the names of the servers that have stored all accounts. A server closes the connections of
// revoked keys before it replies. A server that is cut off from the others gets the accounts from
// them later.
func PushAccounts(ctx context.Context, url, creds string, accounts []roles.AccountJWT, log *slog.Logger) (servers []string, err error) {
	conn, err := Connect(ctx, Options{URL: url, Creds: creds, Inbox: roles.PushInbox, Name: "nod keys", Log: log})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	replies, err := conn.nc.SubscribeSync(conn.nc.NewInbox())
	if err != nil {
		return nil, fmt.Errorf("send accounts: %w", err)
	}
	defer func() { _ = replies.Unsubscribe() }() // Close would wait 10 s for unread replies
	for _, a := range accounts {
		if err := conn.nc.PublishRequest(roles.ClaimsUpdate, replies.Subject, []byte(a.JWT)); err != nil {
			return nil, fmt.Errorf("send the account %s: %w", a.Account, err)
		}
	}
	stored := map[string]int{}
	for {
		wait := pushQuiet
		if servers, err = storedBy(stored, len(accounts), url); err != nil { // one of the servers has not yet replied about all accounts
			wait = hopTimeout
		}
		soon, cancel := context.WithTimeout(ctx, wait)
		msg, next := replies.NextMsgWithContext(soon)
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("send accounts: %w", ctx.Err())
		}
		if errors.Is(next, context.DeadlineExceeded) {
			return servers, err
		}
		if errors.Is(next, nats.ErrNoResponders) {
			return nil, errors.New("these servers keep no accounts: their configuration needs the resolver of nod keys config")
		}
		if next != nil {
			return nil, fmt.Errorf("send accounts: %w", next)
		}
		server, err := pushed(msg)
		if err != nil {
			return nil, err
		}
		stored[server]++
	}
}

// PushSigned signs the accounts with these names and sends both of their versions. The caller holds the
// keys' Lock.
func PushSigned(ctx context.Context, url string, keys *roles.Keys, names []roles.Account, log *slog.Logger) (servers []string, err error) {
	for accounts, err := range keys.AccountVersions(time.Now()) {
		if err != nil {
			return nil, err
		}
		if servers, err = PushAccounts(ctx, url, keys.PushCreds(), roles.AccountsOf(accounts, names...), log); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// storedBy returns the servers that have stored all accounts. The map stored has the number of accounts
// that each server has stored. storedBy fails if this map is empty or a server has stored only some
// accounts.
func storedBy(stored map[string]int, accounts int, url string) (servers []string, err error) {
	for server, n := range stored {
		if n != accounts {
			return nil, fmt.Errorf("the server %s has stored %d of %d accounts: send them again", server, n, accounts)
		}
		servers = append(servers, server)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("no server at %s replies that it has stored the accounts: send them again", Address(url))
	}
	slices.Sort(servers)
	return servers, nil
}

// pushed returns the name of the server that replied, or an error if that server has not stored the
// account.
func pushed(msg *nats.Msg) (server string, err error) {
	var reply struct {
		Server struct {
			Name string `json:"name"`
		} `json:"server"`
		Data  *struct{ Code int }                    `json:"data"`
		Error *struct{ Account, Description string } `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return "", fmt.Errorf("read the reply to an account: %w", err)
	}
	if reply.Error != nil || reply.Data == nil || reply.Data.Code != 200 {
		why := "its reply has no reason"
		if reply.Error != nil {
			why = reply.Error.Description
		}
		return "", fmt.Errorf("the server %s has not stored an account: %s", reply.Server.Name, why)
	}
	return reply.Server.Name, nil
}
