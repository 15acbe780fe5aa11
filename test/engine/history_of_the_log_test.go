package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// theEnd is a cursor after every entry of the log. The pages before this cursor cover the whole log, up to
// its newest entry.
const theEnd = "1000000"

// fromLog reads the log page by page. It returns all logged requests before the cursor q.After, and the last
// page.
func fromLog(e *rig.Env, q schemas.Query) (all []schemas.LoggedRequest, last schemas.Page) {
	e.T.Helper()
	q.Type, q.Log = schemas.TypeQuery, true
	for {
		var page schemas.Page
		e.NoError(e.Conn(roles.ConnectorID("terminal")).CallInto(e.Ctx, schemas.QuerySubject("terminal", schemas.QueryHistory), q, &page))
		e.Empty(page.Prompts)
		e.NotNil(page.Log)
		all = append(all, page.Logged...)
		if q.After = page.Next; q.After == "" {
			return all, page
		}
	}
}

// The function forget removes the records of some requests, as the broker does after 24 hours.
func forget(e *rig.Env, keys ...string) {
	e.T.Helper()
	kv, err := e.Raw.KeyValue(e.Ctx, "pending_permissions")
	e.NoError(err)
	for _, key := range keys {
		e.NoError(kv.Purge(e.Ctx, key))
	}
}

func loggedLines(all []schemas.LoggedRequest) []string {
	lines := []string{}
	for _, l := range all {
		line := l.PendingID
		if l.Decided != nil {
			line += " " + string(l.Decided.Outcome) + " by " + strings.TrimSpace(string(l.Decided.By.Kind)+" "+l.Decided.By.Name)
		}
		for _, a := range l.Aftermath {
			line += ", " + string(a.Kind)
		}
		lines = append(lines, line)
	}
	return lines
}

// The log lists the requests whose records are gone, newest first, on pages of any length. A row contains the
// request and the decision if the log has them, and the aftermath, which is what became of the call. Requests
// that were decided at once, and requests that still have a record, are not listed.
func TestTheHistoryGoesOnInTheLog(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = strings.Replace(rig.Everybody, `"permissions"`, `"log": {"payloads": true}, "permissions"`, 1)
	})
	ada := env.Agent("ada")
	one, two := ada.Asks(rig.Shell("S", "one", "make TOKEN=hunter2hunter2 release")), ada.Asks(rig.Shell("T", "two", "make two"))
	lost := ada.Asks(rig.Shell("S", "lost", "make lost"))
	waits := ada.Asks(rig.Shell("S", "waits", "make waits"))
	kept := ada.Asks(rig.Shell("T", "kept", "make kept"))
	ada.Gets(rig.Lookup("S", "at-once"))
	env.Bob().Denies(two)
	env.Ann().Allows(one)
	env.Ann().Allows(kept)
	ada.Withdraws("S", "waits")
	env.Soon("all is logged", func() bool {
		return env.OutboxIdle() && env.LoggedOf(schemas.LogDecided) == 5 && env.LoggedOf(schemas.LogAsked) == 5
	})
	_ = lost
	_ = waits
	again := schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogAftermath, SessionID: "T", PendingID: "two", Actor: "ada", Outcome: schemas.Denied,
		Aftermath: &schemas.Aftermath{PendingID: "two", Kind: schemas.AftermathRan, Reason: "answered at the terminal", At: time.Now().UTC()},
	}
	for i := range 2 {
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint("again-", i), again)
		env.NoError(err)
	}
	forget(env, "S.one", "T.two", "S.waits", "S.lost")

	first, page := fromLog(env, schemas.Query{})
	env.Empty(first, "all entries are of the last 24 hours, which the list of the records has")
	env.False(page.Log.Begins.IsZero())
	want := []string{"waits withdrawn by agent", "one allowed by human Ann", "two denied by human Bob, ran", "lost"}
	for _, limit := range []int{0, 1, 2, 3} {
		all, page := fromLog(env, schemas.Query{After: theEnd, Limit: limit})
		env.ElementsMatch(want, loggedLines(all), limit)
		env.Equal(page.Log.Begins, page.Log.Reached)
		for i := range all[1:] {
			env.Greater(all[i].Sequence, all[i+1].Sequence)
		}
		for _, l := range all {
			env.Contains(string(l.Request), "make", l.PendingID)
			env.NotContains(string(l.Request), "hunter2")
			env.Equal(l.PendingID == "one", l.Redacted == 1)
		}
	}
	inT, _ := fromLog(env, schemas.Query{After: theEnd, SessionID: "T"})
	env.Equal([]string{"two denied by human Bob, ran"}, loggedLines(inT))
	byID, _ := fromLog(env, schemas.Query{After: theEnd, PendingID: "los"})
	env.Equal([]string{"lost"}, loggedLines(byID))

	// Nobody can decide a request through the log, because an answer and a revocation find no record.
	_, err := env.Bob().Says(two, "allow_once")
	env.Refusal(err, schemas.CodeNotFound)
	_, err = env.Bob().Says(lost, "allow_once")
	env.Refusal(err, schemas.CodeNotFound)
	after, _ := fromLog(env, schemas.Query{After: theEnd})
	env.ElementsMatch(want, loggedLines(after))
}

