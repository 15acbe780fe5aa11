package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// ownersKept bounds the sessions and agents whose standing answers are cached.
const ownersKept = 16384

// answers is an immutable snapshot of the standing answers of one owner, which is a session or
// an agent.
type answers struct {
	byID  map[string]*standingEntry
	rules *policy.Answers  // the rules of all grants in force, without those in brief
	of    []*standingEntry // the grant of each rule, by the rule's index in rules
	brief []*standingEntry // the grants in force that were offered for one session only; a freeze may have ended them
	perms []*standingEntry // the grants in force that name permissions
	until time.Time        // the earliest expiry of these grants; zero if none of them expires
}

func collect(byID map[string]*standingEntry, now time.Time) *answers {
	a := &answers{byID: byID}
	var rules []schemas.RememberedRule
	for _, s := range byID {
		if !s.Live(now) || s.Denies() || limitedLater(&s.StandingAnswer) {
			continue
		}
		if end := s.ExpiresAt; !end.IsZero() && (a.until.IsZero() || end.Before(a.until)) {
			a.until = end
		}
		if s.SessionOnly != nil {
			a.brief = append(a.brief, s)
			continue
		}
		for _, rule := range s.Rules {
			rules, a.of = append(rules, rule), append(a.of, s)
		}
		if len(s.Permissions) > 0 {
			a.perms = append(a.perms, s)
		}
	}
	a.rules = policy.NewAnswers(rules)
	slices.SortFunc(a.perms, func(x, y *standingEntry) int { return strings.Compare(x.key, y.key) })
	return a
}

// sessionRules returns the rules of the grants in brief that no freeze has ended, and the grant of each rule. The
// parameter freezes is the present revision of the freezes.
func (a *answers) sessionRules(freezes uint64) (rules *policy.Answers, of []*standingEntry) {
	var all []schemas.RememberedRule
	for _, s := range a.brief {
		for _, rule := range s.Rules {
			if s.SessionOnly.Freezes == freezes {
				all, of = append(all, rule), append(of, s)
			}
		}
	}
	return policy.NewSessionAnswers(all), of
}

// standingCache caches the standing answers of sessions and agents. The broker reports a change a
// moment late, so the answers behind an allow are confirmed at the store before the allow counts.
type standingCache struct {
	mu     sync.Mutex
	owners map[string]*ownerAnswers
	unsure time.Time // the broker's reports of changes may be lost until this time
}

type ownerAnswers struct {
	reading sync.Mutex // locked while standing answers are read from the store

	// The mutex of the cache guards the following fields.
	now    *answers          // nil before the first reading from the store
	stale  map[string]uint64 // ids of answers to read again, with the revision that the broker has reported
	newest uint64            // the newest revision of the owner's answers in the cache
	until  time.Time         // the time from which on the answers are compared with the store before each use
}

// changed handles the broker's report of a written key. The answer under this key is read again, unless
// the cache has this revision.
func (s *standingCache) changed(key string, revision uint64) {
	owner, id, ok := splitStanding(key)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[owner]
	if o == nil {
		return
	}
	if o.now != nil {
		if known := o.now.byID[id]; known != nil && known.revision >= revision {
			return
		}
	}
	o.stale[id] = max(o.stale[id], revision)
}

// missed drops all cached answers, because the broker's reports of changes may have been lost. More
// reports may be lost during the time staleAfter from now. In this time, each cached answer is compared
// with the store before it is used.
func (s *standingCache) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners, s.unsure = nil, time.Now().Add(staleAfter)
}

func (s *standingCache) doubt(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.owners[owner]; o != nil {
		o.until, o.newest = time.Time{}, 0
	}
}

// replace caches a new snapshot of an owner's answers, unless the cached answers have changed since the
// snapshot was made.
func (s *standingCache) replace(owner string, a *answers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.owners[owner]; o != nil && o.now != nil && maps.Equal(o.now.byID, a.byID) {
		o.now = a
	}
}

