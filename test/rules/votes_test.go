package rules

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// people has three approvers: Ann, with two identities, Bob and Cleo. Ann's own agents run as the user ann.
const people = `"approvers": {"people": [
	{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "1001"}]},
	{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]},
	{"name": "Cleo", "identities": [{"connector": "tg", "user_id": "1003"}]}
]}`

// twoOf returns settings by which two people must allow each call. The string more adds permissions.
func twoOf(more string) string {
	return `{"permissions": {"confirm": [{"risk": "low", "votes": 2}]` + more + `}, ` + people + `}`
}

func voting(t *testing.T, settings string) *rig.Env {
	t.Helper()
	return rig.Start(t, func(s *rig.Setup) { s.Settings, s.Engines = settings, 2 })
}

// The function votes sends an allow, requires that nod stores it as a vote, and returns nod's message.
func votes(p *rig.Person, q *rig.Question) string {
	p.T.Helper()
	_, err := p.Says(q, "allow_once")
	return p.Refusal(err, schemas.CodeVoted).Message
}

// pendingWith requires that a question is pending with votes of exactly these people.
func pendingWith(env *rig.Env, q *rig.Question, names ...string) {
	env.T.Helper()
	rec := env.Stored(q.Key).Record
	env.Nil(rec.Decision)
	env.Equal(append([]string{}, names...), schemas.Voters(rec.Votes))
	if len(names) > 0 {
		env.Equal(schemas.TeamRecord, rec.Type)
	}
}

func TestTwoPeopleMustAllow(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	ann, bob, phone := env.Ann(), env.Bob(), env.Person("tg", "1001")
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Equal(schemas.TeamRecord, env.Stored(q.Key).Record.Type, "an older engine cannot read it")

	env.Equal("your vote is stored (1 of 2: Ann); nothing is allowed before 2 people have voted", votes(ann, q))
	first := env.Stored(q.Key)
	pendingWith(env, q, "Ann")
	votes(ann, q)
	votes(phone, q)
	env.Equal(first.Revision, env.Stored(q.Key).Revision, "one person counts once, on all channels")
	shown, _, err := bob.Show(env.Ctx, "S", "1")
	env.NoError(err)
	env.Equal([]string{"Ann"}, schemas.Voters(shown.Votes))
	env.Equal(2, shown.VotesNeeded)
	env.Equal([]string{"2 people"}, shown.Conditions)

	d := bob.Allows(q)
	env.Equal(schemas.Allowed, d.Outcome)
	env.Equal("Bob", d.By.Name)
	env.Equal([]string{"Ann", "Bob"}, schemas.Voters(d.Votes))
	env.Equal(d.DecisionID, q.Ends(schemas.Allowed).DecisionID)
	env.Equal(schemas.TypeRecord, env.Stored(q.Key).Record.Type, "every engine may read the outcome")
	env.Equal(d.DecisionID, ann.Allows(q).DecisionID, "a repeated answer")
	_, err = env.Person("tg", "1003").Says(q, "reject_once")
	env.Equal(d.DecisionID, env.Refusal(err, schemas.CodeConflict).Decision().DecisionID)
	env.Soon("both votes and the decision are logged", func() bool {
		return env.Logged(schemas.LogVoted)[q.Key] == 2 && env.Logged(schemas.LogDecided)[q.Key] == 1
	})
}

func TestTheFirstDenialEndsAVote(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	votes(env.Ann(), q)
	d := env.Bob().Denies(q)
	env.Equal(d.DecisionID, q.Ends(schemas.Denied).DecisionID)
	_, err := env.Person("tg", "1003").Says(q, "allow_once")
	env.Equal(d.DecisionID, env.Refusal(err, schemas.CodeConflict).Decision().DecisionID)
	q = env.Agent("ada").Asks(rig.Deploy("S", "2"))
	votes(env.Ann(), q)
	env.Equal("changed my mind", func() string { env.Agent("ada").Withdraws("S", "2"); return q.Ends(schemas.Withdrawn).Message }())
}

