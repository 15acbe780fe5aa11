package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const issuer = "https://login.example.com"

// byLogin returns settings with an issuer and some of its groups. The string more adds permissions, and ann
// adds identities of Ann.
func byLogin(more, ann string) string {
	return `{"permissions": {"ask": ["Deploy"]` + more + `}, "approvers": {
		"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}` + ann + `]}],
		"groups": [
			{"name": "ops", "oidc_groups": ["nod-ops"], "for": {"agents": ["ada"]}, "max_risk": "medium"},
			{"name": "security", "oidc_groups": ["nod-security"]}
		]}, "connectors": {"web": {"public_url": "https://nod.example.com", "oidc": {"issuer": "` + issuer + `", "client_id": "nod"}}}}`
}

const annsLogin = `, {"connector": "web", "user_id": "` + issuer + `|s-ann"}`

// annsMail names Ann by her e-mail address at the issuer, which she can change. A group member who logs in at
// the issuer could therefore be Ann.
const annsMail = `, {"connector": "web", "user_id": "` + issuer + `|email=ann@example.com"}`

// loggedIn returns a function by which a person of the issuer allows a question. The duration ago says how
// long before the answer the issuer checked the person and these groups.
func loggedIn(env *rig.Env, subject string, ago time.Duration, groups ...string) func(*rig.Question) error {
	return shownAs(env, "Cleo", subject, ago, groups...)
}

// shownAs is like loggedIn, for a person with the given display name.
func shownAs(env *rig.Env, name, subject string, ago time.Duration, groups ...string) func(*rig.Question) error {
	p := env.Person("web", issuer+"|"+subject)
	return func(q *rig.Question) error {
		a := p.AnswerTo(q, "allow_once")
		a.From.Login = &schemas.Login{Issuer: issuer, Subject: subject, Name: name, Groups: groups, CheckedAt: time.Now().Add(-ago)}
		_, err := p.Answer(p.Ctx, a)
		return err
	}
}

func TestAMemberByLoginIsAnApprover(t *testing.T) {
	t.Parallel()
	env := voting(t, byLogin("", ""))
	asks := func(agent, id string) *rig.Question { return env.Agent(agent).Asks(rig.Deploy("S"+agent, id)) }
	env.NoError(loggedIn(env, "s-cleo", 0, "nod-ops")(asks("ada", "1")))
	env.NoError(loggedIn(env, "s-cleo", 0, "nod-security")(asks("ben", "1")))
	env.Soon("what the issuer said is logged", func() bool { return env.LoggedOf(schemas.LogVouched) == 2 })

	q := asks("ben", "2")
	env.Refusal(loggedIn(env, "s-cleo", 0, "nod-ops")(q), schemas.CodeForbidden)
	for name, err := range map[string]error{
		"no group":          loggedIn(env, "s-cleo", 0)(q),
		"nod's own name":    loggedIn(env, "s-cleo", 0, "security", "Ann")(q),
		"an unnamed person": loggedIn(env, "", 0, "nod-security")(q),
	} {
		env.Error(err, name)
	}
	env.Refusal(loggedIn(env, "s-cleo", 61*time.Second, "nod-security")(q), schemas.CodeUnauthorized)
	env.Refusal(loggedIn(env, "s-cleo", -time.Minute, "nod-security")(q), schemas.CodeUnauthorized)

	p := env.Person("web", issuer+"|s-cleo")
	_, err := p.Says(q, "allow_once")
	env.Refusal(err, schemas.CodeForbidden)
	for name, change := range map[string]func(*schemas.Answer){
		"another issuer":  func(a *schemas.Answer) { a.From.Login.Issuer = "https://evil.example" },
		"another subject": func(a *schemas.Answer) { a.From.Login.Subject = "s-bob" },
		"another person":  func(a *schemas.Answer) { a.From.UserID = "ann" },
	} {
		a := p.AnswerTo(q, "allow_once")
		a.From.Login = &schemas.Login{Issuer: issuer, Subject: "s-cleo", Groups: []string{"nod-security"}, CheckedAt: time.Now()}
		change(&a)
		_, err := p.Answer(p.Ctx, a)
		env.Refusal(err, schemas.CodeForbidden)
		env.Nil(env.Stored(q.Key).Record.Decision, name)
	}
	phone := env.Person("tg", "1")
	a := phone.AnswerTo(q, "allow_once")
	a.From.Login = &schemas.Login{Issuer: issuer, Subject: "s-cleo", Groups: []string{"nod-security"}, CheckedAt: time.Now()}
	_, err = phone.Answer(phone.Ctx, a)
	env.Refusal(err, schemas.CodeForbidden)
	env.Nil(env.Stored(q.Key).Record.Decision)
}

