package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The time limits of notifications on the desktop.
const (
	desktopWindow  = 500 * time.Millisecond // requests that arrive within this time get one notification
	desktopTimeout = 5 * time.Second        // the longest run of notify-send
)

// A desktop shows notifications of requests on this machine's Linux desktop. It runs notify-send, which
// sends them over D-Bus. A failed notification is only logged, because nothing depends on
// notifications.
type desktop struct {
	program string
	// delay returns how long a request waits for its notification. It may take as long as a call to an
	// engine.
	delay  func(*schemas.Prompt) time.Duration
	window time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	waiting map[string]*schemas.Prompt // pending requests by key; nil for a request that has had its notification
	due     []string                   // keys of the requests in the next notification
}

// newDesktop returns nil if this machine has no D-Bus session or no notify-send.
func newDesktop(log *slog.Logger, delay func(*schemas.Prompt) time.Duration) *desktop {
	if runtime.GOOS != "linux" || !hasSessionBus() {
		return nil
	}
	program, err := exec.LookPath("notify-send")
	if err != nil {
		return nil
	}
	return &desktop{program: program, delay: delay, window: desktopWindow, log: log, waiting: map[string]*schemas.Prompt{}}
}

func hasSessionBus() bool {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return dir != "" && err == nil
}

// show takes in a version of a request. It shows one notification for each request, after the delay,
// unless the request has ended.
func (d *desktop) show(p schemas.Prompt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := p.Key()
	if p.Decision != nil {
		delete(d.waiting, key)
		return
	}
	if _, known := d.waiting[key]; known {
		return
	}
	d.waiting[key] = &p
	go func() { time.AfterFunc(d.delay(&p), func() { d.isDue(key) }) }()
}

func (d *desktop) isDue(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.due = append(d.due, key); len(d.due) == 1 {
		time.AfterFunc(d.window, d.flush)
	}
}

// flush shows one notification for the due requests that still wait.
func (d *desktop) flush() {
	d.mu.Lock()
	var all []schemas.Prompt
	for _, key := range d.due {
		if p := d.waiting[key]; p != nil {
			all = append(all, *p)
			d.waiting[key] = nil
		}
	}
	d.due = nil
	d.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), desktopTimeout)
	defer cancel()
	// The text is the summary of the notification, which desktops show as plain text. In a body they
	// would interpret markup.
	if err := exec.CommandContext(ctx, d.program, "--app-name=nod", "--", people.RingText(all...)).Run(); err != nil {
		d.log.Debug("notify-send showed no notification", "error", err)
	}
}