// Ann on two channels and Bob allow a question at the same time on two engines, and in some rounds Cleo
// denies it. An allowed decision has exactly two voters. Each person gets the one decision, or learns that
// the vote is stored.
func TestRacingVotesMakeOneDecision(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	ada := env.Agent("ada")
	rounds := rig.Times(t, 20, 60)
	outcomes := map[schemas.Outcome]int{}
	for i := range rounds {
		q := ada.Asks(rig.Deploy("S", fmt.Sprint(i)))
		parties := []*rig.Person{env.Ann(), env.Person("tg", "1001"), env.Bob()}
		options := []string{"allow_once", "allow_once", "allow_once"}
		if i%3 == 0 {
			parties, options = append(parties, env.Person("tg", "1003")), append(options, "reject_once")
		}
		heard := make([]schemas.Decision, len(parties))
		errs := make([]error, len(parties))
		var wg sync.WaitGroup
		for n, p := range parties {
			wg.Go(func() { heard[n], errs[n] = p.Says(q, options[n]) })
		}
		wg.Wait()
		d := env.Stored(q.Key).Record.Decision
		env.NotNil(d, "Ann and Bob have allowed it")
		env.Equal(d.DecisionID, q.Hears().DecisionID)
		outcomes[d.Outcome]++
		if d.Outcome == schemas.Allowed {
			env.ElementsMatch([]string{"Ann", "Bob"}, schemas.Voters(d.Votes))
		}
		for n, err := range errs {
			switch {
			case err == nil:
				env.Equal(d.DecisionID, heard[n].DecisionID)
			case options[n] == "allow_once" && d.Outcome == schemas.Allowed:
				env.Refusal(err, schemas.CodeVoted)
			default:
				env.Contains([]schemas.Code{schemas.CodeVoted, schemas.CodeConflict}, refusedCode(err))
			}
		}
	}
	t.Log(outcomes)
	env.NotZero(outcomes[schemas.Allowed])
}

func refusedCode(err error) schemas.Code {
	if e, ok := err.(*schemas.Error); ok {
		return e.Code
	}
	return ""
}

// One person answers many times, on all channels at once. nod does not allow the call.
func TestOnePersonNeverDecidesForTwo(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	var wg sync.WaitGroup
	for _, p := range []*rig.Person{env.Ann(), env.Person("tg", "1001"), env.Ann(), env.Person("tg", "1001")} {
		wg.Go(func() {
			for range 10 {
				votes(p, q)
			}
		})
	}
	wg.Wait()
	pendingWith(env, q, "Ann")
}

