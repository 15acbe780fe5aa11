package inbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/schemas"
)

// A user can answer identical requests together, but allow them only after the screen has shown
// their essential rows. Each answer contains the digest of its own request.
func TestABatchIsShownWholeAndAnsweredTogether(t *testing.T) {
	for _, c := range []struct{ key, option string }{{"y", "allow_once"}, {"n", "reject_once"}} {
		r := newRig(t, 80, 24)
		var all []schemas.Prompt
		for n := range 4 {
			p := runs(numbered(n), "npm publish")
			p.Request.Reason, p.Request.Host = "reason "+numbered(n), "host-"+numbered(n)
			all = append(all, r.asks(p))
		}
		other := runs("other", "npm publish --force")
		other.Request.CreatedAt = start.Add(time.Second)
		r.asks(other)
		r.says("b 4 alike")
		r.presses("b", "s")
		r.says("4 that want the same", "No Allow: read it to its end")

		late := runs("late", "npm publish")
		late.Request.CreatedAt = start.Add(time.Second)
		r.asks(late)
		r.ends(all[1], schemas.Decision{Outcome: schemas.Denied, By: bob})
		shown := witness{}
		for range 20 {
			shown.look(r)
			if c.key == "y" && shown.unseen(essentialRows(&all[0], 80)) {
				r.presses("y")
				r.Empty(r.said())
			}
			r.presses("space")
		}
		for n, p := range all {
			r.True(shown["Request     "+p.PendingID] && shown["│ reason "+numbered(n)] && shown["Host        host-"+numbered(n)], numbered(n))
		}
		r.presses(c.key)
		var said []string
		for _, a := range r.said() {
			said = append(said, a.PendingID+" "+a.Digest+" "+a.OptionID)
		}
		var want []string
		for _, n := range []int{0, 2, 3} {
			want = append(want, fmt.Sprintf("%s digest-%[1]s %s", numbered(n), c.option))
		}
		r.ElementsMatch(want, said, "not the one that ended, nor the one that came late, nor the other")
		r.says("· Bob ·", "Ann")
		r.presses("esc", "end")
		r.says("2 waiting")
	}
}

func TestABatchHoldsOnlyIdenticalCalls(t *testing.T) {
	base := runs("1", "ls")
	for name, change := range map[string]func(*schemas.Request){
		"tool":        func(r *schemas.Request) { r.ToolName = "Shell" },
		"input":       func(r *schemas.Request) { r.ActionDetails = []byte(`{"command":"ls ","cwd":"/home/ann/app"}`) },
		"directory":   func(r *schemas.Request) { r.ActionDetails = []byte(`{"command":"ls","cwd":"/"}`) },
		"permissions": func(r *schemas.Request) { r.Permissions = []string{"@network"} },
		"kind":        func(r *schemas.Request) { r.Kind = schemas.KindQuestion },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 100, 50)
			r.asks(base)
			p := runs("2", "ls")
			change(&p.Request)
			r.asks(p)
			r.saysNot("alike")
			r.presses("b", "y")
			r.Len(r.said(), 1)
		})
	}
}

// If a request requires the code word, the user can allow it only by typing that word. The screen
// never shows the word.
func TestTheCodeWord(t *testing.T) {
	r := newRig(t, 100, 50)
	p := runs("1", "rm -rf build")
	p.Conditions = []string{"at least a chat, the code word"}
	r.asks(p)
	r.presses("y")
	r.Empty(r.said())
	r.says("The code word:")
	r.presses("enter")
	r.Empty(r.said(), "no word")
	r.types(strings.Split("tango", "")...)
	r.says("› •••••█")
	r.saysNot("tango")
	r.presses("enter")
	r.Equal("tango", r.said()[0].CodeWord)
	r.says("✅ Allowed once")

	r = newRig(t, 100, 50)
	r.asks(p)
	r.presses("y", "x", "esc", "n")
	r.Equal("reject_once", r.said()[0].OptionID, "to deny takes nothing")
	r.Empty(r.said()[0].CodeWord)
}

