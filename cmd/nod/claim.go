package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/nodbus/nod/connectors/agents/opencode"
	"github.com/nodbus/nod/schemas"
)

const (
	// keepClaims is how long the file of a claim is kept, which is longer than nod keeps a decision.
	keepClaims = 48 * time.Hour
	// claimRetry is the pause between attempts to lock a claim that another process holds.
	claimRetry = 200 * time.Millisecond
)

// The content of a claim's file. If it is claimed although no process has locked the file, the process
// with the claim was killed while it sent the reply.
const (
	claimed = "claimed"
	handled = "handled"
)

// claimReply claims the reply to a question for this process. Only one process of the data directory
// gets the claim. While another process sends the reply, claimReply waits.
func (e *env) claimReply(ctx context.Context, sessionID, pendingID string) (done func(), err error) {
	dir, err := e.dataDir()
	if err != nil {
		return nil, err
	}
	return claimIn(ctx, filepath.Join(dir, "replies"), schemas.Key(sessionID, pendingID))
}

func claimIn(ctx context.Context, dir, name string) (done func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("claim a reply: %w", err)
	}
	removeOldClaims(dir)
	path := filepath.Join(dir, name)
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, claimRetry); err != nil {
		return nil, fmt.Errorf("claim a reply: %w", err)
	}
	was, err := os.ReadFile(path)
	says := claimed
	if string(was) == claimed {
		says = handled
	}
	if err == nil && string(was) != handled {
		err = os.WriteFile(path, []byte(says), 0o600)
	}
	if err == nil && len(was) == 0 {
		return func() {
			_ = os.WriteFile(path, []byte(handled), 0o600) // if this write fails, another process reports that the reply may be lost
			_ = lock.Close()
		}, nil
	}
	_ = lock.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim a reply: %w", err)
	case string(was) == claimed:
		return nil, opencode.ErrClaimLost
	}
	return nil, opencode.ErrClaimTaken
}

// removeOldClaims removes the files of old claims. A file that stays does no harm.
func removeOldClaims(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, old := range entries {
		if info, err := old.Info(); err == nil && time.Since(info.ModTime()) > keepClaims {
			_ = os.Remove(filepath.Join(dir, old.Name()))
		}
	}
}
