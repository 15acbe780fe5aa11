package people

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A person pairs a Telegram account by sending it the code that nod pair prints. The person may
// then answer, until nod's owner removes the person from the approvers.
func TestPairingATelephone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.write("settings.json", fmt.Sprintf(`{"log": {"payloads": true}, "connectors": {"telegram": {"base_url": %q, "token_file": %q}}}`, p.URL(), filepath.Join(p.Dir, "token")))
	p.StartNod()

	pair := p.Command("pair", "telegram", "--name", "Ann", "--yes")
	out, err := pair.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pair.Start())
	t.Cleanup(func() { _ = pair.Process.Kill() })
	lines := bufio.NewScanner(out)
	code := ""
	for code == "" && lines.Scan() {
		if m := regexp.MustCompile(`/start (\w+)`).FindStringSubmatch(lines.Text()); m != nil {
			code = m[1]
		}
	}
	p.Write(annOnTG, "/start WRONGCODE", 0)
	p.told("That code is not awaited")
	p.Write(annOnTG, "/start "+code, 0)
	p.told("The code is right")
	rest := ""
	for lines.Scan() {
		rest += lines.Text() + "\n"
	}
	require.NoError(t, pair.Wait(), rest)
	require.Contains(t, rest, "Ann may answer on telegram now.")

	settings, err := os.ReadFile(filepath.Join(p.Dir, "settings.json"))
	require.NoError(t, err)
	require.Contains(t, string(settings), `"payloads": true`, "the rest of the file stays")
	stdout, _, _ := p.Run("approvers", "--json")
	var printed schemas.Settings
	require.NoError(t, json.Unmarshal([]byte(stdout), &printed))
	require.Len(t, printed.People(), 2, "the user of the machine, and Ann")

	open := p.asks("paired-1")
	m := p.question("paired-1")
	p.Press(annOnTG, annOnTG, m.ID, m.Buttons[0].Data, false)
	require.Equal(t, schemas.Allowed, p.hears(open).Outcome)

	_, stderr, exit := p.Run("approvers", "remove", "Ann")
	require.Zero(t, exit, stderr)
	stdout, _, _ = p.Run("approvers")
	require.NotContains(t, stdout, "Ann")
	_, stderr, exit = p.Run("approvers", "remove", "Ann")
	require.Equal(t, 1, exit)
	require.Contains(t, stderr, "is no approver")
}

// A pairing code is valid for one user, and ends after five wrong codes.
func TestAPairingCodeIsValidOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	tg, owner := env.Person("tg", "7"), env.Owner()
	send := func(code, user string) error { return tg.Pair(env.Ctx, code, schemas.From{UserID: user}) }

	env.Refusal(send("CODE", "7"), schemas.CodeNotFound)
	_, err := owner.Pair(env.Ctx, "tg", "CODE")
	env.NoError(err)
	env.Refusal(send("CODF", "7"), schemas.CodeNotFound)
	env.NoError(send("CODE", "7"))
	env.NoError(send("CODE", "7"), "the same update delivered twice")
	env.Refusal(send("CODE", "8"), schemas.CodeNotFound)
	p, err := owner.Pair(env.Ctx, "tg", "")
	env.NoError(err)
	env.Equal("7", p.From.UserID)
	env.Empty(p.Code + p.CodeHash)

	_, err = owner.Pair(env.Ctx, "tg", "OTHER")
	env.NoError(err)
	for i := range 5 {
		env.Refusal(send(strings.Repeat("X", i+1), "9"), schemas.CodeNotFound)
	}
	env.Refusal(send("OTHER", "7"), schemas.CodeNotFound)
	_, err = env.Person("tg", "7").Answer(env.Ctx, schemas.Answer{SessionID: "S", PendingID: "q", Digest: strings.Repeat("a", 64), OptionID: "allow_once", From: schemas.From{UserID: "7"}})
	env.Refusal(err, schemas.CodeForbidden) // a pairing code alone makes no user an approver
}