func (s *standingCache) owner(owner string) *ownerAnswers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners == nil || len(s.owners) >= ownersKept {
		s.owners = map[string]*ownerAnswers{}
	}
	o := s.owners[owner]
	if o == nil {
		o = &ownerAnswers{stale: map[string]uint64{}}
		s.owners[owner] = o
	}
	return o
}

// stored caches an answer as it is in the store now; a nil entry means that the answer is gone.
func (s *standingCache) stored(owner, id string, entry *standingEntry, revision uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[owner]
	if o == nil || o.now == nil {
		return
	}
	if old := o.now.byID[id]; old != nil && old.revision > revision {
		return
	}
	byID := make(map[string]*standingEntry, len(o.now.byID)+1)
	for k, v := range o.now.byID {
		byID[k] = v
	}
	if delete(byID, id); entry != nil {
		byID[id] = entry
	}
	o.now, o.newest = collect(byID, now), max(o.newest, revision)
	if o.stale[id] <= revision {
		delete(o.stale, id)
	}
}

// current returns the cached answers and the ids of outdated answers. It also returns whether the other
// answers may be used without a comparison with the store.
func (s *standingCache) current(o *ownerAnswers) (now *answers, stale []string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range o.stale {
		stale = append(stale, id)
	}
	return o.now, stale, o.now != nil && time.Now().Before(o.until)
}

func (e *holdings) answersOf(ctx context.Context, owner string) (*answers, error) {
	a, err := e.cachedAnswers(ctx, owner)
	if err != nil || a.until.IsZero() || e.clock.now().Before(a.until) {
		return a, err
	}
	a = collect(a.byID, e.clock.now())
	e.standing.replace(owner, a)
	return a, nil
}

// cachedAnswers returns an owner's answers from the cache. It first reads missing and outdated answers
// from the store.
func (e *holdings) cachedAnswers(ctx context.Context, owner string) (*answers, error) {
	o := e.standing.owner(owner)
	if now, stale, fresh := e.standing.current(o); fresh && len(stale) == 0 {
		return now, nil
	}
	o.reading.Lock()
	defer o.reading.Unlock()
	now, stale, fresh := e.standing.current(o)
	if !fresh {
		return e.readAnswers(ctx, owner, o)
	}
	for _, id := range stale {
		if _, err := e.readAnswer(ctx, owner, id); err != nil {
			return nil, err
		}
	}
	if len(stale) > 0 {
		now, _, _ = e.standing.current(o)
	}
	return now, nil
}

// readAnswers reads all answers of an owner, unless the cache has the newest change of these answers.
func (e *holdings) readAnswers(ctx context.Context, owner string, o *ownerAnswers) (*answers, error) {
	until := time.Now().Add(knownFor)
	newest, err := e.store.Sessions.NewestOf(ctx, standingFilter(owner))
	if err != nil {
		return nil, err
	}
	e.standing.mu.Lock()
	same := o.now != nil && len(o.stale) == 0 && o.newest == newest && (newest != 0 || len(o.now.byID) == 0)
	e.standing.mu.Unlock()
	byID := map[string]*standingEntry{}
	if !same && newest != 0 {
		keys, err := e.store.Sessions.ListKeys(ctx, standingFilter(owner))
		if err != nil {
			return nil, err
		}
		if byID, newest, err = e.readEntries(ctx, keys); err != nil {
			return nil, err
		}
	}
	e.standing.mu.Lock()
	defer e.standing.mu.Unlock()
	if !same {
		o.now, o.newest = collect(byID, e.clock.now()), newest
		for id, revision := range o.stale {
			if known := byID[id]; known != nil && known.revision >= revision {
				delete(o.stale, id)
			}
		}
	}
	if o.until = until; time.Now().Before(e.standing.unsure) {
		o.until = time.Time{}
	}
	return o.now, nil
}
