package people

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const withAPhone = `{
	"permissions": {"allow": ["Lookup"]},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}
	]}
}`

// A freeze denies pending and new requests, even if a rule or an unused approval would allow
// them.
func TestAFreezeDeniesPendingAndNewRequests(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada := env.Agent("ada")
	open := ada.Asks(rig.Deploy("S", "open"))
	left := ada.Detaches(rig.Deploy("S", "left"))
	env.Ann().Allows(left)

	frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{Reason: "too many deletions", From: rig.Ann()})
	env.NoError(err)
	env.Equal(1, frozen.Denied)
	sure(env.Ann(), frozen, rig.Ann())
	d := open.Ends(schemas.Denied)
	env.Equal("frozen by Ann: too many deletions", d.Message)
	env.Equal("frozen by Ann", d.By.Name)
	env.Equal(schemas.Denied, ada.Gets(rig.Lookup("S", "rule")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "again")).Outcome, "the left-over approval rests during the freeze")
	ada.Refused(rig.Deploy("S", "left"), schemas.CodeForbidden)

	thawed, err := env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Heard("frozen_revision", thawed.Revision)
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("S", "")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "used-now")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "again")).Outcome, "a decision stays after the thaw")
	env.NotZero(env.LoggedOf(schemas.LogFrozen))
	env.Equal(1, env.LoggedOf(schemas.LogThawed))

	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.Refusal(err, schemas.CodeNotFound)
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "mallory"}})
	env.Refusal(err, schemas.CodeForbidden)
}

// A freeze of one agent or session does not affect other agents and sessions.
func TestAFreezeCoversOnlyItsAgentOrSession(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{SessionID: "S", From: rig.Ann()})
	env.NoError(err)
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{Agent: "ben", From: rig.Ann()})
	env.NoError(err)
	ada, ben := env.Agent("ada"), env.Agent("ben")
	env.Equal(schemas.Denied, ada.Gets(rig.Lookup("S", "1")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("T", "1")).Outcome)
	env.Equal(schemas.Denied, ben.Gets(rig.Lookup("U", "1")).Outcome)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{Agent: "ben", From: rig.Ann()})
	env.NoError(err)
	env.Equal(schemas.Allowed, ben.Gets(rig.Lookup("U", "2")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(rig.Lookup("S", "2")).Outcome)
	state, err := env.Ann().Settings(env.Ctx)
	env.NoError(err)
	env.Len(state.Freezes, 1)
}

// The function sure repeats a freeze until every engine has reported that it obeys the freeze.
func sure(p *rig.Person, frozen schemas.FreezeState, from schemas.From) {
	p.T.Helper()
	for len(frozen.Laggards) > 0 {
		var err error
		frozen, err = p.Freeze(p.Ctx, schemas.FreezeRequest{From: from})
		p.NoError(err)
	}
}

// The reply to a freeze names each engine that has not yet reported that it obeys the freeze.
func TestAFreezeNamesEnginesThatDoNotObeyItYet(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines = 4 }) // with four other engines, few calls reach the engine that cannot answer
	w := env.Wire()
	deaf := env.Dial(roles.ID{Role: roles.EngineStore}, w.URL)
	env.Wires = append(env.Wires, deaf.Close)
	env.Engine(engine.Options{Store: deaf})
	w.Hold()
	t.Cleanup(w.Release)
	env.Soon("an engine that follows the freeze names the one that does not", func() bool {
		frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
		return err == nil && len(frozen.Laggards) == 1
	})
	w.Release()
	env.Soon("all obey", func() bool {
		frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
		return err == nil && len(frozen.Laggards) == 0
	})
}

// The reply to a freeze also names each registered engine that does not reply, because such an
// engine may still allow a request.
func TestAFreezeNamesEnginesThatDoNotReply(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAFreezeNamesEnginesThatDoNotObeyItYet names engines")
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	revision, err := env.Store.Presence.Put(env.Ctx, "engine.mute", schemas.Registered{Type: schemas.TypeRegistered, LeaseUntil: time.Now()}, 0, time.Hour)
	env.NoError(err)
	frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Contains(frozen.Laggards, "mute")
	env.NoError(env.Store.Presence.Remove(env.Ctx, "engine.mute", revision))
	env.Engines[1].Halt() // a stopped engine is not in the reply to a freeze
	env.Soon("no engine is named", func() bool {
		frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
		return err == nil && len(frozen.Laggards) == 0
	})
}