// A vote counts only as long as the settings let the voter allow the request on the channel of the vote.
func TestAVoteEndsWithTheRightToVote(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	with := func(people string) string {
		return `{"permissions": {"confirm": [{"risk": "low", "votes": 2}]}, "approvers": {"people": [` + people + `]}}`
	}
	const bob, cleo = `{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}`, `{"name": "Cleo", "identities": [{"connector": "tg", "user_id": "1003"}]}`
	for name, settings := range map[string]string{
		"Ann is removed":                       with(bob + `, ` + cleo),
		"Ann may decide less":                  with(`{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}], "max_risk": "low"}, ` + bob + `, ` + cleo),
		"Ann may decide elsewhere":             with(`{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}], "for": {"agents": ["ben"]}}, ` + bob + `, ` + cleo),
		"her identity is another person's":     with(`{"name": "Ann", "identities": [{"connector": "tg", "user_id": "1001"}]}, {"name": "Eve", "identities": [{"connector": "terminal", "user_id": "ann"}]}, ` + bob + `, ` + cleo),
		"she has another name":                 with(`{"name": "Anne", "identities": [{"connector": "terminal", "user_id": "ann"}]}, ` + bob + `, ` + cleo),
		"her channel no longer counts":         `{"permissions": {"confirm": [{"risk": "low", "votes": 2}, {"risk": "low", "second_device": true}]}, "approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}, {"name": "Bob", "identities": [{"connector": "tg", "user_id": "1002"}]}, ` + cleo + `]}}`,
		"the request becomes that of her own":  strings.Replace(strings.Replace(twoOf(""), `"votes": 2`, `"votes": 2, "not_requester": true`, 1), `{"name": "Ann", `, `{"name": "Ann", "requests": {"agents": ["ada"]}, `, 1),
		"three people must allow it from then": strings.Replace(twoOf(""), `"votes": 2`, `"votes": 3`, 1),
	} {
		env.Apply(twoOf(""))
		q := env.Agent("ada").Asks(rig.Deploy("S-"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), "1"))
		votes(env.Ann(), q)
		env.Apply(settings)
		second := env.Bob()
		if strings.Contains(settings, `"1002"`) {
			second = env.Person("tg", "1002")
		}
		said := votes(env.Person("tg", "1003"), q)
		if name == "three people must allow it from then" {
			env.Contains(said, "2 of 3: Ann, Cleo", name)
			votes(env.Person("tg", "1003"), q)
		} else {
			env.Contains(said, "1 of 2: Cleo", name)
			p, _, err := env.Ann().Show(env.Ctx, q.Receipt.SessionID, "1")
			env.NoError(err)
			env.Equal([]string{"Cleo"}, schemas.Voters(p.Votes), name)
		}
		if second.User == "bob" {
			env.Equal(schemas.Allowed, second.Allows(q).Outcome, name)
		}
	}
}

// An allow by two people covers exactly this call, once.
func TestAVoteIsForTheCallAsItIs(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	r := rig.Shell("S", "1", "rm -rf build")
	r.Options = append(schemas.DefaultOptions(), schemas.Option{OptionID: "forever", Name: "Allow always", Kind: schemas.AllowAlways}, schemas.Option{OptionID: "other", Name: "Allow otherwise", Kind: schemas.AllowOnce})
	q := env.Agent("ada").Asks(r)
	env.Empty(env.Stored(q.Key).Record.Remember, "no lasting answer is offered")
	says := func(p *rig.Person, change func(*schemas.Answer)) error {
		a := p.AnswerTo(q, "allow_once")
		change(&a)
		_, err := p.Answer(env.Ctx, a)
		return err
	}
	for message, change := range map[string]func(*schemas.Answer){
		"updated_input: 2 people must allow the same input": func(a *schemas.Answer) { a.UpdatedInput = []byte(`{"command":"ls","cwd":"/app"}`) },
		"scope: settings.json demands 2 people":             func(a *schemas.Answer) { a.Scope = schemas.ScopeSession },
		"scope: settings.json demands 2 people for":         func(a *schemas.Answer) { a.Scope, a.ForSeconds = schemas.ScopeAgent, 60 },
		"option_id: the agent would remember this allow":    func(a *schemas.Answer) { a.OptionID = "forever" },
	} {
		env.Contains(env.Refusal(says(env.Ann(), change), schemas.CodeValidation).Message, message)
	}
	env.Refusal(says(env.Ann(), func(a *schemas.Answer) { a.Digest = strings.Repeat("0", 64) }), schemas.CodeStale)
	pendingWith(env, q)

	votes(env.Ann(), q)
	env.Contains(env.Refusal(says(env.Bob(), func(a *schemas.Answer) { a.OptionID = "other" }), schemas.CodeVoted).Message, "1 of 2: Bob")
	pendingWith(env, q, "Ann", "Bob")
	a := env.Bob().AnswerTo(q, "allow_once")
	a.Message = "after the backup"
	d, err := env.Bob().Answer(env.Ctx, a)
	env.NoError(err)
	env.Equal("allow_once", d.OptionID)
	env.Equal("after the backup", d.Message)
	env.Nil(d.Grant)
}

