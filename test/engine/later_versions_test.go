package engine

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// writtenLater replaces a part of a stored value, as an engine of a later version would write it.
func writtenLater(e *rig.Env, bucket, key, part, later string) {
	e.T.Helper()
	kv, err := e.Raw.KeyValue(e.Ctx, bucket)
	e.NoError(err)
	e.Soon("no engine has changed the value meanwhile", func() bool {
		was, err := kv.Get(e.Ctx, key)
		e.NoError(err)
		e.Contains(string(was.Value()), part)
		_, err = kv.Update(e.Ctx, key, bytes.Replace(was.Value(), []byte(part), []byte(later), 1), was.Revision())
		return err == nil
	})
}

func stored(e *rig.Env, bucket, key string) string {
	e.T.Helper()
	kv, err := e.Raw.KeyValue(e.Ctx, bucket)
	e.NoError(err)
	value, err := kv.Get(e.Ctx, key)
	e.NoError(err)
	return string(value.Value())
}

// briefly returns a context for calls that this engine refuses with UNAVAILABLE. It ends soon, because
// clients repeat such calls.
func briefly(e *rig.Env) context.Context {
	ctx, cancel := context.WithTimeout(e.Ctx, rig.Patience/30) // enough for one reply
	e.T.Cleanup(cancel)
	return ctx
}

// The function waits sends a request and reports whether the request waits for a person.
func waits(a *rig.Agent, r schemas.Request) bool {
	a.T.Helper()
	asked, err := a.Asker.Submit(a.Ctx, r)
	a.NoError(err)
	defer asked.Drop()
	return asked.Receipt.Revision != 0
}

// only is a JSON member that this version of nod does not know. It limits the object that contains it.
const only = `,"only":{"on":"tuesdays"}`

// A record of a later version may contain a condition that this engine does not know. This engine keeps
// the condition and refuses every allow. A denial, a withdrawal and a deadline still end the request.
func TestARecordWithUnknownMembersIsNotAllowed(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	asks := func(id, part string) *rig.Question {
		q := ada.Asks(rig.Deploy("S", id))
		writtenLater(env, "pending_permissions", q.Key, part, part+only)
		return q
	}
	refused := func(q *rig.Question) {
		t.Helper()
		_, err := ann.Answer(briefly(env), ann.AnswerTo(q, "allow_once"))
		env.Contains(env.Refusal(err, schemas.CodeUnavailable).Message, "conditions of a later version")
		env.Nil(env.Stored(q.Key).Record.Decision)
	}
	denied := asks("denied", `"agent":"ada"`)
	refused(denied)
	ann.Denies(denied)
	denied.Ends(schemas.Denied)
	env.Contains(stored(env, "pending_permissions", denied.Key), only)

	nested := asks("nested", `"kind":"deadline"`) // in next_event
	refused(nested)
	env.Equal(schemas.Withdrawn, ada.Withdraws("S", "nested").Outcome)

	env.Timeout("S", 2*time.Second)
	late := asks("late", `"tier":"session"`)
	late.Ends(schemas.TimedOut)
	env.Contains(stored(env, "pending_permissions", late.Key), only)
	env.Timeout("S", 0)

	env.Apply(rig.Rules("", ""))
	byRule := asks("by-rule", `"agent":"ada"`)
	env.Apply(rig.Rules("Deploy", ""))
	_, err := ada.Conn.Call(briefly(env), schemas.RequestSubject("ada", "S", "by-rule"), again(byRule))
	env.Refusal(err, schemas.CodeUnavailable)
	env.Nil(env.Stored(byRule.Key).Record.Decision, "a rule does not allow it either")
}

// The function again returns the request of the question q, marked as repeated.
func again(q *rig.Question) schemas.Request {
	r := rig.Deploy("S", q.Receipt.PendingID)
	r.Type, r.Rejoin, r.CreatedAt = schemas.TypeRequest, true, time.Now().UTC()
	return r
}

// A grant with an unknown limit allows nothing on this engine. The limit stays stored if the grant is
// listed or revoked.
func TestAGrantWithUnknownMembersAllowsNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	g := ann.Remembers(ada.Asks(rig.Shell("S", "", "npm test")), schemas.ScopeSession, 0).Grant
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "npm test")).Outcome)
	key := "standing.session.S." + g.GrantID
	writtenLater(env, "permission_sessions", key, `"scope":"session"`, `"scope":"session"`+only)
	env.Soon("the grant counts no longer", func() bool { return waits(ada, rig.Shell("S", "", "npm test")) })
	grants, err := env.Owner().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(grants, 1, "it is listed, so that it can be revoked")
	env.NoError(env.Owner().Revoke(env.Ctx, &grants[0]))
	env.Contains(stored(env, "permission_sessions", key), only)
	env.Contains(stored(env, "permission_sessions", key), `"revoked_by"`)

	// If a later version limits the rule of a grant in an unknown way, this engine does not use the grant.
	narrow := ann.Remembers(ada.Asks(rig.Shell("T", "", "npm test")), schemas.ScopeSession, 0).Grant
	writtenLater(env, "permission_sessions", "standing.session.T."+narrow.GrantID, `"project":"/app"`, `"project":"/app"`+only)
	env.Soon("the narrower rule counts no longer", func() bool { return waits(ada, rig.Shell("T", "", "npm test")) })

	// A standing answer with an unknown effect allows nothing.
	other := ann.Remembers(ada.Asks(rig.Shell("U", "", "npm test")), schemas.ScopeSession, 0).Grant
	writtenLater(env, "permission_sessions", "standing.session.U."+other.GrantID, `"scope":"session"`, `"effect":"ask","scope":"session"`)
	env.Soon("the grant with another effect counts no longer", func() bool { return waits(ada, rig.Shell("U", "", "npm test")) })
}

