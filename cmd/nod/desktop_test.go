package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

// notifySend creates a fake notify-send in PATH, which appends its arguments to a file. It returns the
// file's path.
func notifySend(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	testprogram.Write(t, filepath.Join(dir, "notify-send"), "#!/bin/sh\necho \"$@\" >> "+out+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	return out
}

func waits(id string, tier schemas.Tier) schemas.Prompt {
	return schemas.Prompt{SessionID: "s", PendingID: id, Risk: schemas.RiskHigh, Tier: tier, Request: schemas.Request{
		AgentName: "<b>Claude</b>", Project: "/src/app", Title: "secret", ActionDetails: []byte(`{"command":"cat secret"}`),
	}}
}

// Each request gets one notification, which shows no payload. A request that has ended gets no
// notification. If the user is at the session of a request, the notification comes later.
func TestNotificationsOnTheDesktop(t *testing.T) {
	out := notifySend(t)
	d := newDesktop(slog.New(slog.DiscardHandler), func(p *schemas.Prompt) time.Duration {
		if p.Tier == schemas.TierConnected {
			return time.Hour
		}
		return 0
	})
	require.NotNil(t, d)
	d.window = time.Hour // the test flushes by itself
	isDue := func(n int) func() bool {
		return func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.due) == n }
	}
	d.show(waits("at-the-session", schemas.TierConnected))
	d.show(waits("one", schemas.TierDisconnected))
	d.show(waits("one", schemas.TierDisconnected))
	require.Eventually(t, isDue(1), 30*time.Second, time.Millisecond)
	d.flush()
	said := func() string { text, _ := os.ReadFile(out); return string(text) } // there is no file before the first notification
	require.Equal(t, "--app-name=nod -- nod: high risk · <b>Claude</b> · app\n", said())

	d.show(waits("one", schemas.TierDisconnected))
	d.show(waits("two", schemas.TierDisconnected))
	d.show(waits("three", schemas.TierDisconnected))
	ended := waits("three", schemas.TierDisconnected)
	d.show(ended)
	require.Eventually(t, isDue(2), 30*time.Second, time.Millisecond)
	ended.Decision = &schemas.Decision{}
	d.show(ended)
	d.show(waits("four", schemas.TierDisconnected))
	require.Eventually(t, isDue(3), 30*time.Second, time.Millisecond)
	d.flush()
	require.Equal(t, "--app-name=nod -- nod: high risk · <b>Claude</b> · app\n--app-name=nod -- nod: 2 requests wait\n", said())
}

// nod gathers requests for one notification only for a limited time, even if no further request comes.
func TestANotificationNeedsNoFurtherRequest(t *testing.T) {
	out := notifySend(t)
	d := newDesktop(slog.New(slog.DiscardHandler), func(*schemas.Prompt) time.Duration { return 0 })
	d.window = time.Millisecond
	d.show(waits("one", schemas.TierDisconnected))
	require.Eventually(t, func() bool { text, _ := os.ReadFile(out); return len(text) > 0 }, 30*time.Second, 5*time.Millisecond)
}

// Without a D-Bus session, or without notify-send, nod shows no notifications on the desktop.
func TestNoDesktop(t *testing.T) {
	notifySend(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	require.Nil(t, newDesktop(slog.New(slog.DiscardHandler), nil))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	t.Setenv("PATH", t.TempDir())
	require.Nil(t, newDesktop(slog.New(slog.DiscardHandler), nil))
}
