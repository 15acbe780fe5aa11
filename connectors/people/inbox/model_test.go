package inbox

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

var bob = schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}

// Each key sends its answer if the screen shows the whole request.
func TestKeysAnswer(t *testing.T) {
	lasting := runs("1", "make clean")
	lasting.Remember = []schemas.Reach{
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", "clean"}}}},
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make"}, Prefix: true}}},
	}
	colours := prompt("1", schemas.Request{Kind: schemas.KindQuestion, Title: "Which?", ActionType: schemas.ActionOther, Options: []schemas.Option{
		{OptionID: "red", Name: "Red", Kind: schemas.AllowOnce}, {OptionID: "blue", Name: "Blue", Kind: schemas.AllowOnce},
		{OptionID: "never", Name: "Never ask", Kind: schemas.RejectAlways}, {OptionID: "own", Name: "Something else", Kind: schemas.AllowOnce, Text: true},
	}})
	for name, c := range map[string]struct {
		prompt schemas.Prompt
		keys   []string
		option string // the option in the answer; empty if the screen must send no answer
		more   schemas.Answer
	}{
		"y allows once":                 {runs("1", "ls"), []string{"y"}, "allow_once", schemas.Answer{}},
		"Y is another key":              {runs("1", "ls"), []string{"Y"}, "", schemas.Answer{}},
		"n denies":                      {runs("1", "ls"), []string{"n"}, "reject_once", schemas.Answer{}},
		"r denies and says why":         {runs("1", "ls"), []string{"r", "n", "o", "space", "y", "enter"}, "reject_once", schemas.Answer{Message: "no y"}},
		"r without a reason":            {runs("1", "ls"), []string{"r", "space", "enter"}, "", schemas.Answer{}},
		"r and a corrected reason":      {runs("1", "ls"), []string{"r", "n", "x", "backspace", "o", "enter"}, "reject_once", schemas.Answer{Message: "no"}},
		"s shows a rule, y is for it":   {lasting, []string{"s", "y"}, "allow_once", schemas.Answer{Scope: schemas.ScopeSession}},
		"s and the next rule":           {lasting, []string{"s", "right", "right", "y"}, "allow_once", schemas.Answer{Scope: schemas.ScopeSession, Reach: 1}},
		"a digit shows its rule":        {lasting, []string{"2", "y"}, "allow_once", schemas.Answer{Scope: schemas.ScopeSession, Reach: 1}},
		"a digit alone decides nothing": {lasting, []string{"1", "9"}, "", schemas.Answer{}},
		"s and back":                    {lasting, []string{"s", "right", "left", "y"}, "allow_once", schemas.Answer{Scope: schemas.ScopeSession}},
		"s alone decides nothing":       {lasting, []string{"s", "s", "n", "r", "enter"}, "", schemas.Answer{}},
		"s without a rule":              {runs("1", "rm -rf /"), []string{"s", "y"}, "allow_once", schemas.Answer{}},
		"v, and y after reading":        {runs("1", "ls"), []string{"v", "y"}, "allow_once", schemas.Answer{}},
		"a digit answers a question":    {colours, []string{"2"}, "blue", schemas.Answer{}},
		"words answer a question":       {colours, []string{"4", "t", "e", "a", "l", "enter"}, "own", schemas.Answer{Message: "teal"}},
		"a question without words":      {colours, []string{"4", "enter"}, "", schemas.Answer{}},
		"y names no answer":             {colours, []string{"y", "v", "y"}, "", schemas.Answer{}},
		"no such answer":                {colours, []string{"5", "9", "0"}, "", schemas.Answer{}},
		"what an agent remembers":       {colours, []string{"3", "y"}, "never", schemas.Answer{}},
		"a digit alone lasts nothing":   {colours, []string{"3", "3", "1"}, "", schemas.Answer{}},
		"the exact form decides not":    {runs("1", "ls"), []string{"e", "y", "n", "v", "esc"}, "", schemas.Answer{}},
		"esc from a rule":               {lasting, []string{"s", "esc"}, "", schemas.Answer{}},
		"esc from a reason":             {runs("1", "ls"), []string{"r", "x", "esc"}, "", schemas.Answer{}},
		"esc from the full text":        {runs("1", "ls"), []string{"v", "esc"}, "", schemas.Answer{}},
		"esc":                           {runs("1", "ls"), []string{"esc"}, "", schemas.Answer{}},
		"enter, space and others":       {runs("1", "ls"), []string{"enter", "esc", "space", "a", "x", "1", "tab"}, "", schemas.Answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 100, 50)
			p := r.asks(c.prompt)
			r.presses(c.keys...)
			if c.option == "" {
				r.Empty(r.said())
				return
			}
			want := c.more
			want.Type, want.SessionID, want.PendingID, want.Digest = schemas.TypeAnswer, p.SessionID, p.PendingID, p.Digest
			want.OptionID, want.From = c.option, schemas.From{UserID: "ann"}
			r.Equal([]schemas.Answer{want}, r.said())
			r.says("· Ann ·")
			r.presses("y", "n")
			r.Len(r.said(), 1, "what is decided is not answered again")
		})
	}
}

