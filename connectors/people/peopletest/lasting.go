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

// Person is a user who sees one question on a channel.
type Person interface {
	// Sees returns all text that the person can see now: the question, and the labels of buttons and
	// keys. Text outside the visible screen is not part of it.
	Sees() string
	// May returns the buttons or keys that the person can press now. Their labels differ.
	May() []Pressable
	// Press presses the button or key with this label. It returns when the channel has shown the
	// effect, or when nod has received the answer.
	Press(label string)
	// Said returns the answer that nod received, or nil.
	Said() *schemas.Answer
}

// Offering is a Person whose question has other rules than UnseenPrompt.
type Offering interface {
	Offered() []schemas.Reach
}

// Pressable is a button or a key. If Chooses is true, pressing it sends no answer by itself, so the
// suite never tries it as the last press.
type Pressable struct {
	Label   string
	Chooses bool
}

// Lasts describes which kinds of lasting answers a channel offers.
type Lasts struct {
	Rules  bool // rules that nod stores
	Agents bool // options that the agent itself remembers
}

// The rules that nod can store, and the options that the agent remembers, in the question of
// UnseenPrompt.
var (
	lastingRules = []schemas.Reach{
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"git", "status"}, Project: "/workspace"}}},
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"git"}, Prefix: true, Project: "/workspace"}}},
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

// UnseenPrompt returns a question that a person can also answer for later calls. n makes the questions
// of one test different.
func UnseenPrompt(n int) schemas.Prompt {
	r := lastingRequest()
	r.Type, r.SessionID, r.PendingID, r.CreatedAt = schemas.TypeRequest, "session-1", fmt.Sprint("unseen-", n), time.Now().UTC()
	r.Project = "/workspace"
	digest, err := schemas.Digest(&r)
	if err != nil {
		panic(err) // the test itself is broken
	}
	return schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Revision: uint64(n + 1), Agent: "local", Request: r, Digest: digest,
		Risk: schemas.RiskMedium, Tier: schemas.TierDisconnected, Deadline: r.CreatedAt.Add(time.Hour), Remember: lastingRules, Waiters: 1, Waiting: 1,
	}
}

// NothingLastsUnseen tries every sequence of at most depth presses on the buttons and keys of a
// channel. For each sequence it calls asks, which shows a new question and returns its Person. Just
// before a press that gives a lasting answer, the screen must show the effect of that answer: the
// exact rule with its scope and duration, or the agent's option with the warning that the agent
// remembers it. The test fails unless it finds a way to every kind of lasting answer in offers, and to
// no other kind.
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
		require.True(t, w.found[each], "the channel offers no way to answer with %s; %d ways were tried, and found %v", each, w.count, w.found)
	}
	for each := range w.found {
		require.Contains(t, want, each, "the channel offers a lasting answer that its test does not declare")
	}
}

// walk tries the sequences of presses on one channel.
type walk struct {
	t     *testing.T
	asks  func(n int) Person
	depth int
	count int
	been  map[string]bool // the screens so far, each with its buttons and keys
	found map[string]bool
}

// all tries the sequences of presses, shortest first. If several sequences lead to the same screen, it
// continues only one of them.
func (w *walk) all() {
	for paths := [][]string{nil}; len(paths) > 0; paths = paths[1:] {
		paths = append(paths, w.step(paths[0])...)
	}
}

// step tries one sequence of presses. If they gave no answer, it returns the sequences that are longer
// by one press.
func (w *walk) step(path []string) (on [][]string) {
	before, p := w.goes(path)
	if said := p.Said(); said != nil {
		rules := lastingRules
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

// goes shows a new question and makes the presses of a path. It returns the text on the screen before
// the last press.
func (w *walk) goes(path []string) (before string, p Person) {
	w.t.Helper()
	p = w.asks(w.count)
	w.count++
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

// check requires that seen, the text on the screen before the last press, contained the effect of the
// answer.
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
		reads("for " + schemas.FormatDuration(length))
	}
}
