package peopletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// Person is a user who sees one prompt on a channel.
type Person interface {
	// Sees returns all text that the person can see now: the prompt, and the labels of buttons and keys.
	// Text outside the visible screen is not part of it.
	Sees() string
	// May returns the buttons or keys that the person can press now. Their labels differ.
	May() []Pressable
	// Press presses the button or key with this label. It returns when the channel has shown the
	// effect, or when nod has received the answer.
	Press(label string)
	// Said returns the answer that nod received, or nil.
	Said() *schemas.Answer
}

// Offering is a Person whose prompt offers the rules that the method Offered returns, instead of those of
// UnseenPrompt.
type Offering interface {
	Offered() []schemas.Reach
}

// Pressable is a button or a key. Chooses means that a press never sends an answer by itself, so the
// suite never tries the press as the last one.
type Pressable struct {
	Label   string
	Chooses bool
}

// Lasts says which kinds of lasting answers a channel offers.
type Lasts struct {
	Rules  bool // rules that nod stores
	Agents bool // options that the agent itself remembers
}

// The rules and the options with which a person can answer the prompt of UnseenPrompt for later calls.
var (
	lastingRules = []schemas.Reach{
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"git", "status"}, Project: "/workspace"}}},
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"git"}, Prefix: true, Project: "/workspace"}}, Widest: schemas.ScopeSession},
	}
	lastingOptions = []schemas.Option{
		{OptionID: "always-1", Name: "Bash(git status:*) until this session ends", Kind: schemas.AllowAlways},
		{OptionID: "never-1", Name: "Bash(git push:*) in your own settings", Kind: schemas.RejectAlways},
	}
)

// lastingRequest returns a request with options that the agent remembers.
func lastingRequest() schemas.Request {
	r := call("git status")
	r.Options = append(schemas.DefaultOptions(), lastingOptions...)
	return r
}

// UnseenPrompt returns a prompt that can also be answered for later calls. Each n gives a different
// prompt.
func UnseenPrompt(n int) schemas.Prompt {
	r := lastingRequest()
	r.Type, r.SessionID, r.PendingID, r.CreatedAt = schemas.TypeRequest, "session-1", fmt.Sprint("unseen-", n), time.Now().UTC()
	r.Project = "/workspace"
	digest, err := schemas.Digest(&r)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Revision: uint64(n + 1), Agent: "local", Request: r, Digest: digest,
		Risk: schemas.RiskMedium, Tier: schemas.TierDisconnected, Deadline: r.CreatedAt.Add(time.Hour), Remember: lastingRules, Waiters: 1, Waiting: 1,
	}
}

// NothingLastsUnseen requires that a person reads the effect of a lasting answer before giving it. It
// tries every sequence of at most depth presses on the controls of a channel.
//
// For each sequence, NothingLastsUnseen calls one of the functions in asks. The function shows a new
// prompt and returns its Person; its parameter n counts its calls. Different functions run at the same
// time, so each needs its own screen and its own prompts.
//
// Just before a press that gives a lasting answer, the screen must show its effect: the exact rule with
// its scope and its duration, or the agent's option with the warning that the agent remembers it. The
// test also fails if the channel offers a rule for a wider scope or a longer time than nod does, offers other kinds of lasting answers than those in offers, or does not
// offer one of these.
func NothingLastsUnseen(t *testing.T, depth int, offers Lasts, asks ...func(n int) Person) {
	w := walk{t: t, depth: depth, been: map[string]bool{}, found: map[string]bool{}}
	for _, each := range asks {
		w.screens = append(w.screens, &screen{asks: each})
	}
	w.all()
	want := []string{}
	if offers.Rules {
		want = append(want, "rule 0", "rule 1")
	}
	if offers.Agents {
		want = append(want, "always-1", "never-1")
	}
	for _, each := range want {
		require.True(t, w.found[each], "the channel offers no way to answer with %s; %d ways were tried, and found %v", each, w.count, w.found)
	}
	for each := range w.found {
		require.Contains(t, want, each, "the channel offers a lasting answer that its test does not declare")
	}
}

// walk tries the sequences of presses on one channel.
type walk struct {
	t       *testing.T
	screens []*screen
	depth   int
	been    map[string]bool // the contents of screens that were seen so far, with their controls
	mu      sync.Mutex      // guards count and found
	count   int
	found   map[string]bool
}

// screen shows one prompt after another by calling the function asks.
type screen struct {
	asks  func(n int) Person
	count int
}

