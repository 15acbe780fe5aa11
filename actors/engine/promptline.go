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
	// maxLines is the largest number of sessions for which the list of pending questions, oldest first, is
	// cached.
	maxLines = 256
	// verifiedFor is how long a cached promptLine decides about the turn of a question. After
	// that, the records of the first questions in the line are read again.
	verifiedFor = 2 * time.Second
)

// promptLines holds, for each session, the order in which phones and chats show its questions.
type promptLines struct {
	mu sync.Mutex
	by map[string]*promptLine
}

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

// promptLine caches a session's pending questions, the oldest first, so that each record of a long line
// is read once. Other engines show questions too, so an old cache is compared with the store. Which
// questions are shown is stored only in the records.
type promptLine struct {
	session string

	mu    sync.Mutex
	left  map[string]bool // keys of questions that have left the line and that the method drop must still remove; the value is true if phones and chats did not show the question
	busy  bool            // a goroutine processes the line, with all questions that leave the line in that time
	front sync.Mutex

	places   []linePlace
	verified time.Time
}

// linePlace is a question in the line; since is the time of its creation.
type linePlace struct {
	key   string
	since time.Time
	shown bool // phones and chats showed the question when its record was last read
}

// leave removes a question from the line, and shows the next questions, so that at most as many as
// the parameter limit says are shown at a time. If another goroutine is processing the line, leave
// only records the question, and that goroutine does the work. After an error, the waiting questions
// are shown when their timers fire.
func (l *promptLine) leave(ctx context.Context, e *effects, key string, held bool, limit int) error {
	if !l.begin(key, held) {
		return nil
	}
	over := false
	defer func() {
		if !over {
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

// showFirst reads the line from the store, and shows its first questions.
func (l *promptLine) showFirst(ctx context.Context, e *effects, limit int) error {
	l.front.Lock()
	err := l.list(ctx, e)
	l.front.Unlock()
	if err != nil {
		return err
	}
	return l.advance(ctx, e, limit)
}

// begin records that a question has left the line. It returns true if the caller must process the line,
// and false if another goroutine processes it.
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

// end reports whether the caller is done with the line, and then marks the line as free. If more
// questions have left the line, end returns false, and the caller must process them. After a failure
// (failed is true), end always returns true.
func (l *promptLine) end(failed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = !failed && len(l.left) > 0
	return !l.busy
}

// advance shows those of the first questions of the line that are still waiting. The parameter limit
// is the number of first questions.
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
				return nil // phones and chats show every question in the line
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
		if result == wasShown && !verified { // another engine has shown this question, so the cache may lack other changes of that engine
			if err := l.verify(ctx, e, limit); err != nil {
				return err
			}
			verified, i = true, 0
		}
	}
	return nil
}

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

// drop removes the questions that have left the line. The result stale means that another engine had
// shown a removed question, and may have ended further questions.
func (l *promptLine) drop() (stale bool) {
	l.mu.Lock()
	left := l.left
	l.left = nil
	l.mu.Unlock()
	shown := 0 // the number of removed questions that only another engine had shown
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

// list replaces the line by the session's pending questions. It does not read the records of questions
// that are cached as waiting.
func (l *promptLine) list(ctx context.Context, e *effects) error {
	keys, err := e.store.Records.Pending(ctx, l.session)
	if err != nil {
		return err
	}
	known := make(map[string]linePlace, len(l.places))
	for _, p := range l.places {
		known[p.key] = p
	}
	found := make([]linePlace, len(keys)) // the place stays empty if the question is not in line
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
