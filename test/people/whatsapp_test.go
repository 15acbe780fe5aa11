package people

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const annOnWA = "4917112345678"

// whatsApp is a machine with nod and a simulated WhatsApp in memory. Its only approver is Ann.
type whatsApp struct {
	*rig.Machine
	*whatsapptest.Server
}

// newWhatsApp makes a whatsApp. The string token is the part of the settings that names the access token. If
// this part names the variable NOD_TEST_WA, nod up runs no worker, because only the test's own workers have
// that variable.
func newWhatsApp(t *testing.T, approvers, token string) *whatsApp {
	w := &whatsApp{rig.NewMachine(t), whatsapptest.New()}
	w.Start(annOnWA)
	t.Cleanup(func() {
		if w.Up != nil {
			w.Kill()
		}
		w.Close()
		require.Empty(t, w.Rejected())
	})
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listen.Addr().String()
	require.NoError(t, listen.Close())
	w.Hook("http://" + addr + "/nod/whatsapp")
	for name, text := range map[string]string{"token": whatsapptest.Token, "secret": whatsapptest.AppSecret, "verify": whatsapptest.VerifyToken} {
		require.NoError(t, os.WriteFile(filepath.Join(w.Dir, name), []byte(text+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "settings.json"), fmt.Appendf(nil, `{
		%s
		"permissions": {"remember_denials_seconds": 0},
		"connectors": {"whatsapp": {"base_url": %q, "phone_number_id": %q, %s, "app_secret_file": %q,
			"webhook": {"listen": %q, "verify_token_file": %q}}}
	}`, approvers, w.URL(), whatsapptest.Number, strings.ReplaceAll(token, "DIR", w.Dir), filepath.Join(w.Dir, "secret"), addr, filepath.Join(w.Dir, "verify")), 0o600))
	return w
}

const annAnswersOnWA = `"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "whatsapp", "user_id": "` + annOnWA + `"}]}]},`

func (w *whatsApp) told(text string) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		for _, m := range w.Chat(annOnWA) {
			if strings.Contains(strings.ReplaceAll(m.Text, "`", ""), text) {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick, text)
}

// questions returns the messages with buttons.
func (w *whatsApp) questions() (all []whatsapptest.Message) {
	for _, m := range w.Chat(annOnWA) {
		if len(m.Buttons) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// question waits for the n-th message with buttons.
func (w *whatsApp) question(n int) whatsapptest.Message {
	w.T.Helper()
	require.Eventually(w.T, func() bool { return len(w.questions()) > n }, rig.Patience, rig.Tick)
	return w.questions()[n]
}

// A person pairs a phone by sending the code of nod pair to nod's number, and may answer from then on.
func TestPairingAWhatsAppPhone(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestPairingATelephone pairs one on Telegram")
	w := newWhatsApp(t, "", `"token_file": "DIR/token"`)
	w.StartNod()
	require.Eventually(t, func() bool { return w.Verify(whatsapptest.VerifyToken) == nil }, rig.Patience, rig.Tick)
	pair := w.Command("pair", "whatsapp", "--name", "Ann", "--yes")
	var out bytes.Buffer
	code := pairingCode(t, pair, &out)
	w.Write(annOnWA, "/start "+code, "")
	w.told("The code is right")
	require.NoError(t, pair.Wait())
	stdout, _, _ := w.Run("approvers")
	require.Contains(t, stdout, "whatsapp:"+annOnWA)

	hears := asking(w.Machine, "phone", "paired-1")
	m := w.question(0)
	w.Tap(annOnWA, m.ID, m.Buttons[0].ID)
	d := hears()
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, "whatsapp", d.By.Connector)
	w.told("Allowed once")

	hears = asking(w.Machine, "phone", "by-text")
	text := w.question(1).Text
	found := regexp.MustCompile(`no ([0-9A-Z]{4}) and why`).FindStringSubmatch(text)
	require.NotNil(t, found, text)
	w.Write(annOnWA, "no "+found[1]+" use make clean", "")
	d = hears()
	require.Equal(t, schemas.Denied, d.Outcome)
	require.Equal(t, "use make clean", d.Message)
}

// A worker is killed with SIGKILL before or after WhatsApp takes the question. The next worker shows the
// question again. An answer to any message about the question counts, but only once. A tap after the decision
// gets the outcome as reply.
func TestAKilledWorkerOfWhatsApp(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestNoLiveButtonOutlivesAKilledWorker kills one of Telegram")
	for point, c := range map[string]struct {
		fault     whatsapptest.Fault
		questions int
	}{
		"before the question is sent":   {whatsapptest.Fault{}, 1},
		"before its handle is recorded": {whatsapptest.Fault{Done: true}, 2},
	} {
		for answered := range c.questions {
			t.Run(fmt.Sprintf("%s, answered in message %d", point, answered+1), func(t *testing.T) {
				t.Parallel()
				w := newWhatsApp(t, annAnswersOnWA, `"token_env": "NOD_TEST_WA"`)
				w.StartNod()
				kill, killed := workerProcess(w.Machine, "whatsapp", "NOD_TEST_WA="+whatsapptest.Token), make(chan struct{})
				fault := c.fault
				fault.Then = func() { kill(); close(killed) }
				w.Fail(fault)
				hears := asking(w.Machine, "phone", "killed")
				<-killed
				workerProcess(w.Machine, "whatsapp", "NOD_TEST_WA="+whatsapptest.Token)
				w.question(c.questions - 1)
				all := w.questions()
				require.Len(t, all, c.questions)
				for i, m := range all {
					require.Equal(t, i > 0 || point == "before the question is sent", strings.Contains(m.Text, "Sent again"))
				}
				w.Tap(annOnWA, all[answered].ID, all[answered].Buttons[1].ID)
				require.Equal(t, schemas.Denied, hears().Outcome)
				w.told("Denied")
				for _, m := range all {
					w.Tap(annOnWA, m.ID, m.Buttons[0].ID)
				}
				w.told("Nothing changed: Ann denied this")
			})
		}
	}
}

// Two workers run on one machine, and the worker that starts first has the webhook's port. The second
// worker also sends questions, and takes the port when the first worker has ended.
func TestASecondWorkerOfWhatsAppTakesOverThePort(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestTwoWorkersShowEachQuestionOnce has two workers")
	w := newWhatsApp(t, annAnswersOnWA, `"token_env": "NOD_TEST_WA"`)
	w.StartNod()
	kill := workerProcess(w.Machine, "whatsapp", "NOD_TEST_WA="+whatsapptest.Token)
	require.Eventually(t, func() bool { return w.Verify(whatsapptest.VerifyToken) == nil }, rig.Patience, rig.Tick)
	workerProcess(w.Machine, "whatsapp", "NOD_TEST_WA="+whatsapptest.Token)
	hears := asking(w.Machine, "phone", "with-two")
	m := w.question(0)
	kill()
	w.Tap(annOnWA, m.ID, m.Buttons[1].ID) // Meta repeats its call until the second worker has the port
	require.Equal(t, schemas.Denied, hears().Outcome)
	w.told("Denied")
}