// all tries the sequences of presses, beginning with the shortest. Sequences of the same length
// are tried on all screens at the same time.
func (w *walk) all() {
	for paths := [][]string{nil}; len(paths) > 0; {
		reached := make([]state, len(paths))
		var next atomic.Int64
		var walkers sync.WaitGroup
		for _, s := range w.screens {
			walkers.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(paths)) && !w.t.Failed(); i = next.Add(1) - 1 {
					reached[i] = w.step(s, paths[i])
				}
			})
		}
		walkers.Wait()
		if w.t.Failed() {
			w.t.FailNow() // FailNow in a goroutine of a screen has ended only that goroutine
		}
		paths = w.continues(paths, reached)
	}
}

// state is the content of a screen after a sequence of presses that gave no answer, with the controls
// that can be pressed next.
type state struct {
	shown string
	may   []Pressable
}

// step shows a new prompt and makes the presses in path. If these presses gave an answer, step checks the
// answer and returns an empty state. Otherwise it returns the state of the screen.
func (w *walk) step(s *screen, path []string) state {
	before, p := w.goes(s, path)
	if said := p.Said(); said != nil {
		rules := lastingRules
		if own, ok := p.(Offering); ok {
			rules = own.Offered()
		}
		w.check(path, before, said, rules)
		return state{}
	}
	may := p.May()
	return state{fmt.Sprint(p.Sees(), may), may}
}

// continues returns the sequences of presses to try next. Each sequence in paths is extended by each
// control that can be pressed after the sequence. If several sequences have led to the same state,
// continues extends only the first of them.
func (w *walk) continues(paths [][]string, reached []state) (on [][]string) {
	for i, path := range paths {
		if w.been[reached[i].shown] || len(path) == w.depth {
			continue
		}
		w.been[reached[i].shown] = true
		for _, next := range reached[i].may {
			if !next.Chooses || len(path)+1 < w.depth {
				on = append(on, append(slices.Clone(path), next.Label))
			}
		}
	}
	return on
}

// goes shows a new prompt and makes the presses in path. It returns the text that was on the screen
// before the last press.
func (w *walk) goes(s *screen, path []string) (before string, p Person) {
	w.t.Helper()
	p = s.asks(s.count)
	s.count++
	w.mu.Lock()
	w.count++
	w.mu.Unlock()
	for _, label := range path {
		before = p.Sees()
		require.Contains(w.t, labels(p.May()), label, "%q: the last one cannot be pressed in front of a second question", path)
		p.Press(label)
	}
	return before, p
}

func labels(all []Pressable) (out []string) {
	for _, each := range all {
		out = append(out, each.Label)
	}
	return out
}

// check requires that seen, the text on the screen before the last press, explained the lasting
// effect of the answer a.
func (w *walk) check(path []string, seen string, a *schemas.Answer, rules []schemas.Reach) {
	w.t.Helper()
	reads := func(one ...string) {
		w.t.Helper()
		all := plain(seen)
		require.True(w.t, slices.ContainsFunc(one, func(text string) bool { return strings.Contains(all, plain(text)) }),
			"after %q an answer lasts, and none of %q was on the screen:\n%s", path, one, seen)
	}
	for _, o := range lastingOptions {
		if a.OptionID == o.OptionID {
			w.finds(o.OptionID)
			reads(o.Name)
			reads("agent remembers", "agent will remember")
			reads("nod cannot say what it covers, nor revoke it")
		}
	}
	if cmp.Or(a.Scope, schemas.ScopeOnce) == schemas.ScopeOnce {
		return
	}
	w.finds(fmt.Sprint("rule ", a.Reach))
	lasts, err := rules[a.Reach].Lasts(a.Scope, a.ForSeconds)
	require.NoError(w.t, err, "after %q", path)
	require.Equal(w.t, a.ForSeconds, lasts, "after %q the answer would last shorter than the person read", path)
	reads(rules[a.Reach].String())
	if a.Scope == schemas.ScopeAgent {
		reads("this agent")
	} else {
		reads("in this session")
	}
	switch length := time.Duration(a.ForSeconds) * time.Second; length {
	case 0:
		reads("until it is revoked", "until you revoke it")
	case time.Hour:
		reads("for 60 minutes", "for 1 hour")
	default:
		reads("for " + schemas.FormatDuration(length))
	}
}

// finds records that the channel offers this kind of lasting answer.
func (w *walk) finds(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[kind] = true
}
