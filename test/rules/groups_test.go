package rules

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// ofSecurity returns settings by which a member of the group security must allow each call. The strings in
// members are the group's people. The string condition adds JSON members to the entry of confirm.
func ofSecurity(condition string, members ...string) string {
	groups := `"groups": [{"name": "security", "people": ["` + strings.Join(members, `", "`) + `"]}]}`
	return `{"permissions": {"confirm": [{"risk": "low", "people": ["security"]` + condition + `}]}, ` + strings.TrimSuffix(people, "}") + `, ` + groups + `}`
}

// Only a member of the group can allow the call, but other people can deny it. Whether a person is a member
// depends on the settings at the time of the answer.
func TestOnlyPeopleOfAGroupAllow(t *testing.T) {
	t.Parallel()
	env := voting(t, ofSecurity("", "Ann", "Bob"))
	ada, cleo := env.Agent("ada"), env.Person("tg", "1003")
	q := ada.Asks(rig.Deploy("S", "1"))
	env.Equal(schemas.TeamRecord, env.Stored(q.Key).Record.Type, "an older engine cannot read it")
	_, err := cleo.Says(q, "allow_once")
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "not allowed by Cleo: it takes an answer of security")
	env.Apply(ofSecurity("", "Ann", "Cleo"))
	_, err = env.Bob().Says(q, "allow_once")
	env.Refusal(err, schemas.CodeForbidden)
	env.Equal(schemas.Allowed, cleo.Allows(q).Outcome)
	q.Ends(schemas.Allowed)
	denied := ada.Asks(rig.Deploy("S", "2"))
	env.Bob().Denies(denied)
	denied.Ends(schemas.Denied)

	env.Apply(ofSecurity("", "Ann"))
	shown, _, err := env.Ann().Show(env.Ctx, "S", ada.Asks(rig.Deploy("S", "3")).Receipt.PendingID)
	env.NoError(err)
	env.Equal([]string{"an answer of security"}, shown.Conditions)
}

func TestTwoPeopleOfAGroup(t *testing.T) {
	t.Parallel()
	env := voting(t, ofSecurity(`, "votes": 2`, "Ann", "Bob", "Cleo"))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	shown, _, err := env.Ann().Show(env.Ctx, "S", "1")
	env.NoError(err)
	env.Equal([]string{"2 people of security"}, shown.Conditions)
	votes(env.Ann(), q)
	env.Apply(ofSecurity(`, "votes": 2`, "Bob", "Cleo"))
	env.Contains(votes(env.Bob(), q), "1 of 2: Bob", "Ann has left the group")
	env.Equal([]string{"Bob", "Cleo"}, schemas.Voters(env.Person("tg", "1003").Allows(q).Votes))
}

// If a call needs the answer of a group, a grant or an approval of a person outside the group does not allow
// it.
func TestStandingAnswersOfOthersAllowNothingForAGroup(t *testing.T) {
	t.Parallel()
	env := voting(t, `{"permissions": {"join_identical": true}, `+people+`}`)
	ada, cleo := env.Agent("ada"), env.Person("tg", "1003")
	cleo.Remembers(ada.Asks(rig.Shell("S", "granted", "make build")), schemas.ScopeAgent, 0)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "by-grant", "make build")).Outcome)
	cleo.Allows(ada.Detaches(rig.Deploy("S", "left")))
	env.Apply(strings.Replace(ofSecurity("", "Ann", "Bob"), `"permissions": {`, `"permissions": {"join_identical": true, `, 1))
	ada.Asks(rig.Shell("S", "asked", "make build"))
	ada.Asks(rig.Deploy("S", "left-again"))
	env.Bob().Allows(ada.Detaches(rig.Call("Publish", "S", "gone")))
	env.Equal(schemas.Allowed, ada.Gets(rig.Call("Publish", "S", "gone-again")).Outcome, "Bob's approval is of the group")
}

func TestSettingsWithUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	env := voting(t, "")
	good := ofSecurity("", "Ann")
	for settings, message := range map[string]string{
		good: "",
		strings.Replace(good, `"people": ["security"]`, `"people": ["Bob"]`, 1):      "",
		strings.Replace(good, `"people": ["security"]`, `"people": ["secruity"]`, 1): `permissions.confirm[0].people[0]: "secruity" is neither a person nor a group`,
		ofSecurity("", "Eve"): `approvers.groups[0].people[0]: "Eve" is not one of the 3 people`,
		strings.Replace(good, `"security", "p`, `"Ann", "p`, 1):       "approvers.groups[0].name: repeats the name",
		ofSecurity(`, "votes": 2`, "Ann"):                             "permissions.confirm[0]: takes the votes of 2 people, and only 1 could allow",
		ofSecurity(`, "min_channel": "screen"`, "Cleo"):               "permissions.confirm[0]: takes an answer of security, at least a screen, and none of them could",
		strings.Replace(good, `"people": ["Ann"]`, `"people": []`, 1): "approvers.groups[0].people",
	} {
		_, err := env.Owner().ApplySettings(env.Ctx, []byte(settings))
		if message == "" {
			env.NoError(err)
			continue
		}
		env.True(strings.HasPrefix(env.Refusal(err, schemas.CodeValidation).Message, message), "%s\n%v", settings, err)
	}
}
