package people

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const annOnSlack = "U0ANN4711"

// slackWorld is a machine with nod and a simulated Slack in memory. Its only approver is Ann.
type slackWorld struct {
	*rig.Machine
	*slacktest.Server
}

// newSlack makes a slackWorld. The string botToken is the part of the settings that names the bot token. If
// this part names the variable NOD_TEST_SLACK, nod up runs no worker, because only the test's own workers
// have that variable.
func newSlack(t *testing.T, approvers, botToken string) *slackWorld {
	w := &slackWorld{rig.NewMachine(t), slacktest.New()}
	w.Start(annOnSlack)
	t.Cleanup(func() {
		if w.Up != nil {
			w.Kill()
		}
		w.Close()
		require.Empty(t, w.Rejected())
	})
	for name, text := range map[string]string{"bot": slacktest.BotToken, "app": slacktest.AppToken} {
		require.NoError(t, os.WriteFile(filepath.Join(w.Dir, name), []byte(text+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "settings.json"), fmt.Appendf(nil, `{
		%s
		"permissions": {"remember_denials_seconds": 0},
		"connectors": {"slack": {"base_url": %q, %s, "app_token_file": %q}}
	}`, approvers, w.URL(), strings.ReplaceAll(botToken, "DIR", w.Dir), filepath.Join(w.Dir, "app")), 0o600))
	return w
}

const annAnswersOnSlack = `"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "slack", "user_id": "` + annOnSlack + `"}]}]},`

// questions returns the messages that are not in threads.
func (w *slackWorld) questions() (all []slacktest.Message) {
	for _, m := range w.Chat(annOnSlack) {
		if m.Thread == "" {
			all = append(all, m)
		}
	}
	return all
}

// button waits for the n-th message that has a button with the given label. It returns the message and the
// button's value.
func (w *slackWorld) button(n int, label string) (ts, value string) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		all := w.questions()
		if len(all) <= n {
			return false
		}
		for _, b := range all[n].Buttons {
			if b.Label == label {
				ts, value = all[n].TS, b.Value
			}
		}
		return value != ""
	}, rig.Patience, rig.Tick, label)
	return ts, value
}

func (w *slackWorld) told(text string) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		for _, r := range w.Read(annOnSlack) {
			if strings.Contains(r.Text, text) {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick, text)
}

func (w *slackWorld) connected() {
	w.T.Helper()
	require.Eventually(w.T, func() bool { return w.Connected() > 0 }, rig.Patience, rig.Tick)
}

// A person pairs by sending the command /nod with the code of nod pair, and may answer from then on. If a
// request is answered elsewhere, the outcome replaces the buttons of its message.
func TestPairingOnSlack(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestPairingATelephone pairs one on Telegram")
	w := newSlack(t, "", `"bot_token_file": "DIR/bot"`)
	w.StartNod()
	w.connected()
	pair := w.Machine.Command("pair", "slack", "--name", "Ann", "--yes")
	var out bytes.Buffer
	code := pairingCode(t, pair, &out)
	w.Server.Command(annOnSlack, "pair "+code, "")
	w.told("The code is right")
	require.NoError(t, pair.Wait())
	stdout, _, _ := w.Run("approvers")
	require.Contains(t, stdout, "slack:"+annOnSlack)

	hears := asking(w.Machine, "chat", "paired-1")
	ts, value := w.button(0, "✅ Allow once")
	w.Press(annOnSlack, annOnSlack, ts, value)
	d := hears()
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, "slack", d.By.Connector)
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

// A worker is killed with SIGKILL at some point while it shows a question, and the next worker shows the
// question. Only the message whose handle is stored has buttons, and the answer counts once.
func TestAKilledWorkerOfSlack(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestNoLiveButtonOutlivesAKilledWorker kills one of Telegram")
	for point, c := range map[string]struct {
		fault     slacktest.Fault
		questions int
	}{
		"before the question is sent":   {slacktest.Fault{Method: "chat.postMessage"}, 1},
		"before its handle is recorded": {slacktest.Fault{Method: "chat.postMessage", Done: true}, 2},
		"before its buttons are added":  {slacktest.Fault{Method: "chat.update"}, 1},
		"after its buttons are added":   {slacktest.Fault{Method: "chat.update", Done: true}, 1},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newSlack(t, annAnswersOnSlack, `"bot_token_env": "NOD_TEST_SLACK"`)
			w.StartNod()
			kill, killed := workerProcess(w.Machine, slack.Name, "NOD_TEST_SLACK="+slacktest.BotToken), make(chan struct{})
			w.connected()
			fault := c.fault
			fault.Then = func() { kill(); close(killed) }
			w.Fail(fault)
			hears := asking(w.Machine, "chat", "killed")
			<-killed
			require.Eventually(t, func() bool { return w.Connected() == 0 }, rig.Patience, rig.Tick)
			workerProcess(w.Machine, slack.Name, "NOD_TEST_SLACK="+slacktest.BotToken)
			w.connected()
			ts, value := w.button(c.questions-1, "⛔ Deny")
			all := w.questions()
			require.Len(t, all, c.questions)
			if c.questions == 2 {
				require.Empty(t, all[0].Buttons)
				require.Contains(t, all[1].Text, "Sent again")
			}
			w.Press(annOnSlack, annOnSlack, ts, value)
			require.Equal(t, schemas.Denied, hears().Outcome)
			w.told("Denied")
			w.Press(annOnSlack, annOnSlack, ts, value)
			w.told("Nothing left to do: Ann denied this")
		})
	}
}
