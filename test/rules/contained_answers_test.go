package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The tests of this file answer questions about calls that a host can run contained. Whatever the answer is,
// no waiting call runs outside its container.

const npm = "@network:registry.npmjs.org:443"

// joined returns containedSettings with identical calls joined to one question.
func joined() string {
	return strings.Replace(containedSettings(""), `"permissions":{`, `"permissions":{"join_identical":true,`, 1)
}

// startJoined starts an agent, and nod with the settings that the function joined returns.
func startJoined(t *testing.T) (*rig.Env, *rig.Agent) {
	t.Helper()
	env := rig.Start(t)
	env.Apply(joined())
	return env, env.Agent("ada")
}

// npmCI sends identical calls of `npm ci`, which wait for one question. The command needs the network.
func npmCI(a *rig.Agent, session string, calls int) (requests []schemas.Request, asked []*rig.Question) {
	a.T.Helper()
	for i := range calls {
		requests = append(requests, line(session, fmt.Sprint("c", i), "npm ci"))
		asked = append(asked, a.Asks(requests[i]))
	}
	return requests, asked
}

// startsOnce requires that an allowed call starts exactly once, with access to npm's hosts.
func startsOnce(env *rig.Env, a *rig.Agent, r schemas.Request, d schemas.Decision) {
	env.T.Helper()
	env.Equal(fmt.Sprintf("'/usr/bin/nod' exec --run %s.%s -- bash -c 'npm ci'", r.SessionID, r.PendingID), runsAs(env, d))
	running, err := starts(a, r, "bash", "-c", "npm ci")
	env.NoError(err)
	env.Equal(schemas.Container{Dir: "/app", Project: "/app", Permissions: []string{npm}}, running.Container)
	_, err = starts(a, r, "bash", "-c", "npm ci")
	env.Contains(env.Refusal(err, schemas.CodeConflict).Message, "has run already")
}

// startsNot requires that nod refuses to start the command of a call from npmCI, and returns the refusal.
func startsNot(env *rig.Env, a *rig.Agent, r schemas.Request) *schemas.Error {
	env.T.Helper()
	_, err := starts(a, r, "bash", "-c", "npm ci")
	return env.Refusal(err, schemas.CodeForbidden)
}

func TestAnAllowedCallRunsContainedWithWhatItLacked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*schemas.Answer){
		"once":        func(*schemas.Answer) {},
		"session":     func(a *schemas.Answer) { a.Scope = schemas.ScopeSession },
		"an hour":     func(a *schemas.Answer) { a.Scope, a.ForSeconds = schemas.ScopeSession, 3600 },
		"from now on": func(a *schemas.Answer) { a.Scope = schemas.ScopeAgent },
	} {
		for _, calls := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d calls", name, calls), func(t *testing.T) {
				t.Parallel()
				env, ada := startJoined(t)
				requests, asked := npmCI(ada, "S", calls)
				prompt, _, err := env.Ann().Show(env.Ctx, "S", "c0")
				env.NoError(err)
				env.Equal(calls, prompt.Waiters)
				env.Nil(prompt.Run, "nothing may run yet")
				startsNot(env, ada, requests[0])

				a := env.Ann().AnswerTo(asked[0], "allow_once")
				a.Waiters = calls
				change(&a)
				said, err := env.Ann().Answer(env.Ctx, a)
				env.NoError(err)
				again, err := env.Ann().Answer(env.Ctx, a)
				env.NoError(err, "the same answer again agrees with the stored one")
				env.Equal(said.DecisionID, again.DecisionID)
				for i, q := range asked {
					startsOnce(env, ada, requests[i], q.Ends(schemas.Allowed))
				}
				later := line("S", "later", "npm ci")
				if name == "once" {
					ada.Asks(later).Drop()
					return
				}
				startsOnce(env, ada, later, ada.Gets(later))
			})
		}
	}
}

// If nod stops after the answer and before the calls start, each call still starts once, in its container.
func TestAnAllowedCallRunsContainedAfterARestart(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]schemas.Scope{"once": schemas.ScopeOnce, "session": schemas.ScopeSession} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, ada := startJoined(t)
			requests, asked := npmCI(ada, "S", 2)
			env.StopOutbox() // nod now stores the decision, but does nothing else
			a := env.Ann().AnswerTo(asked[0], "allow_once")
			a.Waiters, a.Scope = 2, scope
			_, err := env.Ann().Answer(env.Ctx, a)
			env.NoError(err)
			for _, q := range asked {
				q.Drop()
			}
			env.Down()
			env.Up(rig.Setup{Engines: 1})

			ada = env.Agent("ada")
			for _, r := range requests {
				startsOnce(env, ada, r, ada.Gets(r))
			}
		})
	}
}

// A joined call can start if only the question's record has the decision, and the call's own record does not
// have it yet.
func TestAJoinedCallStartsBeforeItsOwnRecordIsDecided(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 2)
	env.StopOutbox()
	_, err := env.Ann().SaysOf(asked[0], "allow_once", 2)
	env.NoError(err)
	env.Nil(env.Stored(requests[1].Key()).Record.Decision)
	for i, q := range asked {
		startsOnce(env, ada, requests[i], q.Ends(schemas.Allowed))
	}
}

