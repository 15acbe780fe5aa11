package peopletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// Person is somebody before one question on a channel, from the moment at which it is
// shown to them.
type Person interface {
	// Sees is all that they can read now: the question, and what stands on each thing
	// that can be pressed. What is beyond the screen's edge is not in it.
	Sees() string
	// May is what they can press now, no two alike.
	May() []Pressable
	// Press presses one of those, and returns when the channel has shown what comes
	// of it, or nod has the answer.
	Press(label string)
	// Said is the answer that nod got, or nil.
	Said() *schemas.Answer
}

// Offering is a Person whose question offers rules of its own.
type Offering interface {
	Offered() []schemas.Reach
}

// Pressable is something that can be pressed. What only chooses answers nothing by
// itself: to press it last is not tried.
type Pressable struct {
	Label   string
	Chooses bool
}

// Lasts says what an answer on a channel may leave behind.
type Lasts struct {
	Rules  bool // a rule of nod's
	Agents bool // what the agent remembers by itself
}

// Its question offers two rules of nod's, and answers that the agent remembers.
var (
	unseenRules = []schemas.Reach{
		{Rules: []schemas.Always{{Tool: "Bash", Argv: []string{"git", "status"}, Project: "/workspace"}}},
		{Rules: []schemas.Always{{Tool: "Bash", Argv: []string{"git"}, Prefix: true, Project: "/workspace"}}},
	}
	unseenOptions = []schemas.Option{
		{OptionID: "always-1", Name: "Bash(git status:*) until this session ends", Kind: schemas.AllowAlways},
		{OptionID: "never-1", Name: "Bash(git push:*) in your own settings", Kind: schemas.RejectAlways},
	}
)

// unseenRequest is what is asked.
func unseenRequest() schemas.Request {
	r := call("git status")
	r.Options = append(schemas.DefaultOptions(), unseenOptions...)
	return r
}

// UnseenPrompt is a question of which more may last than this call, shown anew each
// time: n tells them apart.
func UnseenPrompt(n int) schemas.Prompt {
	r := unseenRequest()
	r.Type, r.SessionID, r.PendingID, r.CreatedAt = schemas.TypeRequest, "session-1", fmt.Sprint("unseen-", n), time.Now().UTC()
	r.Project = "/workspace"
	digest, err := schemas.Digest(&r)
	if err != nil {
		panic(err) // the test's own
	}
	return schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Revision: uint64(n + 1), Agent: "local", Request: r, Digest: digest,
		Risk: schemas.RiskMedium, Tier: schemas.TierDisconnected, Deadline: r.CreatedAt.Add(time.Hour), Remember: unseenRules, Waiters: 1, Waiting: 1,
	}
}

// NothingLastsUnseen has somebody press whatever can be pressed, in every order of at
// most depth presses, each time before a question of their own. Before an answer that
// outlives its call is given, what it leaves behind stands on the screen: the exact
// rule, where it holds and for how long, or what the agent remembers, and that it is
// the agent who does. All that the channel is said to offer is found on the way.
func NothingLastsUnseen(t *testing.T, depth int, offers Lasts, asks func(n int) Person) {
	w := walk{t: t, asks: asks, depth: depth, been: map[string]bool{}, found: map[string]bool{}}
	w.all()
	want := []string{}
	if offers.Rules {
		want = append(want, "rule 0", "rule 1")
	}
	if offers.Agents {
		want = append(want, "always-1", "never-1")
	}
	for _, each := range want {
		require.True(t, w.found[each], "no way was found to answer with %s; %d ways were tried, and found %v", each, w.count, w.found)
	}
	for each := range w.found {
		require.Contains(t, want, each, "the channel offers more than it is said to")
	}
}

// walk is one walk over all that can be pressed.
type walk struct {
	t     *testing.T
	asks  func(n int) Person
	depth int
	count int
	been  map[string]bool // what was on the screen
	found map[string]bool
}

// all walks the shortest ways first, and each screen that it comes to once.
func (w *walk) all() {
	for paths := [][]string{nil}; len(paths) > 0; paths = paths[1:] {
		paths = append(paths, w.step(paths[0])...)
	}
}

// step goes one path, and returns those that lead on from its end.
func (w *walk) step(path []string) (on [][]string) {
	before, p := w.goes(path)
	if said := p.Said(); said != nil {
		rules := unseenRules
		if own, ok := p.(Offering); ok {
			rules = own.Offered()
		}
		w.check(path, before, said, rules)
		return nil
	}
	state := fmt.Sprint(p.Sees(), p.May())
	if w.been[state] || len(path) == w.depth {
		return nil
	}
	w.been[state] = true
	for _, next := range p.May() {
		if !next.Chooses || len(path)+1 < w.depth {
			on = append(on, append(slices.Clone(path), next.Label))
		}
	}
	return on
}

// goes presses a path before a question of its own, and returns what was on the
// screen before the last press.
func (w *walk) goes(path []string) (before string, p Person) {
	w.t.Helper()
	p = w.asks(w.count)
	w.count++
	for _, label := range path {
		before = p.Sees()
		require.Contains(w.t, labels(p.May()), label, "%q: not to be pressed the second time", path)
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

// check compares what an answer leaves behind with what its person had read.
func (w *walk) check(path []string, seen string, a *schemas.Answer, rules []schemas.Reach) {
	w.t.Helper()
	reads := func(one ...string) {
		w.t.Helper()
		all := plain(seen)
		require.True(w.t, slices.ContainsFunc(one, func(text string) bool { return strings.Contains(all, plain(text)) }),
			"after %q an answer lasts, and none of %q was on the screen:\n%s", path, one, seen)
	}
	for _, o := range unseenOptions {
		if a.OptionID == o.OptionID {
			w.found[o.OptionID] = true
			reads(o.Name)
			reads("agent remembers", "agent will remember")
			reads("nod cannot say what it covers, nor revoke it")
		}
	}
	if cmp.Or(a.Scope, schemas.ScopeOnce) == schemas.ScopeOnce {
		return
	}
	w.found[fmt.Sprint("rule ", a.Reach)] = true
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
		reads("for " + schemas.Words(length))
	}
}
