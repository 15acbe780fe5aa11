package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestConcurrentRequestsOfASessionAreIndependent(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann, bob := env.Agent("ada"), env.Ann(), env.Bob()
	const n = 60
	questions := make([]*rig.Question, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := rig.Deploy("S", fmt.Sprint("id", i))
			r.ActionDetails = fmt.Appendf(nil, `{"to":%d}`, i)
			asked, err := ada.Asker.Submit(env.Ctx, r)
			if err != nil {
				t.Error(err)
				return
			}
			questions[i] = &rig.Question{OpenRequest: asked, Agent: ada}
		})
	}
	wg.Wait()
	want := []schemas.Outcome{schemas.Allowed, schemas.Denied, schemas.Cancelled, schemas.Withdrawn, ""}
	for i, q := range questions {
		wg.Go(func() {
			var err error
			switch want[i%len(want)] {
			case schemas.Allowed:
				_, err = ann.Says(q, "allow_once")
			case schemas.Denied:
				_, err = bob.Says(q, "reject_once")
			case schemas.Cancelled:
				a := bob.AnswerTo(q, "")
				a.Cancelled = true
				_, err = bob.Answer(env.Ctx, a)
			case schemas.Withdrawn:
				_, err = ada.Asker.Withdraw(env.Ctx, "S", q.Receipt.PendingID, "")
			}
			if err != nil {
				t.Error(i, err)
			}
		})
	}
	wg.Wait()
	open := 0
	for i, q := range questions {
		if outcome := want[i%len(want)]; outcome != "" {
			d := q.Ends(outcome)
			env.Equal(fmt.Sprint("id", i), d.PendingID)
			env.Equal(q.Receipt.Digest, d.Digest)
			continue
		}
		open++
		env.Equal(q.Receipt.Revision, env.Stored(q.Key).Revision, "its record changed, though it has no answer")
	}
	pending, err := ann.Pending(env.Ctx, schemas.Query{SessionID: "S"})
	env.NoError(err)
	env.Len(pending, open)
}

// Each of these answers is refused and changes nothing. An approver to whom the request was not
// routed gets the same refusal as for an unknown id.
func TestARefusedAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = strings.Replace(rig.Everybody, `"user_id": "bob"}`, `"user_id": "bob"}, {"connector": "tg", "user_id": "1001"}`, 1)
	})
	ada, ann := env.Agent("ada"), env.Ann()
	q := ada.Asks(rig.Deploy("S", "1"))
	env.Apply(strings.Replace(rig.Everybody, `"user_id": "bob"}`, `"user_id": "bob"}, {"connector": "tg", "user_id": "2002"}`, 1))
	before := env.Stored("S.1")
	good := ann.AnswerTo(q, "allow_once")
	other := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		by     *rig.Person
		change func(*schemas.Answer)
		code   schemas.Code
		says   string
	}{
		"another digest":            {ann, func(a *schemas.Answer) { a.Digest = other }, schemas.CodeStale, ""},
		"an option not offered":     {ann, func(a *schemas.Answer) { a.OptionID = "allow_always" }, schemas.CodeValidation, "option_id: "},
		"no option":                 {ann, func(a *schemas.Answer) { a.OptionID = "" }, schemas.CodeValidation, "option_id: "},
		"both":                      {ann, func(a *schemas.Answer) { a.Cancelled = true }, schemas.CodeValidation, "cancelled: "},
		"a denial with an edit":     {ann, func(a *schemas.Answer) { a.OptionID = "reject_once"; a.UpdatedInput = []byte(`{}`) }, schemas.CodeValidation, "updated_input: "},
		"an edit that is no object": {ann, func(a *schemas.Answer) { a.UpdatedInput = []byte(`[1]`) }, schemas.CodeValidation, "updated_input: "},
		"too long":                  {ann, func(a *schemas.Answer) { a.Message = strings.Repeat("<", schemas.MaxAnswerBytes+1) }, schemas.CodeValidation, "message: "},
		"an unknown id":             {ann, func(a *schemas.Answer) { a.PendingID = "2" }, schemas.CodeNotFound, "no request S.2 is known"},
		"an unknown session":        {ann, func(a *schemas.Answer) { a.SessionID = "T" }, schemas.CodeNotFound, "no request T.1 is known"},
		"not shown to this person":  {env.Person("tg", "2002"), func(a *schemas.Answer) { a.From.UserID = "2002" }, schemas.CodeNotFound, "no request S.1 is known"},
		"a stranger":                {ann, func(a *schemas.Answer) { a.From.UserID = "eve" }, schemas.CodeForbidden, ""},
		"another connector's name":  {ann, func(a *schemas.Answer) { a.From.UserID = "bob" }, schemas.CodeForbidden, ""},
		"nobody":                    {ann, func(a *schemas.Answer) { a.From.UserID = "" }, schemas.CodeValidation, "from.user_id: "},
	} {
		a := good
		c.change(&a)
		_, err := c.by.Answer(env.Ctx, a)
		env.Contains(env.Refusal(err, c.code).Message, c.says, name)
		env.Equal(before, env.Stored("S.1"), name)
	}
	env.Contains(env.Armed(), "S.1")
	env.Equal(schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, ann.Allows(q).By)
}