// A user can allow by a rule only after the screen has shown the exact text of the rule.
func TestTheExactRuleIsShownFirst(t *testing.T) {
	r := newRig(t, 80, 24)
	p := runs("1", "make clean")
	p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", "clean"}, Project: "/home/ann/\u202eapp"}}}}
	r.asks(p)
	r.presses("v", "space", "s")
	r.says("Besides this call, nod will allow", `│ Bash(make clean) in '/home/ann/⟦U+202E⟧app'`, "in this session", "nod revoke")
	r.presses("y")
	r.Equal(schemas.ScopeSession, r.said()[0].Scope)
}

// After the meaning of a key has changed, keys have no effect for a moment. Each key that is
// pressed in that time starts the moment again.
func TestKeysAreInertAfterAChange(t *testing.T) {
	r := newRig(t, 100, 50)
	for range 20 {
		r.types("y") // the first request has not arrived yet
	}
	r.asks(runs("1", "ls"))
	r.types("y", "n", "r", "s")
	r.Empty(r.said())
	r.says("y once")

	stale := r.m.guard.count
	r.types("y") // pressed too soon, so the delay starts again
	r.hears(armMsg{stale})
	r.types("y")
	r.Empty(r.said())

	r.at = r.at.Add(3 * inert) // the program was stuck, so typed keys may still be unread
	r.hears(armMsg{r.m.guard.count})
	r.types("y")
	r.Empty(r.said())

	r.rests()
	held := keyPress("y")
	held.IsRepeat = true
	r.hears(held)
	r.Empty(r.said(), "a key that is held down")

	r.rests()
	r.ends(*r.desk.prompts["session-1.1"], schemas.Decision{Outcome: schemas.Denied, By: bob})
	r.asks(runs("2", "rm -rf ."))
	r.types("down", "y")
	r.Empty(r.said(), "another request")
	r.rests()
	r.hears(tea.WindowSizeMsg{Width: 99, Height: 50})
	r.types("y")
	r.Empty(r.said(), "another size")
	r.presses("y")
	r.Len(r.said(), 1)
	r.Equal("2", r.said()[0].PendingID)
}

// After an answer the selection stays, so that pressing the same key again does not answer the next
// request.
func TestARepeatedKeyDoesNotAnswerTheNextRequest(t *testing.T) {
	r := newRig(t, 100, 60)
	for n := range 3 {
		r.asks(runs(numbered(n), "ls "+numbered(n)))
	}
	r.presses("y", "y", "y", "y")
	r.Len(r.said(), 1)
	r.presses("down", "y")
	r.Len(r.said(), 2)
	r.Equal(numbered(1), r.said()[1].PendingID)
	r.says("1 waiting")
}