func TestTheMessagesOfAllVotersReachTheAgent(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	for p, message := range map[*rig.Person]string{env.Ann(): "tag it", env.Bob(): "and tell ops"} {
		a := p.AnswerTo(q, "allow_once")
		a.Message = message
		_, _ = p.Answer(env.Ctx, a)
	}
	d := q.Ends(schemas.Allowed)
	env.Contains(d.Message, "Ann: tag it")
	env.Contains(d.Message, "Bob: and tell ops")
	env.Empty(d.Votes[0].Message)
}

// One vote never becomes an allow by a freeze, a deadline, a restart of the engines, or a repeated request.
func TestAVoteIsNoAllow(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	ada := env.Agent("ada")
	frozen := ada.Asks(rig.Deploy("S", "frozen"))
	votes(env.Ann(), frozen)
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann(), SessionID: "S"})
	env.NoError(err)
	_, err = env.Bob().Says(frozen, "allow_once")
	env.Error(err)
	frozen.Ends(schemas.Denied)
	_, err = env.Person("tg", "1001").Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "1001"}, SessionID: "S"})
	env.NoError(err)
	_, err = env.Bob().Says(frozen, "allow_once")
	env.Refusal(err, schemas.CodeConflict)

	env.Timeout("late", 2*time.Second)
	late := ada.Asks(rig.Deploy("late", "1"))
	votes(env.Ann(), late)
	late.Ends(schemas.TimedOut)
	_, err = env.Bob().Says(late, "allow_once")
	env.Refusal(err, schemas.CodeStale)

	q := ada.Asks(rig.Deploy("S", "again"))
	votes(env.Ann(), q)
	before := env.Stored(q.Key).Revision
	reply, err := ada.Sends(rig.Deploy("S", "again"), true)
	env.NoError(err)
	env.Equal(schemas.TypeReceipt, reply.Type)
	env.Equal(before, env.Stored(q.Key).Revision)
	for _, n := range env.Engines {
		n.Halt()
	}
	env.Engine(engine.Options{})
	pendingWith(env, q, "Ann")
	votes(env.Ann(), q)
	env.Bob().Allows(q)
	q.Ends(schemas.Allowed)
}

// If two people must allow a call, an earlier standing answer or approval of one person does not allow it.
func TestStandingAnswersOfOnePersonAllowNothingForTwo(t *testing.T) {
	t.Parallel()
	one := `{"permissions": {"join_identical": true}, ` + people + `}`
	env := voting(t, one)
	ada := env.Agent("ada")
	granted := ada.Asks(rig.Shell("S", "granted", "make build"))
	env.Ann().Remembers(granted, schemas.ScopeAgent, 0)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "by-grant", "make build")).Outcome)
	left := ada.Detaches(rig.Deploy("S", "left"))
	env.Equal(1, env.Ann().Allows(left).Grant.Uses)

	env.Apply(twoOf(`, "join_identical": true`))
	asked := ada.Asks(rig.Shell("S", "asked", "make build"))
	votes(env.Ann(), asked)
	again := ada.Asks(rig.Deploy("S", "left-again"))
	votes(env.Ann(), again)
	pendingWith(env, again, "Ann")
	env.Bob().Allows(again)
	again.Ends(schemas.Allowed)

	// If two people allow a call after its agent has stopped waiting, their approval counts once.
	gone := ada.Detaches(rig.Call("Publish", "S", "gone"))
	votes(env.Ann(), gone)
	d := env.Bob().Allows(gone)
	env.Equal([]string{"Ann", "Bob"}, schemas.Voters(d.Grant.Votes))
	env.Equal(schemas.Allowed, ada.Gets(rig.Call("Publish", "S", "gone-again")).Outcome)
	ada.Asks(rig.Call("Publish", "S", "gone-thrice"))

	// If three people are needed by now, an approval of two people does not count.
	gone = ada.Detaches(rig.Call("Rotate", "S", "rotate"))
	votes(env.Ann(), gone)
	env.Bob().Allows(gone)
	env.Apply(strings.Replace(twoOf(`, "join_identical": true`), `"votes": 2`, `"votes": 3`, 1))
	ada.Asks(rig.Call("Rotate", "S", "rotate-again"))
}