func TestTheCodeWordCoversABatchAndARule(t *testing.T) {
	r := newRig(t, 100, 60)
	for n := range 2 {
		p := runs(numbered(n), "make clean")
		p.Conditions = []string{schemas.ConditionCodeWord}
		p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", "clean"}}}}}
		r.asks(p)
	}
	r.presses("s", "y", "x", "enter")
	r.Len(r.said(), 1)
	r.Equal("x", r.said()[0].CodeWord)
	r.Equal(schemas.ScopeSession, r.said()[0].Scope)

	p := runs("9", "make clean")
	r.asks(p)
	r.presses("down", "b", "y", "w", "enter")
	r.Len(r.said(), 3)
	r.Equal("w", r.said()[1].CodeWord)
}

// If a request requires a second device, the terminal offers to deny it, but not to allow it.
func TestASecondDevice(t *testing.T) {
	r := newRig(t, 100, 50)
	p := runs("1", "rm -rf build")
	p.Conditions = []string{"a second device, the code word"}
	r.asks(p)
	r.says("No Allow: it needs a second device")
	r.presses("y", "v", "y", "esc", "n")
	r.Equal("reject_once", r.said()[0].OptionID)
}

// A permission is granted for the whole session, and the screen says so.
func TestAPermission(t *testing.T) {
	r := newRig(t, 100, 50)
	p := prompt("1", schemas.Request{Kind: schemas.KindPermission, Title: "Permission", ActionType: schemas.ActionOther, Permissions: []string{"@network"}})
	p.Remember = []schemas.Reach{{Permissions: []string{"@network"}}}
	r.asks(p)
	r.says("y for the session", "│ @network", "then nothing is granted")
	r.saysNot("from now on")
	r.presses("s", "y")
	r.Len(r.said(), 1)
	r.Empty(r.said()[0].Scope)
}

// The screen keeps the input lock only while its user wants the lock and is not away.
func TestTheInputLock(t *testing.T) {
	r := newRig(t, 100, 50)
	r.asks(runs("1", "ls"))
	r.types("l")
	r.Empty(r.desk.holds, "keys rest")
	r.presses("l")
	r.Equal([]string{"lock session-1"}, r.desk.held())
	r.Equal(schemas.Presence{
		Type: schemas.TypePresence, Op: schemas.PresenceLock, SessionID: "session-1", ClientID: "screen",
		Kind: schemas.ConnectorTerminal, From: schemas.From{UserID: "ann"},
	}, r.desk.holds[0])
	r.says("You hold session session-1", "l let go")

	r.ticks(60)
	r.Len(r.desk.holds, 13, "taken, and renewed every 5 s")
	r.ticks(1)
	r.Equal("leave session-1", r.desk.held()[13], "no input for more than 60 s")
	r.says("Session session-1 is not held now")
	r.ticks(60)
	r.Len(r.desk.holds, 14)
	r.types("v")
	r.Equal("lock session-1", r.desk.held()[14])
	r.types("esc")

	r.hears(tea.BlurMsg{})
	r.Equal("leave session-1", r.desk.held()[15], "another window")
	r.ticks(10)
	r.hears(tea.FocusMsg{})
	r.Equal("lock session-1", r.desk.held()[16])

	r.asks(runs("2", "ls -l"))
	r.presses("down", "l")
	r.Equal("leave session-1", r.desk.held()[17])
	r.ticks(60)
	r.Len(r.desk.holds, 18)
	r.presses("l")
	r.Equal("lock session-2", r.desk.held()[18], "the selected one's")
	r.m.releaseLock()
	r.Equal("leave session-2", r.desk.held()[19])
	r.Empty(r.said())
}

func TestAnInputLockOfAnotherPersonIsShown(t *testing.T) {
	r := newRig(t, 100, 50)
	r.asks(runs("1", "ls"))
	r.desk.holder = "Bob"
	r.presses("l")
	r.says("Not held: Bob holds it")
	r.ticks(60)
	r.Len(r.desk.holds, 1)
	r.m.releaseLock()
	r.Len(r.desk.holds, 1)
}