// Once all engines have confirmed a freeze, no request is allowed, even if answers arrive.
func TestNothingIsAllowedAfterAConfirmedFreeze(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada := env.Agent("ada")
	const n = 60
	all := make([]*rig.Question, n)
	for i := range all {
		all[i] = ada.Asks(rig.Deploy("S", fmt.Sprintf("q-%02d", i)))
	}
	var answers sync.WaitGroup
	person := env.Ann()
	for _, q := range all {
		answers.Go(func() { _, _ = person.Says(q, "allow_once") })
	}
	frozen, err := env.Bob().Freeze(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "bob"}})
	env.NoError(err)
	sure(env.Bob(), frozen, schemas.From{UserID: "bob"})
	told, err := env.Ann().Now(env.Ctx)
	env.NoError(err)
	answers.Wait()
	for _, q := range all {
		if d := q.Hears(); d.Outcome == schemas.Allowed {
			env.False(d.DecidedAt.After(told), "allowed after the freeze was confirmed")
		}
	}
}

// If an approver has a phone, only the phone can thaw, and not the agents' machine.
func TestAThawComesFromASecondDevice(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = withAPhone })
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "send /thaw on tg")
	env.Equal(schemas.Denied, env.Agent("ada").Gets(rig.Lookup("S", "1")).Outcome)
	_, err = env.Person("tg", "7").Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "7"}})
	env.NoError(err)
	env.Equal(schemas.Allowed, env.Agent("ada").Gets(rig.Lookup("S", "2")).Outcome)
}

func TestAFreezeOutlivesARestart(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	word := filepath.Join(m.Dir, "word")
	require.NoError(t, os.WriteFile(word, []byte("open sesame\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(`{"permissions": {"confirm": [{"risk": "high", "code_word_file": "`+word+`"}]}}`), 0o600))
	m.StartNod()
	stdout, stderr, code := m.Run("freeze", "-m", "stop it")
	if code != 0 || !strings.Contains(stdout, "not stopped") {
		t.Fatal(stdout, stderr)
	}
	m.Kill()
	m.StartNod()
	stdout, _, code = m.Run("ask", "--session", "S", "--tool", "Read", "--input", `{"file_path":"/etc/hosts"}`)
	if code != 3 || !strings.Contains(stdout, "stop it") {
		t.Fatal(code, stdout)
	}
	_, stderr, _ = m.Run("pending")
	if !strings.Contains(stderr, "every agent is frozen by") || !strings.Contains(stderr, "; nod thaw ends it") {
		t.Fatal(stderr)
	}
	_, stderr, code = m.Run("thaw", "--code-word", "open")
	if code == 0 || !strings.Contains(stderr, "takes the code word") {
		t.Fatal(code, stderr)
	}
	stdout, stderr, code = m.Run("thaw", "--code-word", "open sesame")
	if code != 0 || !strings.Contains(stdout, "Thawed") {
		t.Fatal(stdout, stderr)
	}
	_, stderr, code = m.Run("ask", "--session", "S", "--tool", "Read", "--input", `{"file_path":"/etc/hosts"}`)
	if code != 0 {
		t.Fatal(code, stderr)
	}
}

// If the settings have no code word and no phone, a thaw needs a person at a terminal, who types a
// word that the terminal shows.
func TestALocalThawNeedsAPersonAtATerminal(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	_, stderr, code := m.Run("freeze")
	require.Zero(t, code, stderr)
	_, stderr, code = m.Run("thaw")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "a thaw takes a person at a terminal")
	_, stderr, code = m.Run("thaw", "--code-word", "anything")
	require.NotZero(t, code)
	require.Contains(t, stderr, "takes no code word here")

	p := m.NewPane(t, 100, 20, fmt.Sprintf("%[1]s thaw; echo first ended; %[1]s thaw; cat", m.Nod))
	p.Shows("To let agents ask again, type")
	p.Types("yes", "Enter")
	p.Shows("that was not the word")
	p.Shows("first ended")
	asks := regexp.MustCompile(`type ([A-Z0-9]{6}):`)
	p.Until(func() bool { return len(asks.FindAllString(p.Screen(), -1)) == 2 }, "the second word")
	p.Types(asks.FindAllStringSubmatch(p.Screen(), -1)[1][1], "Enter")
	p.Shows("Thawed: any agent may ask again.")
}

// During a freeze, the machine's own key cannot get the right to thaw by a change of phones: it can
// neither remove the last phone nor add another one.
func TestSettingsDoNotThaw(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = withAPhone; s.Engines = 2 })
	with := func(identities string) []byte {
		return rig.Apart(`{"permissions": {"allow": ["Lookup"]}, "approvers": {"people": [{"name": "Ann", "identities": [` + identities + `]}]}}`)
	}
	const terminal, phone = `{"connector": "terminal", "user_id": "ann"}`, `{"connector": "tg", "user_id": "7"}`
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	for what, identities := range map[string]string{
		"the last phone is removed": terminal,
		"another phone is added":    terminal + `,` + phone + `,{"connector": "tg", "user_id": "8"}`,
		"the phone is replaced":     terminal + `,{"connector": "tg", "user_id": "8"}`,
	} {
		_, err = env.Owner().ApplySettings(env.Ctx, with(identities))
		env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "send /thaw on tg first", what)
	}
	limited := strings.Replace(withAPhone, `"name": "Ann"`, `"name": "Ann", "max_risk": "low"`, 1)
	_, err = env.Owner().ApplySettings(env.Ctx, rig.Apart(limited))
	env.Refusal(err, schemas.CodeForbidden)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.Refusal(err, schemas.CodeForbidden)
	env.Apply(strings.Replace(withAPhone, "Lookup", "Look", 1)) // during a freeze, settings other than the approvers may change

	_, err = env.Person("tg", "7").Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "7"}})
	env.NoError(err)
	env.Apply(string(with(terminal)))
}