// Ann, whom the settings name, logs in as a member of a group at the issuer. She counts as one person,
// because the settings name her identity at the issuer.
func TestMembersByLoginCountApart(t *testing.T) {
	t.Parallel()
	twice := `, "confirm": [{"risk": "low", "votes": 2}]`
	env := voting(t, byLogin(twice, annsLogin))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	votes(env.Ann(), q)
	env.Refusal(loggedIn(env, "s-ann", 0, "nod-ops")(q), schemas.CodeVoted)
	pendingWith(env, q, "Ann")
	env.NoError(loggedIn(env, "s-cleo", 0, "nod-ops")(q))
	d := q.Ends(schemas.Allowed)
	env.Equal([]string{"Ann", "Cleo (s-cleo)"}, schemas.Voters(d.Votes))

	// A person with a new display name is still the same person.
	q = env.Agent("ada").Asks(rig.Deploy("S", "renamed"))
	env.Refusal(loggedIn(env, "s-cleo", 0, "nod-ops")(q), schemas.CodeVoted)
	env.Refusal(shownAs(env, "Dora", "s-cleo", 0, "nod-ops")(q), schemas.CodeVoted)
	pendingWith(env, q, "Cleo (s-cleo)")
	env.NoError(loggedIn(env, "s-dora", 0, "nod-ops")(q))
	q.Ends(schemas.Allowed)

	// If the agent has stopped waiting, the votes also count for its next identical call.
	gone := env.Agent("ada").Detaches(rig.Deploy("S", "gone"))
	env.Refusal(loggedIn(env, "s-cleo", 0, "nod-ops")(gone), schemas.CodeVoted)
	env.NoError(loggedIn(env, "s-dora", 0, "nod-ops")(gone))
	env.Equal(schemas.Allowed, env.Agent("ada").Gets(rig.Deploy("S", "gone-again")).Outcome)

	env.Apply(byLogin(`, "confirm": [{"risk": "high", "people": ["security"]}, {"risk": "low", "not_requester": true}]`, annsLogin))
	q = env.Agent("ada").Asks(rig.Deploy("S", "2"))
	env.Refusal(loggedIn(env, "s-cleo", 0, "nod-ops")(q), schemas.CodeForbidden) // nod does not know which person's agent asks
}

// On a channel other than the web, an identity at the issuer is an ordinary user id. No other channel gives
// Ann a login link, because she logs in at the issuer.
func TestAnIdentityAtTheIssuerIsOnTheWebAlone(t *testing.T) {
	t.Parallel()
	env := voting(t, byLogin("", annsLogin+`, {"connector": "tg", "user_id": "1001"}, {"connector": "tg", "user_id": "`+issuer+`|s-ann"}`))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	phone := env.Person("tg", issuer+"|s-ann")
	a := phone.AnswerTo(q, "allow_once")
	a.From.Login = &schemas.Login{Issuer: issuer, Subject: "s-ann", Groups: []string{"nod-security"}, CheckedAt: time.Now()}
	_, err := phone.Answer(phone.Ctx, a)
	env.Refusal(err, schemas.CodeForbidden)
	env.Nil(env.Stored(q.Key).Record.Decision)
	_, err = env.Person("tg", "1001").LoginLink(env.Ctx, schemas.From{UserID: "1001"})
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "at the issuer")
	for _, op := range []schemas.PresenceOp{schemas.PresenceJoin, schemas.PresenceLock} {
		_, err := phone.Hold(phone.Ctx, schemas.Presence{Op: op, SessionID: "S", ClientID: "c", From: a.From})
		env.Error(err)
	}
	phone.Allows(q)
}

func TestSettingsOfLogins(t *testing.T) {
	t.Parallel()
	for says, text := range map[string]string{
		"public_url":                     strings.Replace(byLogin("", ""), `"public_url": "https://nod.example.com", `, "", 1),
		"https://":                       strings.ReplaceAll(byLogin("", ""), "https://login", "http://login"),
		"oidc_groups: needs an issuer":   strings.Split(byLogin("", ""), `, "connectors"`)[0] + "}",
		"has nobody":                     strings.Replace(byLogin("", ""), `, "oidc_groups": ["nod-security"]`, "", 1),
		"of an issuer or a claim":        byLogin("", `, {"connector": "web", "user_id": "https://evil.example|x"}`),
		"takes the votes of 2 people":    byLogin(`, "confirm": [{"risk": "low", "votes": 2}]`, ""),
		"and only 1 could allow":         strings.Replace(byLogin(`, "confirm": [{"risk": "low", "votes": 2}]`, annsMail), `"client_id"`, `"user_claim": "email", "client_id"`, 1),
		"repeats the name of a person":   strings.Replace(byLogin("", ""), `"name": "ops"`, `"name": "Ann"`, 1),
		"limit a person under approvers": strings.Replace(byLogin("", ""), `"oidc_groups": ["nod-security"]`, `"people": ["Ann"], "max_risk": "low"`, 1),
	} {
		_, err := schemas.DecodeSettings([]byte(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	for _, text := range []string{byLogin("", ""), byLogin(`, "confirm": [{"risk": "low", "votes": 2}]`, annsLogin), byLogin(`, "confirm": [{"risk": "high", "people": ["security"]}]`, "")} {
		if _, err := schemas.DecodeSettings([]byte(text)); err != nil {
			t.Error(err)
		}
	}
}

// Before a person's leave counts, nod logs what the issuer said about the person. It does the same before an
// answer counts.
func TestALeaveOfALoggedInPersonIsLogged(t *testing.T) {
	t.Parallel()
	env := voting(t, byLogin("", annsLogin))
	env.Agent("ada").Asks(rig.Shell("S", "first", "npm test")).Drop()
	ann := env.Person("web", issuer+"|s-ann")
	from := schemas.From{UserID: ann.User, Login: &schemas.Login{Issuer: issuer, Subject: "s-ann", Name: "Ann", CheckedAt: time.Now()}}
	leave := schemas.LeaveRequest{SessionID: "S", From: from, ForSeconds: 60, MaxRisk: schemas.RiskLow, MaxCalls: 9}
	_, err := ann.Leave(env.Ctx, leave)
	env.NoError(err)
	env.Equal(1, env.Logged(schemas.LogVouched)["S."])

	leave.From.Login = nil
	_, err = ann.Leave(env.Ctx, leave)
	env.Refusal(err, schemas.CodeForbidden)
	env.Equal(1, env.LoggedOf(schemas.LogVouched))
}