// A leave of one person does not allow a call that needs several people, another person than the requester,
// or a listed channel. This holds even if the condition is newer than the leave.
func TestALeaveAllowsNothingForSeveralPeople(t *testing.T) {
	t.Parallel()
	plain := `{"permissions": {"preset": "readers"}, ` + people + `}`
	confirm := func(rule string) string {
		return strings.Replace(plain, `"permissions": {`, `"permissions": {"confirm": [`+rule+`], `, 1)
	}
	env := voting(t, plain)
	ada := env.Agent("ada")
	env.Ann().Denies(ada.Asks(rig.Shell("S", "first", "make first")))
	leave := func() error {
		var g schemas.Grants
		return env.Conn(roles.ConnectorID("terminal")).CallInto(env.Ctx, schemas.ManageSubject("terminal", schemas.ManageLeave),
			schemas.LeaveRequest{Type: schemas.TypeLeaveRequest, SessionID: "S", MaxRisk: schemas.RiskMedium, MaxCalls: 50, ForSeconds: 600, From: rig.Ann()}, &g)
	}
	env.NoError(leave())
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "by-leave", "make build")).Outcome)
	for i, rule := range []string{
		`{"risk": "low", "votes": 2}`, `{"risk": "low", "not_requester": true}`,
		`{"risk": "low", "rules": ["Bash(make:*)"], "votes": 2}`, `{"risk": "low", "rules": ["Bash(make:*)"], "channels": ["tg"]}`,
	} {
		env.Apply(confirm(rule))
		q := ada.Asks(rig.Shell("S", fmt.Sprint("asked-", i), "make build"))
		env.Nil(env.Stored(q.Key).Record.Decision, rule)
	}
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "other", "npm test")).Outcome, "the rules are not about this call")
	env.Apply(twoOf(""))
	env.Contains(env.Refusal(leave(), schemas.CodeForbidden).Message, "each takes 2 people")
}

// A call that comes after the first vote becomes a question of its own, unless it repeats a call whose agent
// has stopped waiting. The allow covers only calls that both voters saw.
func TestVotesCoverTheCallsThatAllVotersSaw(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(`, "join_identical": true`))
	ada := env.Agent("ada")
	first := ada.Asks(rig.Deploy("S", "first"))
	second := ada.Asks(rig.Deploy("S", "second"))
	env.Len(env.Stored(first.Key).Record.Waiters, 2)
	_, err := env.Ann().SaysOf(first, "allow_once", 1)
	env.Refusal(err, schemas.CodeVoted)
	third := ada.Asks(rig.Deploy("S", "third"))
	env.Empty(env.Stored(third.Key).Record.Joined, "a question with a vote takes no more calls")
	shown, _, err := env.Bob().Show(env.Ctx, "S", "first")
	env.NoError(err)
	env.Equal([]int{1, 1}, []int{shown.Waiters, shown.Waiting}, "Bob is asked about the call that Ann saw")
	_, err = env.Bob().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	first.Ends(schemas.Allowed)
	env.Soon("the second call is a question again", func() bool {
		rec := env.Stored(second.Key).Record
		return rec.Decision == nil && rec.Joined != "first"
	})
	env.Nil(env.Stored(third.Key).Record.Decision)

	gone := ada.Asks(rig.Call("Publish", "S", "gone"))
	votes(env.Ann(), gone)
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "gone", "the host waits no longer"))
	back := ada.Asks(rig.Call("Publish", "S", "back"))
	env.Equal("gone", env.Stored(back.Key).Record.Joined)
	env.Bob().Allows(gone)
	back.Ends(schemas.Allowed)
}

