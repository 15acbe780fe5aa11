package telegram_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// grantDesk is a desk with standing answers. It records the revoked standing answers.
type grantDesk struct {
	*desk
	mu    sync.Mutex
	all   []schemas.StandingAnswer
	ended []string
}

func (d *grantDesk) GrantsFor(_ context.Context, userID string) ([]schemas.StandingAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if userID != peopletest.Ann && userID != "4712" {
		return nil, schemas.Errorf(schemas.CodeForbidden, "%q is not an approver", userID)
	}
	return slices.Clone(d.all), nil
}

func (d *grantDesk) Revoke(_ context.Context, g *schemas.StandingAnswer, userID string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.all, func(other schemas.StandingAnswer) bool { return other.GrantID == g.GrantID })
	if d.all[i].RevokedAt.IsZero() {
		d.all[i].RevokedAt, d.all[i].RevokedBy = time.Now(), "Ann"
		d.ended = append(d.ended, userID+" "+g.GrantID)
	}
	return nil
}

func (d *grantDesk) has() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ended)
}

// newGrantDesk makes a desk with n standing answers in force, the newest of which is a denial. One
// more standing answer has ended.
func newGrantDesk(d *desk, n int) *grantDesk {
	g := &grantDesk{desk: d}
	began := time.Now().Add(-time.Hour)
	for i := range n {
		s := schemas.StandingAnswer{
			GrantID: fmt.Sprintf("grant-%02d", i), Scope: schemas.ScopeSession, SessionID: "S-1", Agent: "local",
			Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", fmt.Sprint("t", i)}, Project: "/app"}},
			By:    schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, CreatedAt: began.Add(-time.Duration(i) * time.Minute),
		}
		if i == 0 {
			s.Effect, s.Rules, s.Call = schemas.EffectDeny, nil, &schemas.ExactCall{ToolName: "Bash", Title: "rm https://evil.example " + strings.Repeat("x", 5000)}
			s.Question, s.Message = "perm-1", "never"
		}
		g.all = append([]schemas.StandingAnswer{s}, g.all...)
	}
	over := g.all[0]
	over.GrantID, over.RevokedAt, over.CreatedAt = "over", time.Now(), time.Now()
	g.all = append(g.all, over)
	return g
}

func (w *world) runsWith(d *grantDesk) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.carrier.Run(ctx, d) }()
	w.t.Cleanup(func() { cancel(); <-ended })
}

// lists waits until there are n lists of standing answers, and returns the newest.
func (w *world) lists(n int) (list telegramtest.Message) {
	w.t.Helper()
	w.waits(func() bool {
		var all []telegramtest.Message
		for _, m := range w.Chat(ann) {
			if strings.HasPrefix(m.Text, "Standing answers") {
				all = append(all, m)
			}
		}
		if len(all) == n {
			list = all[n-1]
		}
		return len(all) == n
	})
	return list
}

func labels(m telegramtest.Message) (all []string) {
	for _, b := range m.Buttons {
		all = append(all, b.Text)
	}
	return all
}

// nod lists a few standing answers per message, newest first. Each has a button that ends it. Another
// press of the button changes nothing.
func TestStandingAnswersAreListedAndEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newGrantDesk(w.desk, 7)
	w.runsWith(d)
	w.Write(ann, "/grants", 0)
	list := w.lists(1)
	w.Equal([]string{"Forget 1", "Revoke 2", "Revoke 3", "Revoke 4", "Revoke 5", "More (2)"}, labels(list))
	w.Contains(list.Text, "1 · deny\n│ the same Bash call again: rm https://evil.example xxx")
	w.Contains(list.Text, "in session S-1\nuntil it is revoked\nby Ann, ")
	w.Contains(list.Text, "question perm-1\n")
	w.Contains(list.Text, "2 · allow\n│ Bash(make t1) in /app\n")
	w.NotContains(list.Bare, "evil.example", "Telegram would make a link of it")
	for _, b := range list.Buttons {
		w.LessOrEqual(len(b.Data), 64)
	}

	w.Press(ann, ann, list.ID, list.Buttons[5].Data, false)
	second := w.lists(2)
	w.Equal([]string{"Revoke 1", "Revoke 2"}, labels(second))
	w.Contains(second.Text, "1 · allow\n│ Bash(make t5) in /app\n")
	w.Contains(second.Text, "2 · allow\n│ Bash(make t6) in /app\n")

	for range 2 {
		w.Press(ann, ann, list.ID, list.Buttons[0].Data, false)
		w.told("Forgotten: nod asks about the same call again.")
	}
	w.told("It had already ended (revoked by Ann).")
	w.Press(ann, ann, second.ID, second.Buttons[1].Data, true)
	w.told("Revoked: nod asks about such calls again.")
	w.Equal([]string{peopletest.Ann + " grant-00", peopletest.Ann + " grant-06"}, d.has())
	w.waits(func() bool {
		for _, m := range w.Chat(ann) {
			if m.ID == list.ID {
				return labels(m)[0] == "Forgotten 1"
			}
		}
		return false
	})
}

// Another person's press, or a press of an invented button, ends no standing answer. A person who is
// no approver sees no standing answers.
func TestOthersCannotEndAPersonsStandingAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newGrantDesk(w.desk, 1)
	w.runsWith(d)
	w.Start(4712)
	w.Start(666)
	w.Write(ann, "/grants", 0)
	list := w.lists(1)
	w.Equal([]string{"Forget 1"}, labels(list))
	data := list.Buttons[0].Data
	const unknown = "Nothing changed: nod knows no such standing answer"
	heard := func(who int64, text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.Read(who), func(r telegramtest.Read) bool { return strings.Contains(r.Toast, text) }) ||
				slices.ContainsFunc(w.Chat(who), func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) })
		}
	}
	w.Press(4712, ann, list.ID, data, false)
	w.waits(heard(4712, unknown))
	w.Press(666, ann, list.ID, data, false)
	w.waits(heard(666, "Nothing changed: you are not among those who may decide this."))
	w.Press(ann, ann, list.ID, "g1:r:", false)
	w.waits(heard(ann, unknown))
	w.Write(666, "/grants", 0)
	w.waits(func() bool { return len(w.Chat(666)) == 1 })
	w.Equal("Nothing changed: you are not among those who may decide this.", w.Chat(666)[0].Text)
	w.Empty(d.has())

	w.Press(ann, ann, list.ID, data, false)
	w.told("Forgotten")
	w.Write(ann, "/grants", 0)
	w.told("Nothing is allowed or denied beyond one call.")
}

// A long list comes in several messages, each within Telegram's limits.
func TestLongStandingAnswersAreAllListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newGrantDesk(w.desk, 6)
	for i := range d.all {
		d.all[i].SessionID, d.all[i].Question = strings.Repeat("s", 128), strings.Repeat("q", 128)
		d.all[i].Rules = []schemas.RememberedRule{{Tool: "Bash", Argv: []string{strings.Repeat("🦊", 400)}, Project: "/app"}}
		d.all[i].Message = strings.Repeat("🦊", 400)
	}
	w.runsWith(d)
	w.Write(ann, "/grants", 0)
	listed := 0
	for n := 1; ; n++ {
		list := w.lists(n)
		last := list.Buttons[len(list.Buttons)-1]
		if !strings.HasPrefix(last.Text, "More") {
			listed += len(list.Buttons)
			break
		}
		listed += len(list.Buttons) - 1
		w.Press(ann, ann, list.ID, last.Data, false)
	}
	w.Equal(6, listed)
	w.Empty(w.Rejected())
}