func TestADeniedOrWithdrawnCallDoesNotStart(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 2)
	ada.Withdraws("S", "c0")
	_, err := env.Ann().SaysOf(asked[0], "allow_once", 2)
	env.NoError(err)
	startsOnce(env, ada, requests[1], asked[1].Ends(schemas.Allowed))
	startsNot(env, ada, requests[0])

	requests, asked = npmCI(ada, "T", 1)
	env.Ann().Denies(asked[0])
	env.Nil(env.Stored(requests[0].Key()).Record.Run)
	startsNot(env, ada, requests[0])
}

// A call that was allowed does not start if a rule denies it in the meantime, or if its permission is
// revoked.
func TestAnApprovedCallIsCheckedAgainBeforeItStarts(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 1)
	env.Ann().Remembers(asked[0], schemas.ScopeSession, 0)
	s, err := ada.Holds("S")
	env.NoError(err)
	env.NoError(env.Owner().Revoke(env.Ctx, &s.Grants[0]))
	startsNot(env, ada, requests[0])

	requests, asked = npmCI(ada, "T", 1)
	env.Ann().Allows(asked[0])
	env.Apply(containedSettings("Bash"))
	env.Contains(startsNot(env, ada, requests[0]).Message, "deny Bash")
}

// A person allows a call after its agent has stopped waiting. The next identical call uses the approval and
// runs contained, but a call that cannot run contained does not use it.
func TestAnApprovalOfAContainedCallIsForItsContainer(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	q := ada.Detaches(line("S", "c0", "npm ci"))
	d := env.Ann().Allows(q)
	env.NotNil(d.Grant)
	env.True(d.Grant.Call.Contained)
	bare := line("S", "bare", "npm ci")
	bare.Contain = ""
	ada.Asks(bare).Drop()
	next := line("S", "next", "npm ci")
	startsOnce(env, ada, next, ada.Gets(next))
	ada.Asks(line("S", "third", "npm ci")).Drop()
}

// changeApproval changes the stored approval of a decision, as if a nod of another version or with other
// settings had stored it.
func changeApproval(env *rig.Env, d schemas.Decision, change func(*schemas.StandingAnswer)) {
	env.T.Helper()
	key := "standing.session." + d.SessionID + "." + d.Grant.GrantID
	env.Soon("the approval is stored", func() bool {
		var page schemas.Grants
		_, err := env.Store.Sessions.Get(env.Ctx, key, &page)
		return err == nil
	})
	_, _, err := bus.Change(env.Ctx, env.Store.Sessions, key, func(page *schemas.Grants, _ bool) (bus.Edit, error) {
		change(&page.Grants[0])
		return bus.Edit{Store: true, Kept: time.Hour}, nil
	})
	env.NoError(err)
}

func in(change func(*schemas.Container)) func(*schemas.StandingAnswer) {
	return func(g *schemas.StandingAnswer) {
		c := *g.Call.Container
		change(&c)
		g.Call.Container = &c
	}
}

// An approval of a contained call covers only the container that the person saw. If nod would run the call
// with other limits, nod asks a person.
func TestAnApprovalForAnotherContainerAsks(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(joined())
	ada := env.Agent("ada")
	for name, change := range map[string]func(*schemas.StandingAnswer){
		"dir":     in(func(c *schemas.Container) { c.Dir = "/app/web" }),
		"project": in(func(c *schemas.Container) { c.Project = "/" }),
		"write":   in(func(c *schemas.Container) { c.ReadOnly = true }),
		"none":    in(func(c *schemas.Container) { c.Permissions = nil }),
		"host":    in(func(c *schemas.Container) { c.Permissions = []string{"@network:example.org:443"} }),
		"old":     func(g *schemas.StandingAnswer) { g.Call.Container = nil },
	} {
		d := env.Ann().Allows(ada.Detaches(line(name, "c0", "npm ci")))
		env.Equal(&schemas.Container{Dir: "/app", Project: "/app", Permissions: []string{npm}}, d.Grant.Call.Container)
		changeApproval(env, d, change)
		ada.Asks(line(name, "next", "npm ci")).Drop()
	}
}

// A call has two approvals for different containers. The newer approval replaces the older one, so that the
// call runs only once, in the newer container.
func TestApprovalsForTwoContainersAreNotAddedUp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*schemas.StandingAnswer){
		"another container": in(func(c *schemas.Container) { c.Project = "/" }),
		"no container":      func(g *schemas.StandingAnswer) { g.Call.Contained, g.Call.Container = false, nil },
		"an older nod":      func(g *schemas.StandingAnswer) { g.Call.Container = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := rig.Start(t)
			env.Apply(joined())
			ada := env.Agent("ada")
			first, second := ada.Detaches(line("S", "c0", "npm ci")), line("S", "c1", "npm ci")
			second.NodPath = "/opt/nod" // the host runs nod from another path, so the call cannot join the first question
			other := ada.Detaches(second)
			changeApproval(env, env.Ann().Allows(first), change)
			d := env.Ann().Allows(other)
			env.Soon("the newer approval is stored", func() bool {
				s, err := ada.Holds("S")
				env.NoError(err)
				return len(s.Grants) == 1 && s.Grants[0].Question == "c1"
			})
			s, err := ada.Holds("S")
			env.NoError(err)
			env.Equal(d.Grant.Call, s.Grants[0].Call)
			env.Equal([]string{"c1"}, s.Grants[0].For)
			env.Equal(1, s.Grants[0].Uses)

			next := line("S", "next", "npm ci")
			startsOnce(env, ada, next, ada.Gets(next))
			ada.Asks(line("S", "third", "npm ci")).Drop()
		})
	}
}