// A person whose own agent asks can deny the call but not allow it. If nod does not know whose agent asks, no
// person can allow the call.
func TestTheRequesterDoesNotCount(t *testing.T) {
	t.Parallel()
	env := voting(t, `{"permissions": {"confirm": [{"risk": "low", "not_requester": true}]}, "approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "1001"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}], "requests": {"agents": ["ben"], "users": ["bob", "robert"]}}
	]}}`)
	of := func(agent, id, user string) *rig.Question {
		r := rig.Deploy("S-"+agent+id, id)
		r.User = user
		return env.Agent(agent).Asks(r)
	}
	anns := of("ada", "1", "ann")
	for _, p := range []*rig.Person{env.Ann(), env.Person("tg", "1001")} {
		_, err := p.Says(anns, "allow_once")
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "another person than Ann, whose own agent asks")
	}
	shown, _, err := env.Bob().Show(env.Ctx, anns.Receipt.SessionID, "1")
	env.NoError(err)
	env.Equal([]string{"another person than the requester"}, shown.Conditions)
	d := env.Bob().Allows(anns)
	env.Equal([]string{"Bob"}, schemas.Voters(d.Votes))
	env.Ann().Denies(of("ada", "2", "ann"))

	bobs := of("ben", "3", "robert")
	_, err = env.Bob().Says(bobs, "allow_once")
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "another person than Bob")
	env.Ann().Allows(bobs)

	for i, q := range []*rig.Question{of("ada", "4", ""), of("ada", "5", "root"), of("ada", "6", "bob")} {
		_, err = env.Ann().Says(q, "allow_once")
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "nod does not know whose agent ada", i)
		env.Bob().Denies(q)
	}
}

// If two people must allow a call, the requester cannot be one of them.
func TestTheRequesterIsNeitherOfTwo(t *testing.T) {
	t.Parallel()
	env := voting(t, strings.Replace(twoOf(""), `"votes": 2`, `"votes": 2, "not_requester": true`, 1))
	r := rig.Deploy("S", "1")
	r.User = "ann"
	q := env.Agent("ada").Asks(r)
	_, err := env.Ann().Says(q, "allow_once")
	env.Refusal(err, schemas.CodeForbidden)
	votes(env.Bob(), q)
	_, err = env.Person("tg", "1001").Says(q, "allow_once")
	env.Refusal(err, schemas.CodeForbidden)
	pendingWith(env, q, "Bob")
	env.Person("tg", "1003").Allows(q)
	q.Ends(schemas.Allowed)
}

// A condition may name rules, and then applies only to matching calls. Conditions about people apply to calls
// and permissions, but not to questions.
func TestVotesAreForSomeCalls(t *testing.T) {
	t.Parallel()
	env := voting(t, `{"permissions": {"confirm": [{"risk": "low", "rules": ["Bash(terraform apply:*)", "Deploy"], "votes": 2}, {"risk": "high", "votes": 2}]}, `+people+`}`)
	ada := env.Agent("ada")
	env.Ann().Allows(ada.Asks(rig.Shell("S", "plan", "npm test")))
	apply := ada.Asks(rig.Shell("S", "apply", "cd infra && sudo terraform apply"))
	votes(env.Ann(), apply)
	env.Bob().Allows(apply)
	votes(env.Ann(), ada.Asks(rig.Deploy("S", "deploy")))
	votes(env.Ann(), ada.Asks(rig.Shell("S", "risky", "rm -rf /srv")))

	env.Apply(`{"permissions": {"confirm": [{"risk": "low", "votes": 2}]}, ` + people + `}`)
	question := rig.Deploy("S", "question")
	question.Kind, question.ToolName = schemas.KindQuestion, ""
	env.Ann().Allows(ada.Asks(question))
	wanted := ada.Asks(rig.Permission("S", "wanted", "to build", "@write:/srv"))
	a := env.Ann().AnswerTo(wanted, "allow_once")
	a.Scope = schemas.ScopeAgent
	_, err := env.Ann().Answer(env.Ctx, a)
	env.Contains(env.Refusal(err, schemas.CodeValidation).Message, "scope: 2 people must allow the same permission")
	votes(env.Ann(), wanted)
	d := env.Bob().Allows(wanted)
	env.Equal(schemas.ScopeSession, d.Grant.Scope)
	env.Equal([]string{"Ann", "Bob"}, schemas.Voters(d.Grant.Votes))
}

