package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// gate lets a scheduled task of the session ask for a permission that it lacks, so that the session gets
// a notice.
func gate(a *rig.Agent, session, name string) {
	a.T.Helper()
	var reply schemas.GateReply
	a.NoError(a.Conn.CallInto(a.Ctx, schemas.GateSubject(a.Name), schemas.Gate{
		Type: schemas.TypeGate, SessionID: session, GateID: "g", Name: name, Permissions: []string{"@network"},
	}, &reply))
	a.Equal([]string{"@network"}, reply.Missing)
}

func TestNoticesAreKeptUntilTheirAgentTakesThem(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ben := env.Agent("ada"), env.Agent("ben")
	for i := range schemas.MaxNotices + 1 {
		gate(ada, "front", fmt.Sprint("task ", i))
	}
	gate(ada, "front", fmt.Sprint("task ", schemas.MaxNotices)) // the last task asks once more
	gate(ada, "other", "of another session\x1b]0;title\a\u202e"+strings.Repeat("x", 400))

	none, err := ben.Asker.TakeNotices(env.Ctx, "front")
	env.NoError(err)
	env.Empty(none, "another agent's session of the same name")
	kept, err := ada.Asker.TakeNotices(env.Ctx, "front")
	env.NoError(err)
	env.Len(kept, schemas.MaxNotices)
	env.Contains(kept[0].Text, `"task 1"`, "the oldest one had to make room")
	env.Contains(kept[len(kept)-1].Text, fmt.Sprintf(`"task %d"`, schemas.MaxNotices))
	env.Equal(schemas.NoticeGate, kept[0].Kind)
	again, err := ada.Asker.TakeNotices(env.Ctx, "front")
	env.NoError(err)
	env.Empty(again)
	long, err := ada.Asker.TakeNotices(env.Ctx, "other")
	env.NoError(err)
	env.Len([]rune(long[0].Text), 301)
	env.NotContains(long[0].Text, "\x1b")
	_, err = ada.Asker.TakeNotices(env.Ctx, "")
	env.ErrorContains(err, "session_id")
}

func TestAListenerHearsEachNoticeOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	background(env, "bg")
	gate(ada, "front", "before")
	heard := make(chan schemas.Notice, 100)
	listening, stop := context.WithCancel(env.Ctx)
	env.NoError(ada.Asker.Notices(listening, "front", func(n schemas.Notice) { heard <- n }))
	env.Contains(rig.Next(env, heard).Text, `"before"`, "the kept notice")

	ada.Gets(by("ada", rig.Lookup("front", "")))
	askedLast(ada, "front")
	q := ada.Asks(by("ada", rig.Permission("bg", "1", "to fetch", "@network")))
	env.Equal(schemas.NoticeAsked, rig.Next(env, heard).Kind)
	ann.Allows(q)
	n := rig.Next(env, heard)
	env.Equal(schemas.NoticeDecided, n.Kind, "a question has several versions, and one notice that it is asked")
	env.Contains(n.Text, `bg asked about`)
	env.Contains(n.Text, "is decided: allowed. See nod show "+q.Receipt.PendingID)
	gate(ada, "front", "last")
	env.Contains(rig.Next(env, heard).Text, `"last"`)
	kept, err := ada.Asker.TakeNotices(env.Ctx, "front")
	env.NoError(err)
	env.Empty(kept, "what was heard is taken")

	stop()
	gate(ada, "front", "unheard")
	kept, err = ada.Asker.TakeNotices(env.Ctx, "front")
	env.NoError(err)
	env.Len(kept, 1)
	env.Empty(heard)
}

// A notice that was taken does not come again, although its record is written again several times.
func TestANoticeIsToldOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	background(env, "bg")
	ada.Gets(by("ada", rig.Lookup("front", "")))
	askedLast(ada, "front")
	var told []schemas.NoticeKind
	take := func() int {
		kept, err := ada.Asker.TakeNotices(env.Ctx, "front")
		env.NoError(err)
		for _, n := range kept {
			told = append(told, n.Kind)
		}
		return len(told)
	}
	q := ada.Asks(by("ada", rig.Deploy("bg", "1")))
	env.Soon("the question is told", func() bool { return take() == 1 })
	for range 3 { // each round stores new versions of the record
		env.NoError(ada.Asker.Detach(env.Ctx, "bg", "1", "gone"))
		again := by("ada", rig.Deploy("bg", "1"))
		again.Rejoin = true
		ada.Asks(again)
		take()
	}
	ann.Allows(q)
	env.Soon("the decision is told", func() bool { take(); return told[len(told)-1] == schemas.NoticeDecided })
	env.Equal([]schemas.NoticeKind{schemas.NoticeAsked, schemas.NoticeDecided}, told)
}
