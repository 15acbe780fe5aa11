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

// pushQuiet is how long PushAccounts waits for the reply of a further server: no client can know how
// many there are.
const pushQuiet = time.Second

// PushAccounts sends accounts to the servers at url, with the key file creds, and returns the names of the
// servers that have stored all of them. A server closes the connections of revoked keys before it replies.
// A server that is not connected to the others gets the accounts from them later.
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
	for _, a := range accounts {
		if err := conn.nc.PublishRequest(roles.ClaimsUpdate, replies.Subject, []byte(a.JWT)); err != nil {
			return nil, fmt.Errorf("send the account %s: %w", a.Account, err)
		}
	}
	stored := map[string]int{}
	for wait := hopTimeout; ; wait = pushQuiet {
		soon, cancel := context.WithTimeout(ctx, wait)
		msg, err := replies.NextMsgWithContext(soon)
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("send accounts: %w", ctx.Err())
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return storedBy(stored, len(accounts), url)
		}
		if err != nil {
			return nil, fmt.Errorf("send accounts: %w", err)
		}
		server, err := pushed(msg)
		if err != nil {
			return nil, err
		}
		stored[server]++
	}
}

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

// pushed reads a server's reply.
func pushed(msg *nats.Msg) (server string, err error) {
	if msg.Header.Get("Status") == "503" {
		return "", errors.New("these servers keep no accounts: their configuration needs the resolver of nod keys config")
	}
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
