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
	// maxLines is how many sessions' lines are kept; any may be forgotten.
	maxLines = 256
	// verifiedFor is how long it is believed who is first in a line that only questions
	// ask about that wait: who leaves it says so.
	verifiedFor = 2 * time.Second
)

// promptLines are the lines of sessions whose questions go to phones and chats.
type promptLines struct {
	mu sync.Mutex
	by map[string]*promptLine
}

// of is the line of a session.
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

// promptLine is what this engine remembers of one session's open questions, the oldest
// first, so that each record of a long line is read once, and not for each question
// that ends. Another engine releases as well: a memory that turns out to be old is
// verified, and a forgotten one is read again. Who is shown is in the records alone.
type promptLine struct {
	session string

	mu    sync.Mutex
	left  map[string]bool // who has left since the line was last looked at; true: held back
	busy  bool            // somebody looks, and sees to these as well
	front sync.Mutex

	places   []linePlace // guarded by front
	verified time.Time
}

// linePlace is one question's.
type linePlace struct {
	key   string
	since time.Time
	shown bool // it was not held back when it was last looked at
}

// leave takes a question out of the line and has those shown that come to the front. If
// somebody is at that already, it is left to them: should they not get to it, what is
// held back has a timer of its own.
func (l *promptLine) leave(ctx context.Context, e *Engine, key string, held bool, limit int) error {
	if !l.begin(key, held) {
		return nil
	}
	over := false
	defer func() {
		if !over { // it failed
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

// showFirst has the first of the line shown, by the records and not by what this engine
// remembers of them.
func (l *promptLine) showFirst(ctx context.Context, e *Engine, limit int) error {
	l.front.Lock()
	err := l.list(ctx, e)
	l.front.Unlock()
	if err != nil {
		return err
	}
	return l.advance(ctx, e, limit)
}

// begin notes who leaves, and reports whether the caller is to look at the line.
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

// end ends the looking, unless more have left meanwhile, and reports whether it is over.
func (l *promptLine) end(failed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = !failed && len(l.left) > 0
	return !l.busy
}

// advance releases what is held back among the first of the line.
func (l *promptLine) advance(ctx context.Context, e *Engine, limit int) error {
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
				return nil // all are shown
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
		if result == wasShown && !verified { // another engine has released it, because of one that has ended there
			if err := l.verify(ctx, e, limit); err != nil {
				return err
			}
			verified, i = true, 0
		}
	}
	return nil
}

// among reports whether a question is among the first of its line.
func (l *promptLine) among(ctx context.Context, e *Engine, entry bus.Entry, limit int) (bool, error) {
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

// drop takes out those who have left. stale: one of them was shown and is not known to
// be, so that others may have left on another engine.
func (l *promptLine) drop() (stale bool) {
	l.mu.Lock()
	left := l.left
	l.left = nil
	l.mu.Unlock()
	shown := 0 // of those who have left
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

// list reads who is in the line, and the records of those who are new to this engine.
func (l *promptLine) list(ctx context.Context, e *Engine) error {
	keys, err := e.store.Records.Pending(ctx, l.session)
	if err != nil {
		return err
	}
	known := make(map[string]linePlace, len(l.places))
	for _, p := range l.places {
		known[p.key] = p
	}
	found := make([]linePlace, len(keys)) // without a key: not in line
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

// verify takes out who is no more in the line, as far as its first are concerned.
func (l *promptLine) verify(ctx context.Context, e *Engine, limit int) error {
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
