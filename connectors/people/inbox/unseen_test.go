package inbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// walker is a peopletest.Person who uses a screen with one request.
type walker struct{ *rig }

// The user cannot give a lasting answer before the screen has shown its exact rule.
func TestAStandingAnswerNeedsItsRuleShown(t *testing.T) {
	for _, size := range []struct{ width, height int }{{100, 40}, {60, 24}} {
		peopletest.NothingLastsUnseen(t, 8, peopletest.Lasts{Rules: true, Agents: true}, func(n int) peopletest.Person {
			r := newRig(t, size.width, size.height)
			p := peopletest.UnseenPrompt(n)
			p.Request.CreatedAt, p.Deadline = start, start.Add(3600e9)
			r.asks(p)
			return walker{r}
		})
	}
}

// Sees returns the text on the terminal, but not the id of the request, because the ids of identical
// requests differ.
func (w walker) Sees() string {
	id := w.m.requests.order[0]
	_, pending, _ := strings.Cut(id, ".")
	return strings.ReplaceAll(w.screen(), pending, "")
}

func (w walker) May() (all []peopletest.Pressable) {
	for _, k := range []string{"y", "s", "n", "v", "right", "left", "space", "esc"} {
		all = append(all, peopletest.Pressable{Label: k, Chooses: slices.Contains([]string{"s", "v", "right", "left", "space", "esc"}, k)})
	}
	return all
}

func (w walker) Press(key string) { w.presses(key) }

func (w walker) Said() *schemas.Answer {
	if len(w.said()) == 0 {
		return nil
	}
	return &w.said()[0]
}

// An answer covers the number of calls that the screen showed when the user pressed the key.
func TestAnAnswerIsForTheCallsOnTheScreen(t *testing.T) {
	for _, keys := range [][]string{{"y"}, {"n"}, {"r", "x", "enter"}, {"v", "y"}, {"s", "y"}} {
		r := newRig(t, 100, 50)
		p := runs("1", "make")
		p.Waiters, p.Waiting = 3, 3
		p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make"}}}}}
		r.asks(p)
		r.says("×3 · 3 identical calls wait: allow once lets these 3 run", "CALLS", "y once ×3")
		p.Waiters, p.Waiting, p.Revision = 4, 4, 2
		r.desk.prompts[p.Key()] = &p // a fourth call is waiting in nod, but the screen has not received this version
		r.presses(keys...)
		r.Equal(3, r.said()[0].Waiters, keys)

		r = newRig(t, 100, 50)
		p.Waiters, p.Waiting, p.Revision = 3, 3, 1
		r.asks(p)
		r.rests()
		p.Waiters, p.Waiting, p.Revision = 4, 4, 2
		r.asks(p)
		r.says("×4 · 4 identical calls wait")
		r.types(keys...)
		r.Empty(r.said(), "what the keys would do has just changed")
		r.presses("esc")
	}
	r := newRig(t, 100, 50)
	p := runs("1", "make")
	p.Waiters, p.Waiting = 2, 2
	r.asks(p)
	q := runs("2", "make")
	q.Waiters, q.Waiting = 5, 5
	r.asks(q)
	r.presses("b", "y")
	r.Len(r.said(), 2)
	r.Equal([]int{2, 5}, []int{r.said()[0].Waiters, r.said()[1].Waiters}, "each its own")
}
