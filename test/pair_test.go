package test

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
)

// A Telegram account is paired by sending the code that nod pair prints. Its user may
// then answer, until they are removed from the approvers.
func TestPairingATelephone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.write("settings.json", fmt.Sprintf(`{"log": {"payloads": true}, "connectors": {"telegram": {"base_url": %q, "token_file": %q}}}`, p.URL(), filepath.Join(p.dir, "token")))
	p.start()

	pair := p.command("pair", "telegram", "--name", "Ann", "--yes")
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

	settings, err := os.ReadFile(filepath.Join(p.dir, "settings.json"))
	require.NoError(t, err)
	require.Contains(t, string(settings), `"payloads": true`, "the rest of the file stays")
	stdout, _, _ := p.run("approvers", "--json")
	var all []schemas.Approver
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	require.Len(t, all, 2, "the user of the machine, and Ann")

	open := p.asks("paired-1")
	m := p.question("paired-1")
	p.Press(annOnTG, annOnTG, m.ID, m.Buttons[0].Data, false)
	require.Equal(t, schemas.Allowed, p.hears(open).Outcome)

	_, stderr, exit := p.run("approvers", "remove", "Ann")
	require.Zero(t, exit, stderr)
	stdout, _, _ = p.run("approvers")
	require.NotContains(t, stdout, "Ann")
	_, stderr, exit = p.run("approvers", "remove", "Ann")
	require.Equal(t, 1, exit)
	require.Contains(t, stderr, "is no approver")
}

// A pairing code counts once, for one user, and no longer after five wrong codes.
func TestACodeCountsOnce(t *testing.T) {
	t.Parallel()
	env := start(t)
	tg, owner := env.person("tg", "7"), env.owner()
	send := func(code, user string) error { return tg.Pair(env.ctx, code, schemas.From{UserID: user}) }

	env.refusal(send("CODE", "7"), schemas.CodeNotFound)
	_, err := owner.Pair(env.ctx, "tg", "CODE")
	env.NoError(err)
	env.refusal(send("CODF", "7"), schemas.CodeNotFound)
	env.NoError(send("CODE", "7"))
	env.NoError(send("CODE", "7"), "the same update delivered twice")
	env.refusal(send("CODE", "8"), schemas.CodeNotFound)
	p, err := owner.Pair(env.ctx, "tg", "")
	env.NoError(err)
	env.Equal("7", p.From.UserID)
	env.Empty(p.Code + p.CodeHash)

	_, err = owner.Pair(env.ctx, "tg", "OTHER")
	env.NoError(err)
	for i := range 5 {
		env.refusal(send(strings.Repeat("X", i+1), "9"), schemas.CodeNotFound)
	}
	env.refusal(send("OTHER", "7"), schemas.CodeNotFound)
	_, err = env.person("tg", "7").Answer(env.ctx, schemas.Answer{SessionID: "S", PendingID: "q", Digest: strings.Repeat("a", 64), OptionID: "allow_once", From: schemas.From{UserID: "7"}})
	env.refusal(err, schemas.CodeForbidden) // a pairing code alone makes no user an approver
}