func TestAnInputLockIsTakenAgainAfterAnOutage(t *testing.T) {
	r := newRig(t, 100, 50)
	r.asks(runs("1", "ls"))
	r.presses("l")
	r.desk.away = true
	r.ticks(6)
	r.says("Session session-1 is not held now")
	r.desk.away = false
	r.ticks(1)
	r.says("You hold session session-1")
}

// If nod's reply to a lock is lost, nod may have granted the lock. The screen therefore releases the
// lock, and repeats this until the release succeeds.
func TestALockWhoseReplyIsLostIsLeft(t *testing.T) {
	lost := func(t *testing.T) *rig {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.rests()
		r.desk.away = true
		r.types("l")
		r.Equal([]string{"lock session-1"}, r.desk.held())
		r.says("Session session-1 is not held now")
		return r
	}
	t.Run("let go", func(t *testing.T) {
		r := lost(t)
		r.presses("l")
		r.Equal([]string{"lock session-1", "leave session-1"}, r.desk.held())
		r.ticks(1)
		r.Equal("leave session-1", r.desk.held()[2], "again, since the first leave failed")
		r.desk.away = false
		r.ticks(10)
		r.Equal([]string{"leave session-1"}, r.desk.held()[3:])
	})
	t.Run("another session", func(t *testing.T) {
		r := lost(t)
		r.asks(runs("2", "ls -l"))
		r.presses("l")
		r.desk.away = false
		r.presses("down", "l")
		r.Equal([]string{"leave session-1", "lock session-2"}, r.desk.held()[len(r.desk.held())-2:])
		r.says("You hold session session-2")
	})
	t.Run("closed", func(t *testing.T) {
		r := lost(t)
		r.m.releaseLock()
		r.Equal([]string{"lock session-1", "leave session-1"}, r.desk.held())
	})
	t.Run("a leave whose reply is lost", func(t *testing.T) {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.presses("l")
		r.desk.away = true
		r.presses("l")
		r.desk.away = false
		r.presses("l")
		r.Equal([]string{"lock session-1", "leave session-1", "lock session-1"}, r.desk.held())
		r.says("You hold session session-1")
	})
}

// Closing the inbox answers no request. If answers are on their way, the inbox waits for their results
// before it closes.
func TestClosingDecidesNothing(t *testing.T) {
	for _, key := range []string{"esc", "q", "ctrl+c"} {
		r := newRig(t, 100, 50)
		r.asks(runs("1", "ls"))
		r.types(key)
		r.True(r.closed)
		r.Empty(r.said())
	}
	r := newRig(t, 100, 50)
	r.asks(runs("1", "ls"))
	r.rests()
	r.slow = true
	r.types("y", "esc")
	r.says("Closing once your answer is recorded")
	r.False(r.closed)
	r.returns()
	r.True(r.closed)
	r.Zero(r.m.sending())
}

// The list shows the oldest request first and keeps the selected request in view.
func TestTheListIsSortedAndKeepsTheSelectionInView(t *testing.T) {
	r := newRig(t, 80, 24)
	r.says("Nothing waits for an answer.")
	for n := range 40 {
		p := runs(fmt.Sprintf("%02d-request", 39-n), fmt.Sprintf("make target-%02d", 39-n))
		p.Request.CreatedAt = start.Add(time.Duration(39-n) * time.Second)
		r.asks(p)
	}
	r.says("40 waiting", "▸ 00-reque")
	for range 20 {
		r.types("down")
	}
	r.says("▸ 20-reque", "│ make target-20")
	r.types("end")
	r.says("▸ 39-reque")
	r.types("home", "up")
	r.says("▸ 00-reque")
	r.asks(runs("00-before", "ls")) // an older request arrives, and the selection must stay
	r.says("▸ 00-reque", "41 waiting")
}