// This engine does not use an approval with an unknown limit: a person is asked about the repeated call.
func TestAnApprovalWithUnknownMembersIsNotUsed(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Detaches(rig.Deploy("S", "first"))
	d := env.Ann().Allows(q)
	env.NotNil(d.Grant)
	key := "standing.session.S." + d.Grant.GrantID
	writtenLater(env, "permission_sessions", key, `"scope":"session"`, `"scope":"session"`+only)
	ada.Asks(rig.Deploy("S", "second"))
	env.Contains(stored(env, "permission_sessions", key), only)
	env.NotContains(stored(env, "permission_sessions", key), "used_by")
}

// If a session has a limit that this engine does not know, rules allow nothing in the session, and a
// person is asked. The limit stays stored if the session changes.
func TestASessionWithUnknownMembersAsks(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("S", "")).Outcome)
	writtenLater(env, "permission_sessions", "session.S", `"session_id":"S"`, `"session_id":"S"`+only)
	env.Soon("the rule counts no longer", func() bool { return waits(ada, rig.Lookup("S", "")) })
	env.Ann().Allows(ada.Asks(rig.Lookup("S", "")))
	env.Equal(schemas.Denied, ada.Gets(rig.Call("Forbidden", "S", "")).Outcome)
	env.Timeout("S", time.Hour)
	env.Contains(stored(env, "permission_sessions", "session.S"), only)
	_, err := ada.Conn.Call(briefly(env), schemas.SessionSubject("ada"), schemas.Query{Type: schemas.TypeQuery, SessionID: "S"})
	env.Refusal(err, schemas.CodeUnavailable)
}

// A freeze counts even if it has JSON members that this engine does not know. A further freeze keeps these
// members, and this engine refuses to thaw the freeze.
func TestAFreezeWithUnknownMembersStays(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	_, err := ann.Freeze(env.Ctx, schemas.FreezeRequest{SessionID: "S", From: rig.Ann()})
	env.NoError(err)
	writtenLater(env, "permission_settings", "frozen", `"session_id":"S"`, `"session_id":"S"`+only)
	env.Equal(schemas.Denied, ada.Gets(rig.Lookup("S", "")).Outcome)
	_, err = ann.Freeze(env.Ctx, schemas.FreezeRequest{SessionID: "T", From: rig.Ann()})
	env.NoError(err)
	env.Contains(stored(env, "permission_settings", "frozen"), only)
	_, err = ann.Thaw(briefly(env), schemas.FreezeRequest{SessionID: "S", From: rig.Ann()})
	env.Contains(env.Refusal(err, schemas.CodeUnavailable).Message, "later version")
	_, err = ann.Thaw(env.Ctx, schemas.FreezeRequest{SessionID: "T", From: rig.Ann()})
	env.NoError(err)
	env.Contains(stored(env, "permission_settings", "frozen"), only)
}

// The outbox keeps a version of a record that an engine cannot read, until an engine can read it.
func TestAnUnreadableVersionWaitsForAnEngineThatReadsIt(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	writtenLater(env, "pending_permissions", q.Key, `{"type":"nod.v1.record"`, `{"type":"nod.v9.record"`)
	env.Never(env.OutboxIdle, 3*time.Second, 50*time.Millisecond, "the version has no effects yet, and is not lost")
	_, err := env.Ann().Answer(briefly(env), env.Ann().AnswerTo(q, "allow_once"))
	env.Refusal(err, schemas.CodeUnavailable)
	writtenLater(env, "pending_permissions", q.Key, `{"type":"nod.v9.record"`, `{"type":"nod.v1.record"`)
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.Ann().Allows(q)
}

// This engine cannot read the stored settings, because a later version wrote them. Its last settings
// stay in force for some time. After that, neither a rule nor an answer allows anything.
func TestAnEngineThatCannotReadTheSettingsAllowsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it waits 15 s until the settings are stale")
	}
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	q := ada.Asks(rig.Deploy("S", "1"))
	detached := ada.Detaches(rig.Deploy("S", "2"))
	ann.Allows(detached)
	settings := stored(env, "permission_settings", "settings")
	writtenLater(env, "permission_settings", "settings", `{`, `{"of_a_later_version":true,`)
	env.Soon("no rule allows", func() bool { return waits(ada, rig.Lookup("S", "")) })
	_, err := ann.Answer(briefly(env), ann.AnswerTo(q, "allow_once"))
	env.Contains(env.Refusal(err, schemas.CodeUnavailable).Message, "cannot read the settings")
	ada.Asks(rig.Deploy("S", "3")) // the unused approval does not count
	ann.Denies(q)
	writtenLater(env, "permission_settings", "settings", `{"of_a_later_version":true,`, `{`)
	env.Equal(settings, stored(env, "permission_settings", "settings"))
	env.Soon("the rule allows again", func() bool { return !waits(ada, rig.Lookup("S", "")) })
}
