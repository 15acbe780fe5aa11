package people

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const annOnDiscord = "80351110224678912"

// discordWorld is a machine with nod and a simulated Discord in memory. Its only approver is Ann.
type discordWorld struct {
	*rig.Machine
	*discordtest.Server
}

// newDiscord makes a discordWorld. The string token is the part of the settings that names the bot's token.
// If this part names the variable NOD_TEST_DISCORD, nod up runs no worker, because only the test's own
// workers have that variable.
func newDiscord(t *testing.T, approvers, token string) *discordWorld {
	w := &discordWorld{rig.NewMachine(t), discordtest.New()}
	w.Start(annOnDiscord)
	t.Cleanup(func() {
		if w.Up != nil {
			w.Kill()
		}
		w.Close()
		require.Empty(t, w.Rejected())
	})
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "bot"), []byte(discordtest.Token+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "settings.json"), fmt.Appendf(nil, `{
		%s
		"permissions": {"remember_denials_seconds": 0},
		"connectors": {"discord": {"base_url": %q, %s}}
	}`, approvers, w.URL(), strings.ReplaceAll(token, "DIR", w.Dir)), 0o600))
	return w
}

const annAnswersOnDiscord = `"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "discord", "user_id": "` + annOnDiscord + `"}]}]},`

// questions returns the messages that everybody in the conversation can see.
func (w *discordWorld) questions() (all []discordtest.Message) {
	for _, m := range w.Chat(annOnDiscord) {
		if !m.Ephemeral {
			all = append(all, m)
		}
	}
	return all
}

// button waits for the n-th message that has a button with the given label. It returns the message and the
// button's custom_id.
func (w *discordWorld) button(n int, label string) (message, customID string) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		all := w.questions()
		if len(all) <= n {
			return false
		}
		for _, b := range all[n].Buttons {
			if b.Label == label {
				message, customID = all[n].ID, b.ID
			}
		}
		return customID != ""
	}, rig.Patience, rig.Tick, label)
	return message, customID
}

func (w *discordWorld) told(text string) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		for _, r := range w.Read(annOnDiscord) {
			if strings.Contains(r.Text, text) {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick, text)
}

func (w *discordWorld) connected() {
	w.T.Helper()
	require.Eventually(w.T, func() bool { return w.Connected() > 0 }, rig.Patience, rig.Tick)
}

// On a Discord server, a person pairs by the command /nod with the code that nod pair prints, and may answer
// from then on. If a request is answered elsewhere, the outcome replaces the buttons of its message.
func TestPairingOnDiscord(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestPairingATelephone pairs one on Telegram")
	w := newDiscord(t, "", `"token_file": "DIR/bot"`)
	w.StartNod()
	w.connected()
	pair := w.Machine.Command("pair", "discord", "--name", "Ann", "--yes")
	var out bytes.Buffer
	code := pairingCode(t, pair, &out)
	w.Server.Command(annOnDiscord, "pair "+code, true)
	w.told("The code is right")
	require.NoError(t, pair.Wait())
	stdout, _, _ := w.Run("approvers")
	require.Contains(t, stdout, "discord:"+annOnDiscord)
	stdout, _, _ = w.Run("doctor")
	require.Contains(t, stdout, "discord")

	hears := asking(w.Machine, "chat", "paired-1")
	message, allow := w.button(0, "✅ Allow once")
	w.Press(annOnDiscord, annOnDiscord, message, allow)
	d := hears()
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, "discord", d.By.Connector)
	w.told("Allowed once")

	hears = asking(w.Machine, "chat", "withdrawn")
	_, _ = w.button(1, "⛔ Deny")
	_, _, _ = w.Run("deny", "withdrawn", "-m", "use make clean")
	require.Equal(t, schemas.Denied, hears().Outcome)
	require.Eventually(t, func() bool {
		m := w.questions()[1]
		return len(m.Buttons) == 0 && strings.Contains(m.Text, "use make clean")
	}, rig.Patience, rig.Tick)
}

// A worker is killed with SIGKILL at some point while it shows a question. The next worker leaves one
// message, because Discord sends only one message for each nonce. A press that the killed worker did not
// submit does not count. The next press counts once.
func TestAKilledWorkerOfDiscord(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestNoLiveButtonOutlivesAKilledWorker kills one of Telegram")
	for point, fault := range map[string]discordtest.Fault{
		"before the question is sent":   {Call: "create message"},
		"before its handle is recorded": {Call: "create message", Done: true},
		"before its buttons are added":  {Call: "edit message"},
		"after its buttons are added":   {Call: "edit message", Done: true},
		"before an answer is submitted": {Call: "respond"},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newDiscord(t, annAnswersOnDiscord, `"token_env": "NOD_TEST_DISCORD"`)
			w.StartNod()
			worker := func() (kill func()) {
				return workerProcess(w.Machine, discord.Name, "NOD_TEST_DISCORD="+discordtest.Token)
			}
			kill, killed := worker(), make(chan struct{})
			w.connected()
			fault.Then = func() { kill(); close(killed) }
			w.Fail(fault)
			hears := asking(w.Machine, "chat", "killed")
			if fault.Call == "respond" {
				message, deny := w.button(0, "⛔ Deny")
				w.Press(annOnDiscord, annOnDiscord, message, deny)
			}
			<-killed
			require.Eventually(t, func() bool { return w.Connected() == 0 }, rig.Patience, rig.Tick)
			worker()
			w.connected()
			message, deny := w.button(0, "⛔ Deny")
			require.Len(t, w.questions(), 1)
			w.Press(annOnDiscord, annOnDiscord, message, deny)
			require.Equal(t, schemas.Denied, hears().Outcome)
			w.told("Denied")
			w.Press(annOnDiscord, annOnDiscord, message, deny)
			w.told("Nothing left to do: Ann denied this")
		})
	}
}