func TestAnotherAgentsSessionIsNotFound(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ben := env.Agent("ada"), env.Agent("ben")
	q := ada.Asks(rig.Deploy("S", "1"))
	before := env.Stored("S.1")
	var texts []string
	for _, r := range []schemas.Request{rig.Deploy("S", "1"), rig.Deploy("S", "2"), rig.Lookup("S", "3")} {
		texts = append(texts, ben.Refused(r, schemas.CodeNotFound).Message)
	}
	for _, id := range []string{"1", "2"} {
		_, err := ben.Asker.Withdraw(env.Ctx, "S", id, "")
		texts = append(texts, env.Refusal(err, schemas.CodeNotFound).Message)
	}
	env.Len(slices.Compact(texts), 1, "the refusals differ between existing and unknown requests: %q", texts)
	env.Equal(before, env.Stored("S.1"))
	keys := env.Kept()
	env.Equal([]string{"S.1"}, keys)
	env.Ann().Allows(q)
	q.Ends(schemas.Allowed)
}

func TestARequestWithoutAnApproverIsUndeliverable(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = `{"approvers": {"people": []}}` })
	ada := env.Agent("ada")
	env.Contains(ada.Refused(rig.Deploy("S", "1"), schemas.CodeUndeliverable).Message, "nod settings apply")
	env.NothingStored()
	env.Apply(`{}`)
	ada.Refused(rig.Deploy("S", "1"), schemas.CodeUndeliverable)

	// the request can go only to a carrier, and the carrier has no worker
	env.Apply(`{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "tg", "user_id": "1"}]}]}}`)
	env.Contains(ada.Refused(rig.Deploy("S", "1"), schemas.CodeUndeliverable).Message, "nod connector")
	env.NothingStored()
	env.Registers("tg", "w1", false)
	ada.Asks(rig.Deploy("S", "1"))
	env.Registers("tg", "w1", true)
	ada.Refused(rig.Deploy("S", "2"), schemas.CodeUndeliverable)

	// An inbox counts as reachable even if no person has it open.
	env.Apply(rig.Everybody)
	ada.Asks(rig.Deploy("S", "2"))
}

