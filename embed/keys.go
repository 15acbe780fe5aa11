package embed

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nodbus/nod/bus/roles"
)

// keysEvery is the interval at which a running nod looks for changed keys. A server therefore refuses
// a revoked key after at most this time.
const keysEvery = 200 * time.Millisecond

// users returns the users that the server accepts: all keys of the data directory, replaced keys whose
// overlap has not passed, and the keys that this nod's own parts have read at the start.
func (n *Nod) users(now time.Time) ([]roles.User, error) {
	users, err := n.keys.Users()
	if err != nil {
		return nil, err
	}
	earlier, err := n.keys.Earlier(now)
	if err != nil {
		return nil, err
	}
	known, present := map[string]bool{}, map[roles.ID]bool{}
	for _, u := range users {
		known[u.PublicKey], present[u.ID] = true, true
	}
	for _, u := range append(earlier, n.own...) {
		if !known[u.PublicKey] && present[u.ID] {
			users, known[u.PublicKey] = append(users, u), true
		}
	}
	return users, nil
}

// UsesKey reports whether a part of nod up connects with the key of this ID. Even if such a key is
// replaced, the server accepts it until nod up is started again.
func UsesKey(id roles.ID) bool {
	switch id.Role {
	case roles.Agent, roles.Observer, roles.Owner, roles.OwnerStore, roles.TokenService:
		return false
	}
	return true
}

// followKeys looks for changed keys until ctx ends, and gives the server the users of these keys. If
// a key is unusable, the server keeps its present users, and the log names the fault.
func (n *Nod) followKeys(ctx context.Context) {
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()
	reported := ""
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		state := n.keysState(now)
		if state == last {
			continue
		}
		users, err := n.users(now)
		if err == nil {
			err = n.server.SetUsers(users)
		}
		if err == nil {
			last, reported = state, ""
			continue
		}
		if text := err.Error(); text != reported {
			n.opts.Log.Error("the keys have changed, and the server still uses the earlier ones", "error", err)
			reported = text
		}
	}
}

// keysState describes the files of the keys. The description changes if a key is added, replaced or
// removed, or if the overlap of an earlier key ends.
func (n *Nod) keysState(now time.Time) string {
	var b strings.Builder
	entries, err := os.ReadDir(n.keys.Dir())
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // the file has just been removed
		}
		fmt.Fprintln(&b, e.Name(), info.Mode(), info.Size(), info.ModTime().UnixNano())
	}
	earlier, _ := n.keys.Earlier(now) // the caller notices the error when it reads the keys, and reports it
	fmt.Fprintln(&b, len(earlier))
	return b.String()
}