// Pasted text never acts as keys.
func TestPastingDecidesNothing(t *testing.T) {
	r := newRig(t, 100, 50)
	r.asks(runs("1", "ls"))
	r.rests()
	r.hears(tea.PasteMsg{Content: "y\nn\r"})
	r.Empty(r.said())
	r.presses("r")
	r.hears(tea.PasteMsg{Content: "as\x1b[2Jsaid"})
	r.says("› as⟦U+001B⟧[2Jsaid")
	r.presses("enter")
	r.Equal("as\x1b[2Jsaid", r.said()[0].Message)
}

// The screen shows a decision from another channel at once, in every view, and no longer lists the
// answering keys.
func TestADecisionMadeElsewhereIsShownAtOnce(t *testing.T) {
	for name, keys := range map[string][]string{
		"list": nil, "full": {"v"}, "rule": {"s"}, "full and rule": {"v", "s"}, "reason": {"r", "y"}, "reason over full": {"v", "r", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 100, 50)
			p := runs("1", "make clean")
			p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", "clean"}}}}}
			r.asks(p)
			r.presses(keys...)
			r.saysNot("Bob")
			r.ends(p, schemas.Decision{Outcome: schemas.Denied, By: bob, Message: "use make"})
			r.says(`⛔ Denied · Bob · 09:30 UTC · web · "use make"`)
			r.saysNot("y once", "n deny", "allow with this rule", "tell the agent why")
			r.presses("y", "n", "enter", "y")
			r.Empty(r.said())
			p.Revision += 99 // this newer version lacks the decision
			r.hears(shownMsg{p})
			r.says("⛔ Denied")
			r.saysNot("n deny")
		})
	}
	t.Run("a request that is not selected", func(t *testing.T) {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		other := r.asks(runs("2", "make"))
		r.says("2 waiting")
		r.ends(other, schemas.Decision{Outcome: schemas.Withdrawn})
		r.says("1 waiting", "🚫 Withdrawn: the agent stopped waiting  make", "y once")
	})
}

// The screen shows that an answer succeeded only after nod has confirmed it. Otherwise it shows the
// outcome that nod stored.
func TestTheConfirmedOutcomeOfAnAnswerIsShown(t *testing.T) {
	t.Run("on its way", func(t *testing.T) {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.rests()
		r.slow = true
		r.types("y")
		r.says(people.Recording)
		r.saysNot("✅", "y once")
		r.returns()
		r.says("✅ Allowed once · Ann")
	})
	t.Run("too late", func(t *testing.T) {
		r := newRig(t, 100, 50)
		p := r.asks(runs("1", "ls"))
		r.rests()
		denied := p
		denied.Decision = &schemas.Decision{Outcome: schemas.Denied, By: bob, DecidedAt: start}
		r.desk.prompts[p.Key()] = &denied // nod has stored the denial, but the screen has not received it
		r.types("y")
		r.says("Nothing changed: Bob denied this on the web at 09:30.", "⛔ Denied · Bob · 09:30 UTC · web")
		r.saysNot("✅")
	})
	t.Run("not confirmed", func(t *testing.T) {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.rests()
		r.desk.away = true
		r.types("y")
		r.says(people.NotConfirmed)
		r.saysNot("✅", "⛔")
	})
	t.Run("refused", func(t *testing.T) {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.rests()
		r.desk.refuses = schemas.Errorf(schemas.CodeForbidden, "%q on terminal is not an approver", "ann")
		r.types("y")
		r.says(`Nothing changed: "ann" on terminal is not an approver`, "n deny")
	})
}

