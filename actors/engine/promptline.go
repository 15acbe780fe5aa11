package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// maxLines bounds the number of sessions whose lines are cached. A line that was dropped
	// from the cache is read again.
	maxLines = 256
	// verifiedFor is how long the first places of a cached line are used, to decide whether
	// a question has its turn, before their records are read again.
	verifiedFor = 2 * time.Second
)

// promptLines holds the prompt line of each session: the order in which the session's
// questions are shown on phones and chats.
type promptLines struct {
	mu sync.Mutex
	by map[string]*promptLine
}

// of returns the prompt line of a session.
func (ls *promptLines) of(session string) *promptLine {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.by[session]; l != nil {
		return l
	}
	if ls.by == nil || len(ls.by) >= maxLines {
		ls.by = map[string]*promptLine{}
	}
	ls.by[session] = &promptLine{session: session}
	return ls.by[session]
}

// promptLine caches a session's pending questions, the oldest first, so that each record
// of a long line is read once and not whenever a question ends. Other engines release
// questions too, so the first places are compared with the store when the cache may be
// outdated. The records alone, and not this cache, store which questions are shown.
type promptLine struct {
	session string

	mu    sync.Mutex
	left  map[string]bool // the questions that have left the line since drop was last called, by key; the value is true if the question was held back
	busy  bool            // a goroutine processes the line, and will process the questions in l.left too
	front sync.Mutex

	places   []linePlace // the questions in the line; guarded by front
	verified time.Time
}

// linePlace is one question in the line; since is the time of its creation.
type linePlace struct {
	key   string
	since time.Time
	shown bool // the question was not held back when its record was last read
}

// leave removes a question from the line, and shows the questions that move up to the first
// limit places. If another goroutine is processing the line, that goroutine does both. After
// an error, the timers of the questions that are held back show them.
func (l *promptLine) leave(ctx context.Context, e *effects, key string, held bool, limit int) error {
	if !l.begin(key, held) {
		return nil
	}
	over := false
	defer func() {
		if !over { // advance has failed
			l.end(true)
		}
	}()
	for !over {
		if err := l.advance(ctx, e, limit); err != nil {
			return err
		}
		over = l.end(false)
	}
	return nil
}

// showFirst reads the line from the store again, and shows its first questions.
func (l *promptLine) showFirst(ctx context.Context, e *effects, limit int) error {
	l.front.Lock()
	err := l.list(ctx, e)
	l.front.Unlock()
	if err != nil {
		return err
	}
	return l.advance(ctx, e, limit)
}

// begin notes that a question has left the line, and reports whether the caller must process
// the line. If it returns false, another goroutine processes the line.
func (l *promptLine) begin(key string, held bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		l.left = map[string]bool{}
	}
	l.left[key] = held
	begins := !l.busy
	l.busy = true
	return begins
}

// end marks the line as no longer processed and returns true. If more questions have left the
// line meanwhile and failed is false, it returns false, and the caller must process them.
func (l *promptLine) end(failed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = !failed && len(l.left) > 0
	return !l.busy
}

// advance shows every held-back question among the first limit questions of the line.
func (l *promptLine) advance(ctx context.Context, e *effects, limit int) error {
	l.front.Lock()
	defer l.front.Unlock()
	if stale := l.drop(); stale {
		if err := l.verify(ctx, e, limit); err != nil {
			return err
		}
	}
	listed, verified := false, false
	for i := 0; i < limit; {
		if i == len(l.places) {
			if listed {
				return nil // every question in the line is shown
			}
			if err := l.list(ctx, e); err != nil {
				return err
			}
			listed, verified, i = true, true, 0
			continue
		}
		if l.places[i].shown {
			i++
			continue
		}
		result, err := e.release(ctx, l.places[i].key)
		if err != nil {
			return err
		}
		if result == notInLine {
			l.places = slices.Delete(l.places, i, i+1)
			continue
		}
		l.places[i].shown = true
		if result == wasShown && !verified { // another engine has shown this question, so the cache may lack other changes by that engine too
			if err := l.verify(ctx, e, limit); err != nil {
				return err
			}
			verified, i = true, 0
		}
	}
	return nil
}

// among reports whether a question is one of the first limit questions of its line.
func (l *promptLine) among(ctx context.Context, e *effects, entry bus.Entry, limit int) (bool, error) {
	l.front.Lock()
	defer l.front.Unlock()
	if len(l.places) == 0 {
		if err := l.list(ctx, e); err != nil {
			return false, err
		}
	}
	if !slices.ContainsFunc(l.places, func(p linePlace) bool { return p.key == entry.Key }) {
		l.add(linePlace{key: entry.Key, since: createdAt(&entry.Record)})
	}
	if time.Since(l.verified) > verifiedFor {
		if err := l.verify(ctx, e, limit); err != nil {
			return false, err
		}
	}
	first := l.places[:min(limit, len(l.places))]
	return slices.ContainsFunc(first, func(p linePlace) bool { return p.key == entry.Key }), nil
}

// drop removes the questions that have left the line. stale reports whether another engine had
// shown one of them: that engine may have ended further questions.
func (l *promptLine) drop() (stale bool) {
	l.mu.Lock()
	left := l.left
	l.left = nil
	l.mu.Unlock()
	shown := 0 // number of questions that have left and that another engine had shown
	for _, held := range left {
		if !held {
			shown++
		}
	}
	l.places = slices.DeleteFunc(l.places, func(p linePlace) bool {
		held, gone := left[p.key]
		if gone && !held && p.shown {
			shown--
		}
		return gone
	})
	return shown > 0
}

// list replaces the line by the session's pending questions. It reads their records, except
// for the questions that are held back according to the cache.
func (l *promptLine) list(ctx context.Context, e *effects) error {
	keys, err := e.store.Records.Pending(ctx, l.session)
	if err != nil {
		return err
	}
	known := make(map[string]linePlace, len(l.places))
	for _, p := range l.places {
		known[p.key] = p
	}
	found := make([]linePlace, len(keys)) // an empty place belongs to a question that is not in line
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		if p, ok := known[keys[i]]; ok && !p.shown {
			found[i] = p
			return
		}
		entry, err := e.store.Records.Get(ctx, keys[i])
		if noRecord(err) {
			return
		}
		if errs[i] = err; err == nil && inLine(&entry.Record) {
			found[i] = linePlace{keys[i], createdAt(&entry.Record), !heldBack(&entry.Record)}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	l.places = slices.DeleteFunc(found, func(p linePlace) bool { return p.key == "" })
	slices.SortFunc(l.places, older)
	l.verified = time.Now()
	return nil
}

// verify reads the records of the first limit questions, and removes those that have ended.
func (l *promptLine) verify(ctx context.Context, e *effects, limit int) error {
	first := l.places[:min(limit, len(l.places))]
	gone := make([]bool, len(first))
	errs := make([]error, len(first))
	each(len(first), func(i int) {
		entry, err := e.store.Records.Get(ctx, first[i].key)
		if gone[i] = noRecord(err); gone[i] {
			return
		}
		errs[i] = err
		gone[i] = err == nil && !inLine(&entry.Record)
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	ended := map[string]bool{}
	for i, p := range first {
		ended[p.key] = gone[i]
	}
	l.places = slices.DeleteFunc(l.places, func(p linePlace) bool { return ended[p.key] })
	l.verified = time.Now()
	return nil
}

func (l *promptLine) add(p linePlace) {
	i, _ := slices.BinarySearchFunc(l.places, p, older)
	l.places = slices.Insert(l.places, i, p)
}

func older(a, b linePlace) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key, b.key)) }