// If the phone is lost, nod's owner can end a freeze with the stores' key.
func TestTheOwnerOfTheStoresEndsAFreeze(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = withAPhone })
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	kv, err := env.Raw.KeyValue(env.Ctx, "permission_settings")
	env.NoError(err)
	env.NoError(kv.Delete(env.Ctx, "frozen"))
	env.Engines[0].Halt()
	env.Engine(engine.Options{})
	env.Equal(schemas.Allowed, env.Agent("ada").Gets(rig.Lookup("S", "1")).Outcome)
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Equal(schemas.Denied, env.Agent("ada").Gets(rig.Lookup("S", "2")).Outcome)
}

// If nod refuses a change of approvers because of a freeze, the command nod approvers restores the file
// settings.json.
func TestARefusedChangeOfApproversIsUndone(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	file := filepath.Join(m.Dir, "settings.json")
	settings := `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "` + rig.Me(t) + `"}, {"connector": "tg", "user_id": "7"}]}]}}`
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	m.StartNod()
	_, stderr, code := m.Run("freeze")
	require.Zero(t, code, stderr)
	_, stderr, code = m.Run("approvers", "remove", "Ann", "--identity", "tg:7")
	require.NotZero(t, code)
	require.Contains(t, stderr, "nod is frozen")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, settings, string(data))
}

func TestAThawNeedsAnApproverOfEverything(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.SomeOfIt })
	bob := schemas.From{UserID: "bob"}
	_, err := env.Bob().Freeze(env.Ctx, schemas.FreezeRequest{From: bob})
	env.NoError(err)
	_, err = env.Bob().Thaw(env.Ctx, schemas.FreezeRequest{From: bob})
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "Bob may freeze and not thaw")
	_, err = env.Person("tg", "8").Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "8"}})
	env.Refusal(err, schemas.CodeForbidden)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()}) // no approver of all requests has a phone, so the terminal may thaw
	env.NoError(err)
}