// A decision that is logged twice is listed once, and an id that two requests used is listed twice.
// If log.payloads is not set, a row has no request. A carrier may not read the log, because it may
// see only what is routed to its people.
func TestTheHistoryOfTheLogIsExact(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	at := time.Now().UTC().Add(-48 * time.Hour)
	n := 0
	logs := func(kind schemas.LogKind, id string, asked time.Time, actor string, outcome schemas.Outcome) {
		n++
		e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: asked, Kind: kind, SessionID: "S", PendingID: id, Actor: actor, ToolName: "Bash"}
		if kind == schemas.LogDecided {
			e.At, e.AskedAt, e.Outcome, e.Agent, e.Rule = asked.Add(time.Minute), asked, outcome, "ada", "frozen by Ann"
		}
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint("n", n), e)
		env.NoError(err)
	}
	logs(schemas.LogAsked, "again", at, "ada", "")
	logs(schemas.LogDecided, "again", at, "Ann@Home@web", schemas.Allowed)
	logs(schemas.LogAsked, "again", at.Add(time.Hour), "ada", "")
	logs(schemas.LogDecided, "again", at.Add(time.Hour), "clock", schemas.TimedOut)
	logs(schemas.LogDecided, "again", at.Add(time.Hour), "clock", schemas.TimedOut)
	logs(schemas.LogDecided, "unasked", at, "policy", schemas.Denied)
	all, _ := fromLog(env, schemas.Query{After: theEnd})
	env.Equal([]string{"unasked denied by policy frozen by Ann", "again timed_out by clock", "again allowed by human Ann@Home"}, loggedLines(all))
	env.Equal("web", all[2].Decided.By.Connector)
	for _, l := range all {
		env.Equal("ada", l.Agent)
		env.Empty(l.Request)
	}
	var page schemas.Page
	q := schemas.Query{Type: schemas.TypeQuery, Log: true, After: theEnd}
	for _, recipient := range []string{"", "1001"} {
		q.Recipient = recipient
		err := env.Conn(roles.ConnectorID("tg")).CallInto(env.Ctx, schemas.QuerySubject("tg", schemas.QueryHistory), q, &page)
		env.Refusal(err, schemas.CodeForbidden)
	}
	q.After = "x"
	env.Refusal(env.Conn(roles.ConnectorID("terminal")).CallInto(env.Ctx, schemas.QuerySubject("terminal", schemas.QueryHistory), q, &page), schemas.CodeValidation)
}

// A page reads only a limited part of the log. If the log entries of a question and its decision are far
// apart, they still make one row, and no later page lists the question as undecided.
func TestAPageOfTheLogIsBounded(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	at := time.Now().UTC()
	request := rig.Shell("S", "far", "make far")
	request.Type, request.CreatedAt = schemas.TypeRequest, at
	data, err := schemas.Encode(request)
	env.NoError(err)
	asked := schemas.LogEntry{Type: schemas.TypeLogEntry, At: at, Kind: schemas.LogAsked, SessionID: "S", PendingID: "far", Actor: "ada", Request: data}
	_, _, err = env.Store.Log.Append(env.Ctx, "far", asked)
	env.NoError(err)
	for i := range 1500 {
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint("x", i), schemas.LogEntry{Type: schemas.TypeLogEntry, At: at, Kind: schemas.LogSession, SessionID: fmt.Sprint("s", i%7), Actor: "test"})
		env.NoError(err)
	}
	_, _, err = env.Store.Log.Append(env.Ctx, "far.decided", schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: at, Kind: schemas.LogDecided, SessionID: "S", PendingID: "far", Actor: "Ann@web", Agent: "ada", AskedAt: at, Outcome: schemas.Denied,
	})
	env.NoError(err)
	var page schemas.Page
	terminal := env.Conn(roles.ConnectorID("terminal"))
	env.NoError(terminal.CallInto(env.Ctx, schemas.QuerySubject("terminal", schemas.QueryHistory), schemas.Query{Type: schemas.TypeQuery, Log: true, After: theEnd}, &page))
	env.NotEmpty(page.Next)
	env.True(page.Log.Reached.After(page.Log.Begins))
	env.Equal([]string{"far denied by human Ann"}, loggedLines(page.Logged))
	env.Contains(string(page.Logged[0].Request), "make far")
	all, _ := fromLog(env, schemas.Query{After: theEnd})
	env.Equal([]string{"far denied by human Ann"}, loggedLines(all))
}

// A row is marked if its question is not found, for example because the agent's clock is fast. A row
// whose question is found without its input is not marked.
func TestAQuestionThatIsNotFoundIsSaidToBe(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	n := 0
	logs := func(kind schemas.LogKind, session, id string, asked time.Time) {
		n++
		e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: asked, Kind: kind, SessionID: session, PendingID: id, Actor: "ada", ToolName: "Bash"}
		if kind == schemas.LogDecided {
			e.At, e.AskedAt, e.Actor, e.Outcome = time.Now().UTC(), asked, "Ann@web", schemas.Denied
		}
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint("n", n), e)
		env.NoError(err)
	}
	now := time.Now().UTC()
	asked := map[string]time.Time{"found": now, "fast": now.Add(5 * time.Minute)}
	for id, at := range asked {
		logs(schemas.LogAsked, "S-"+id, id, at)
	}
	for range 1000 {
		logs(schemas.LogSession, "other", "", now)
	}
	for id, at := range asked {
		logs(schemas.LogDecided, "S-"+id, id, at)
	}
	all, _ := fromLog(env, schemas.Query{After: theEnd})
	env.Len(all, 2)
	for _, l := range all {
		env.Equal(l.PendingID == "fast", l.QuestionNotFound, l.PendingID)
	}
}