// A call that is sent again does not use an approval for another container than its own.
func TestACallDoesNotUseTheApprovalOfAnotherContainer(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(joined())
	ada := env.Agent("ada")
	first := line("S", "c0", "npm ci")
	changeApproval(env, env.Ann().Allows(ada.Detaches(first)), in(func(c *schemas.Container) { c.Project = "/" }))
	_, err := ada.Sends(first, true)
	env.Contains(env.Refusal(err, schemas.CodeConflict).Message, "ask again")
}

// A call that its host cannot run contained does not join the question of a call that can run contained.
func TestCallsOfOtherContainersAskForThemselves(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 1)
	bare, elsewhere := line("S", "bare", "npm ci"), line("S", "elsewhere", "npm ci")
	bare.Contain, elsewhere.NodPath = "", "/opt/nod"
	other, third := ada.Asks(bare), ada.Asks(elsewhere)
	_, err := env.Ann().SaysOf(asked[0], "allow_once", 3)
	env.NoError(err)
	startsOnce(env, ada, requests[0], asked[0].Ends(schemas.Allowed))
	env.Nil(env.Stored(other.Key).Record.Decision)
	env.Nil(env.Stored(third.Key).Record.Decision)
	env.Nil(env.Ann().Allows(other).UpdatedInput, "a person has allowed the call as it is")
}

// If a person grants a permission that a waiting call needs, nod decides the call when its agent sends it
// again.
func TestAWaitingCallThatIsSentAgainUsesTheNewPermission(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 2)
	env.Ann().Remembers(ada.Asks(rig.Permission("S", "p1", "to install", npm)), schemas.ScopeSession, 0)
	reply, err := ada.Sends(requests[1], true)
	env.NoError(err)
	env.Equal(schemas.TypeDecision, reply.Type)
	for i, q := range asked {
		startsOnce(env, ada, requests[i], q.Ends(schemas.Allowed))
	}
}

func TestACallThatRunsContainedIsNotEdited(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	requests, asked := npmCI(ada, "S", 1)
	a := env.Ann().AnswerTo(asked[0], "allow_once")
	a.UpdatedInput = []byte(`{"command":"npm ci --ignore-scripts"}`)
	_, err := env.Ann().Answer(env.Ctx, a)
	env.Contains(env.Refusal(err, schemas.CodeValidation).Message, "say what to run instead")
	env.Nil(env.Stored(requests[0].Key()).Record.Decision)
}

func TestACommandStartsSoonAfterItsDecisionOrNot(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	for age, starting := range map[time.Duration]bool{schemas.MaxRunAge: false, schemas.MaxRunAge - time.Minute: true} {
		for _, byPerson := range []bool{false, true} {
			session := fmt.Sprintf("S%d%v", int(age.Seconds()), byPerson)
			r, command := line(session, "c1", "make test"), "make test"
			if byPerson {
				r, command = line(session, "c1", "npm ci"), "npm ci"
				env.Ann().Allows(ada.Asks(r))
			} else {
				env.Equal(schemas.Allowed, ada.Gets(r).Outcome)
			}
			entry := env.Stored(r.Key())
			entry.Record.Decision.DecidedAt = entry.Record.Decision.DecidedAt.Add(-age)
			_, err := env.Store.Records.Amend(env.Ctx, entry, time.Hour)
			env.NoError(err)
			_, err = starts(ada, r, "bash", "-c", command)
			if starting {
				env.NoError(err)
			} else {
				env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "too long ago")
			}
		}
	}
}

// If a new rule demands two people after one person has allowed a contained call, the call does not start
// until two people allow it.
func TestAContainedCallOfOnePersonDoesNotStartIfTwoAreNeeded(t *testing.T) {
	t.Parallel()
	env, ada := startJoined(t)
	two := strings.Replace(joined(), `"permissions":{`, `"permissions":{"confirm":[{"risk":"low","votes":2}],`, 1)
	requests, asked := npmCI(ada, "S", 1)
	env.Ann().Allows(asked[0])
	env.Apply(two)
	startsNot(env, ada, requests[0])

	requests, asked = npmCI(ada, "T", 1)
	votes(env.Ann(), asked[0])
	startsNot(env, ada, requests[0])
	d := env.Bob().Allows(asked[0])
	startsOnce(env, ada, requests[0], asked[0].Ends(schemas.Allowed))
	env.Equal([]string{"Ann", "Bob"}, schemas.Voters(d.Votes))
}