func TestMalformedRequestsAreRefusedWithTheFieldsName(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	conn := env.Agent("ada").Conn
	with := func(change func(*schemas.Request)) any {
		r := rig.Deploy("S", "1")
		r.Type, r.CreatedAt = schemas.TypeRequest, r.CreatedAt.AddDate(2025, 0, 0)
		change(&r)
		return r
	}
	raw := func(fields map[string]any) any {
		m := map[string]any{
			"type": "nod.v1.request", "session_id": "S", "pending_id": "1", "kind": "tool_call", "title": "T", "tool_name": "Deploy",
			"action_type": "other", "action_details": map[string]any{}, "created_at": "2026-01-18T00:00:00Z",
		}
		for k, v := range fields {
			if m[k] = v; v == nil {
				delete(m, k)
			}
		}
		return m
	}
	for name, c := range map[string]struct {
		subject string // the part of the subject after "nod.v1.request.ada."
		message any
		field   string
	}{
		"no object":          {"S.1", "a text", "not a JSON object"},
		"another type":       {"S.1", raw(map[string]any{"type": "nod.v1.answer"}), "type: "},
		"another version":    {"S.1", raw(map[string]any{"type": "nod.v2.request"}), "type: "},
		"no title":           {"S.1", raw(map[string]any{"title": nil}), "title: "},
		"no tool":            {"S.1", with(func(r *schemas.Request) { r.ToolName = "" }), "tool_name: "},
		"unknown kind":       {"S.1", raw(map[string]any{"kind": "order"}), "kind: "},
		"details no object":  {"S.1", raw(map[string]any{"action_details": []int{1}}), "action_details: "},
		"a huge number":      {"S.1", raw(map[string]any{"action_details": map[string]any{"n": 1 << 60}}), "action_details.n: "},
		"a timeout in words": {"S.1", raw(map[string]any{"timeout_seconds": "long"}), "timeout_seconds: "},
		"an endless timeout": {"S.1", raw(map[string]any{"timeout_seconds": 1 << 40}), "timeout_seconds: "},
		"no permission":      {"S.1", with(func(r *schemas.Request) { r.Kind = schemas.KindPermission }), "Reason is required."},
		"an option twice": {"S.1", with(func(r *schemas.Request) {
			r.Options = append(schemas.DefaultOptions(), schemas.DefaultOptions()[0])
		}), "options[2].option_id: "},
		"an option of an unknown kind": {"S.1", raw(map[string]any{"options": []any{map[string]any{"option_id": "a", "name": "A", "kind": "maybe"}}}), "options[0].kind: "},
		"too large":                    {"S.1", with(func(r *schemas.Request) { r.Reason = strings.Repeat("<", schemas.MaxRequestBytes) }), "bytes long"},
		"an id with a dot":             {"S.1", raw(map[string]any{"pending_id": "a.b"}), "pending_id: "},
		"no id":                        {"S.1", raw(map[string]any{"session_id": ""}), "session_id: "},
		"another subject":              {"S.2", raw(nil), "session_id, pending_id: "},
		"another session's subject":    {"T.1", raw(nil), "session_id, pending_id: "},
		"a subject without an id":      {"S.%", raw(nil), "holds an id"},
		"a subject with a long id":     {"S." + strings.Repeat("a", 129), raw(nil), "holds an id"},
	} {
		err := conn.CallInto(env.Ctx, "nod.v1.request.ada."+c.subject, c.message, &schemas.Receipt{})
		env.Contains(env.Refusal(err, schemas.CodeValidation).Message, c.field, name)
	}
	env.NothingStored()
	sessions, err := env.Store.Sessions.LiveKeys(env.Ctx, "*.*")
	env.NoError(err)
	env.Empty(sessions)
	length := 250 << 10
	if testing.Short() {
		length = 25 << 10 // with the race detector, the rules check a longer text for about as long as an agent waits for the reply, which it then asks for again
	}
	r := rig.Deploy("S", "1") // a request of the greatest length can still be decided
	r.ActionDetails = []byte(`{"text":"` + strings.Repeat("<", length) + `"}`)
	q := env.Agent("ada").Asks(r)
	a := env.Ann().AnswerTo(q, "allow_once")
	a.UpdatedInput = r.ActionDetails
	d, err := env.Ann().Answer(env.Ctx, a)
	env.NoError(err)
	env.Equal(d, q.Hears())
}

// A request, valid or malformed, may name a reply subject outside its sender's inbox. The engine does not
// reply to such a subject, because another client could take the reply for a decision or a view.
func TestRepliesGoOnlyToTheAgentsOwnInbox(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	heard := make(chan string, 100)
	_, err := env.Agent("ben").Conn.Subscribe("nod.v1.decision.ben.>", func(m bus.Message) { heard <- string(m.Data) })
	env.NoError(err)
	env.NoError(env.Agent("ben").Conn.Flush(env.Ctx))
	ada := env.RawConn(roles.AgentID("ada"))
	good, err := schemas.Encode(rig.Lookup("S", "1"))
	env.NoError(err)
	for _, subject := range []string{"nod.v1.request.ada.S.1", "nod.v1.request.ada.S.%", "nod.v1.withdraw.ada.S.%", "nod.v1.await.ada"} {
		for _, data := range [][]byte{good, nil, []byte("{")} {
			for _, reply := range []string{"nod.v1.decision.ben.S.1", "nod.v1.view.S.1", "_INBOX.agent.ben.x"} {
				env.NoError(ada.PublishRequest(subject, reply, data))
			}
		}
	}
	env.NoError(ada.Flush())
	for i := range 3 { // the engine gets these requests after the published messages
		d := env.Agent("ada").Gets(rig.Lookup("S", fmt.Sprint("after", i)))
		env.Equal(schemas.Allowed, d.Outcome)
	}
	env.Agent("ada").Withdraws("S", "after0")
	_, err = env.Agent("ben").Sends(rig.Lookup("T", "1"), false) // after this reply, ben's connection has received all earlier messages
	env.NoError(err)
	for len(heard) > 0 {
		t.Error(<-heard)
	}
}
