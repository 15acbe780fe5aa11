package engine

import "sync"

// maxAsked bounds the ids in an askedLog.
const maxAsked = 100_000

// askedLog remembers the pending questions that this engine has logged, so that their decisions need no
// second write to the log. A forgotten id costs only another write, which the log drops.
type askedLog struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

func (l *askedLog) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil || len(l.ids) >= maxAsked {
		l.ids = map[string]struct{}{}
	}
	l.ids[id] = struct{}{}
}

// take removes an id, and reports whether the id was remembered.
func (l *askedLog) take(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.ids[id]
	delete(l.ids, id)
	return there
}