// Only an answer through a listed channel can allow a risky call, but an answer through any channel can deny
// it.
func TestRiskyCallsAreAllowedOnlyThroughListedChannels(t *testing.T) {
	t.Parallel()
	env := voting(t, `{"permissions": {"confirm": [{"risk": "high", "channels": ["tg", "slack"]}]}, `+people+`}`)
	ada := env.Agent("ada")
	env.Ann().Allows(ada.Asks(rig.Shell("S", "plain", "npm test")))
	q := ada.Asks(rig.Shell("S", "risky", "rm -rf /srv"))
	env.Equal(schemas.TeamRecord, env.Stored(q.Key).Record.Type)
	for _, p := range []*rig.Person{env.Ann(), env.Bob()} {
		_, err := p.Says(q, "allow_once")
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "takes an answer through tg or slack")
	}
	env.Equal(schemas.Allowed, env.Person("tg", "1001").Allows(q).Outcome)
	env.Ann().Denies(ada.Asks(rig.Shell("S", "denied", "rm -rf /srv")))
	_, err := env.Owner().ApplySettings(env.Ctx, []byte(`{"permissions": {"confirm": [{"risk": "high", "channels": ["slack"]}]}, `+people+`}`))
	env.Contains(env.Refusal(err, schemas.CodeValidation).Message, "permissions.confirm[0]: no approver has an identity that could allow: it takes an answer through slack")
}

func TestSettingsThatNoPeopleCanMeetAreRefused(t *testing.T) {
	t.Parallel()
	env := voting(t, twoOf(""))
	for settings, message := range map[string]string{
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 4`, 1):                                            "permissions.confirm[0]: takes the votes of 4 people, and only 3 could allow",
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 2, "min_channel": "screen"`, 1):                   "",
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 3, "second_device": true`, 1):                     "permissions.confirm[0]: takes the votes of 3 people, and only 2 could allow",
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 1`, 1):                                            "permissions.confirm[0].votes",
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 2, "rules": ["Bash("]`, 1):                        "permissions.confirm[0].rules",
		strings.Replace(twoOf(""), `"votes": 2`, `"votes": 2, "rules": ["Deploy"], "code_word_env": "W"`, 1): "permissions.confirm[0]: names rules and a code word",
		strings.Replace(twoOf(""), `{"name": "Ann", `, `{"name": "Ann", "requests": {}, `, 1):                "approvers.people[0].requests",
		strings.Replace(twoOf(""), `"risk": "low", "votes": 2`, `"risk": "low", "rules": ["Deploy"]`, 1):     "permissions.confirm[0]: has no condition",
	} {
		_, err := env.Owner().ApplySettings(env.Ctx, []byte(settings))
		if message == "" {
			env.NoError(err)
			continue
		}
		env.True(strings.HasPrefix(env.Refusal(err, schemas.CodeValidation).Message, message), "%v", err)
	}
}

// An approval of two people replaces an earlier approval of one person, so that the two together allow only
// one call.
func TestAnApprovalOfTwoPeopleReplacesThatOfOne(t *testing.T) {
	t.Parallel()
	env := voting(t, `{"permissions": {"join_identical": true}, `+people+`}`)
	ada := env.Agent("ada")
	env.Equal(1, env.Ann().Allows(ada.Detaches(rig.Deploy("S", "one"))).Grant.Uses)
	env.Apply(twoOf(`, "join_identical": true`))
	two := ada.Detaches(rig.Deploy("S", "two"))
	votes(env.Ann(), two)
	env.Bob().Allows(two)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "three")).Outcome)
	pendingWith(env, ada.Asks(rig.Deploy("S", "four")))
}
