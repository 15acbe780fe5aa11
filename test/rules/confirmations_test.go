package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// On every channel, a risky call can be allowed only with the confirmations that the settings demand. A
// denial needs no confirmation.
func TestConfirmationsForRiskyCalls(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "word")
	people := `"approvers":{"people":[
		{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"},{"connector":"tg","user_id":"1"},{"connector":"voice","user_id":"ann"}]},
		{"name":"Bob","identities":[{"connector":"web","user_id":"bob"}]}]}`
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"permissions":{"confirm":[
			{"risk":"high","code_word_file":"` + file + `"},
			{"risk":"medium","min_channel":"chat"},
			{"risk":"high","second_device":true}]},` + people + `}`
	})
	ada := env.Agent("ada")
	says := func(q *rig.Question, connector, user, option, word string) error {
		p := env.Person(connector, user)
		a := p.AnswerTo(q, option)
		a.CodeWord = word
		_, err := p.Answer(env.Ctx, a)
		return err
	}
	risky, plain := ada.Asks(rig.Shell("S", "", "rm -rf src")), ada.Asks(rig.Shell("S", "", "npm test"))
	env.Equal(schemas.RiskHigh, env.Stored(risky.Key).Record.Risk)
	shown, _, err := env.Ann().Show(env.Ctx, "S", risky.Receipt.PendingID)
	env.NoError(err)
	env.Equal([]string{"the code word", "at least a chat", "a second device"}, shown.Conditions)

	env.Contains(env.Refusal(says(risky, "tg", "1", "allow_once", "sesame"), schemas.CodeForbidden).Message, "cannot be read")
	env.NoError(os.WriteFile(file, []byte("\n"), 0o600))
	env.Contains(env.Refusal(says(risky, "tg", "1", "allow_once", ""), schemas.CodeForbidden).Message, "there is no code word")
	env.NoError(os.WriteFile(file, []byte("open sesame\n"), 0o600))
	for _, wrong := range []string{"", "sesame", "open sesame ", "OPEN SESAME"} {
		env.Refusal(says(risky, "tg", "1", "allow_once", wrong), schemas.CodeForbidden)
	}
	env.Contains(env.Refusal(says(risky, "terminal", "ann", "allow_once", "open sesame"), schemas.CodeForbidden).Message, "takes a second device")
	env.Contains(env.Refusal(says(risky, "web", "bob", "allow_once", "open sesame"), schemas.CodeForbidden).Message, "takes a second device")
	env.Nil(env.Stored(risky.Key).Record.Decision, "nothing changed")
	env.NoError(says(risky, "tg", "1", "allow_once", "open sesame"))
	env.NotContains(string(env.Stored(risky.Key).Record.Request), "sesame")
	env.NoError(says(plain, "terminal", "ann", "allow_once", ""))

	denied := ada.Asks(rig.Shell("S", "", "rm -rf /"))
	env.NoError(says(denied, "terminal", "ann", "reject_once", ""))

	for settings, path := range map[string]string{
		`{"permissions":{"confirm":[{"risk":"high"}]},` + people + `}`:                                                         "permissions.confirm[0]: has no condition",
		`{"permissions":{"confirm":[{"risk":"high","code_word_env":"A","code_word_file":"/b"}]},` + people + `}`:               "permissions.confirm[0]: name code_word_env or",
		`{"permissions":{"confirm":[{"risk":"high","code_word_env":"A"},{"risk":"high","code_word_env":"B"}]},` + people + `}`: "permissions.confirm[1]: names another code word",
		`{"permissions":{"confirm":[{"risk":"high","second_device":true,"min_channel":"screen"}]},` + people + `}`:             "permissions.confirm[0]: no approver has an identity",
		`{"permissions":{"confirm":[{"risk":"huge","second_device":true}]},` + people + `}`:                                    "permissions.confirm[0].risk: ",
	} {
		_, err := env.Owner().ApplySettings(env.Ctx, []byte(settings))
		env.True(strings.HasPrefix(env.Refusal(err, schemas.CodeValidation).Message, path), "%v", err)
	}
}

// The settings name one code word for medium risk and another one for high risk. A call of high risk takes
// only the code word for high risk, and so does a thaw.
func TestTheCodeWordOfTheHighestRisk(t *testing.T) {
	t.Parallel()
	plain, strong := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "strong")
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"permissions":{"confirm":[
			{"risk":"high","code_word_file":"` + strong + `"},{"risk":"medium","code_word_file":"` + plain + `"}]},
			"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`
	})
	env.NoError(os.WriteFile(plain, []byte("please\n"), 0o600))
	env.NoError(os.WriteFile(strong, []byte("open sesame\n"), 0o600))
	ada, ann := env.Agent("ada"), env.Ann()
	for command, words := range map[string][2]string{"rm -rf src": {"please", "open sesame"}, "npm test": {"open sesame", "please"}} {
		q := ada.Asks(rig.Shell("S", "", command))
		for i, word := range words {
			a := ann.AnswerTo(q, "allow_once")
			a.CodeWord = word
			_, err := ann.Answer(env.Ctx, a)
			env.Equal(i == 1, err == nil, "%s with %q: %v", command, word, err)
		}
	}
	_, err := ann.Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	_, err = ann.Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann(), CodeWord: "please"})
	env.Refusal(err, schemas.CodeForbidden)
	_, err = ann.Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann(), CodeWord: "open sesame"})
	env.NoError(err)
}