// While nod is unreachable, the user cannot allow a request. When nod is back, the screen queries the
// outcomes that it missed.
func TestNothingCanBeAllowedDuringAnOutage(t *testing.T) {
	r := newRig(t, 100, 50)
	first, second, third := r.asks(runs("1", "ls")), r.asks(runs("2", "ls -l")), r.asks(runs("3", "ls -a"))
	r.rests()
	r.says("y once")
	r.desk.away = true
	r.ticks(1)
	r.says("nod is away", "No Allow: nod cannot be reached")
	r.saysNot("y once")
	r.presses("y")
	r.Empty(r.said())

	ended := second
	ended.Revision, ended.Decision = 5, &schemas.Decision{Outcome: schemas.TimedOut}
	r.desk.prompts[second.Key()] = &ended
	delete(r.desk.prompts, third.Key())
	r.desk.away = false
	r.ticks(1)
	r.says("1 waiting", "⌛ Expired")
	r.saysNot("nod is away")
	r.presses("y")
	r.Equal(first.PendingID, r.said()[0].PendingID)
}

// If the query for the outcomes that the screen missed in an outage fails, a later refresh tries again.
func TestCatchingUpIsTriedAgain(t *testing.T) {
	for _, query := range []string{"pending", "2"} {
		t.Run(query, func(t *testing.T) {
			r := newRig(t, 100, 50)
			r.asks(runs("1", "ls"))
			second := r.asks(runs("2", "ls -l"))
			r.desk.away = true
			r.ticks(1)
			second.Revision, second.Decision = 5, &schemas.Decision{Outcome: schemas.TimedOut}
			r.desk.prompts[second.Key()] = &second
			r.desk.away, r.desk.fails = false, query
			r.ticks(2)
			r.says("2 waiting")
			r.saysNot("nod is away")
			r.desk.fails = ""
			r.ticks(1)
			r.says("1 waiting", "⌛ Expired")
		})
	}
}

// A request that nod no longer stores disappears from the list.
func TestADeletedRequestLeavesTheList(t *testing.T) {
	r := newRig(t, 100, 50)
	p := r.asks(runs("1", "ls"))
	r.presses("v")
	delete(r.desk.prompts, p.Key())
	r.ticks(1)
	r.says("0 waiting", "Nothing waits for an answer.")
	r.presses("y")
	r.Empty(r.said())
}

// The countdown uses the broker's clock. After the deadline, the user cannot allow the request, even
// before nod reports that it timed out.
func TestTheCountdownUsesTheBrokersClock(t *testing.T) {
	r := newRig(t, 100, 50)
	r.desk.now = func() time.Time { return r.at.Add(58 * time.Minute) } // this machine's clock is 58 minutes behind the broker's
	r.asks(runs("1", "ls"))
	r.says("2:00 left, then it is denied", "y once")
	r.ticks(60)
	r.says("1:00 left")
	r.ticks(60)
	r.says("Its time has passed.")
	r.presses("y")
	r.Empty(r.said())
}

// The terminal rings once for each new request, and only if its user has pressed no key for a while.
func TestTheTerminalRingsForRequestsThatItsUserMayMiss(t *testing.T) {
	r := newRig(t, 80, 24)
	r.m.o.Rings = true
	rung := func() bool {
		cmd := r.m.ring()
		if cmd == nil {
			return false
		}
		msg, raw := cmd().(tea.RawMsg)
		r.True(raw)
		r.Contains(msg.Msg, "\a\x1b]9;nod: ")
		return true
	}
	first := runs("p1", "make")
	r.m.applyVersion(first)
	r.False(rung(), "the user has just opened the screen")
	r.at = r.at.Add(awayAfter)
	r.True(rung())
	r.False(rung(), "once for each request")
	first.Revision++
	r.m.applyVersion(first)
	r.False(rung(), "a new version is no new request")
	r.m.applyVersion(runs("p2", "ls"))
	r.True(rung())

	r.m.applyVersion(runs("p3", "ls"))
	r.types("down")
	r.at = r.at.Add(awayAfter)
	r.False(rung(), "the user was there after the request arrived")
	r.m.applyVersion(runs("p4", "ls"))
	r.m.o.Rings = false
	r.False(rung(), "the setting turns it off")
}
