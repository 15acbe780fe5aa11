package people

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const (
	botToken = "777:AAsecretsecretsecretsecretsecretsec"
	annOnTG  = 4711
)

// phone is a machine with nod and a simulated Telegram in memory. Its only approver is Ann.
type phone struct {
	*rig.Machine
	*telegramtest.Server
}

// newPhone makes a phone. The string where is the part of connectors.telegram in the settings that
// names the token's file or variable; DIR stands for the data directory.
func newPhone(t *testing.T, where string) *phone {
	p := &phone{rig.NewMachine(t), telegramtest.New(botToken)}
	p.Start(annOnTG)
	t.Cleanup(func() {
		if p.Up != nil {
			p.Kill()
		}
		p.Close()
		require.Empty(t, p.Rejected())
	})
	p.write("token", botToken+"\n")
	p.settings(where)
	return p
}

// settings writes settings.json. The string where is the part about the token.
func (p *phone) settings(where string) {
	p.write("settings.json", fmt.Sprintf(`{
		"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "telegram", "user_id": "%d"}]}]},
		"permissions": {"confirm": [{"risk": "high", "code_word_file": %q}], "join_identical": false, "remember_denials_seconds": 0, "open_prompts": 0},
		"connectors": {"telegram": {"base_url": %q, %s}}
	}`, annOnTG, filepath.Join(p.Dir, "word"), p.URL(), strings.ReplaceAll(where, "DIR", p.Dir)))
}

func (p *phone) write(name, text string) {
	require.NoError(p.T, os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600))
}

// waiting is a running nod ask that waits for its decision.
type waiting struct {
	*exec.Cmd
	out, errs bytes.Buffer
}

func (p *phone) asks(id string) *waiting {
	w := &waiting{Cmd: p.Command(rig.Ask("phone", id)...)}
	w.Stdout, w.Stderr = &w.out, &w.errs
	require.NoError(p.T, w.Start())
	p.T.Cleanup(func() { _ = w.Process.Kill() }) // Kill fails if the process has ended
	return w
}

// The method hears waits until nod ask ends, and returns the decision that it printed.
func (p *phone) hears(w *waiting) schemas.Decision {
	_ = w.Wait() // the error of Wait contains only the exit code
	var d schemas.Decision
	require.NoError(p.T, json.Unmarshal(w.out.Bytes(), &d), w.errs.String())
	return d
}

// question waits until Ann sees the question about request id with its buttons.
func (p *phone) question(id string) telegramtest.Message {
	var found telegramtest.Message
	require.Eventually(p.T, func() bool {
		for _, m := range p.Chat(annOnTG) {
			if strings.Contains(m.Text, id) && len(m.Buttons) > 0 {
				found = m
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond)
	return found
}

// shown returns a function that waits until a worker has recorded that it showed the question.
// Without this record, the next worker would show the question again if the worker is killed.
func (p *phone) shown(id string) (wait func()) {
	ctx, cancel := context.WithTimeout(p.T.Context(), 30*time.Second)
	p.T.Cleanup(cancel)
	conn, err := bus.Join(ctx, bus.Place{DataDir: p.Dir}, roles.AgentID("local"), rig.Quiet())
	require.NoError(p.T, err)
	noted := make(chan struct{}, 10)
	_, err = conn.Subscribe(schemas.NoticeSubject("local", "phone"), func(m bus.Message) {
		var n schemas.Notice
		if schemas.Decode(m.Data, &n) == nil && n.PendingID == id && n.Kind == "shown" {
			noted <- struct{}{}
		}
	})
	require.NoError(p.T, err)
	require.NoError(p.T, conn.Flush(ctx))
	return func() {
		defer conn.Close()
		select {
		case <-noted:
		case <-ctx.Done():
			require.NoError(p.T, ctx.Err(), "no worker recorded that %s is shown", id)
		}
	}
}

func (p *phone) press(m telegramtest.Message, label string) {
	for _, b := range m.Buttons {
		if strings.Contains(b.Text, label) {
			p.Press(annOnTG, annOnTG, m.ID, b.Data, false)
			return
		}
	}
	require.Fail(p.T, "no such button", "%s among %v", label, m.Buttons)
}

// The method settled waits until the only message about a question shows an outcome and has no buttons.
func (p *phone) settled(id, outcome string) {
	require.Eventually(p.T, func() bool {
		n, ended := 0, false
		for _, m := range p.Chat(annOnTG) {
			if strings.Contains(m.Text, "Request: "+id) {
				n++
				ended = strings.Contains(m.Text, outcome) && len(m.Buttons) == 0
			}
		}
		require.Equal(p.T, 1, n, "the question must be in the chat exactly once: %+v", p.Chat(annOnTG))
		return ended
	}, 30*time.Second, 10*time.Millisecond)
}

// A tap on the phone allows a request, and a denial with a reason stops the agent. Each message
// then shows its outcome.
func TestATapOnThePhoneDecides(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	allowed, denied := p.asks("tap-allow"), p.asks("tap-deny")
	p.press(p.question("tap-allow"), "Allow once")
	d := p.hears(allowed)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "telegram"}, d.By)
	require.Zero(t, allowed.ProcessState.ExitCode())
	p.settled("tap-allow", "✅ Allowed once · Ann")

	p.press(p.question("tap-deny"), "Deny, say why")
	p.Write(annOnTG, "yes, but use make clean", p.form())
	d = p.hears(denied)
	require.Equal(t, schemas.Denied, d.Outcome)
	require.Equal(t, "yes, but use make clean", d.Message)
	require.Equal(t, 3, denied.ProcessState.ExitCode())
}

// A tap that comes while nod is down counts when nod is up again. The question is shown once.
func TestATapWhileNodWasAwayArrives(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestATapAfterItsWorkerWasKilledArrives is the same for the worker")
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	noted := p.shown("tap-away")
	agent := p.asks("tap-away")
	m := p.question("tap-away")
	noted()
	p.Kill()
	p.press(m, "Allow once")
	p.StartNod()
	require.Equal(t, schemas.Allowed, p.hears(agent).Outcome)
	p.settled("tap-away", "✅ Allowed once · Ann")
}

// Ann taps a button while nod is down, and the deadline passes before nod is up again. The tap does
// not count: Ann reads in a reply and in the message that the request expired.
func TestATapBeforeAMissedDeadlineReadsTheExpiry(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestATapOnThePhoneDecides taps in time")
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	const timeout = 8 * time.Second
	_, stderr, code := p.Run("session", "set", "phone", "--timeout", timeout.String())
	require.Zero(t, code, stderr)
	noted := p.shown("tap-late")
	agent := p.asks("tap-late")
	m := p.question("tap-late")
	noted()
	passed := time.NewTimer(timeout)
	p.Kill()
	p.press(m, "Allow once")
	<-passed.C
	p.StartNod()
	require.Equal(t, schemas.TimedOut, p.hears(agent).Outcome)
	p.settled("tap-late", "⌛ Expired")
	require.Eventually(t, func() bool {
		for _, read := range p.Read(annOnTG) {
			if strings.Contains(read.Toast, "Nothing changed: this expired") {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick)
}

// With a webhook behind a proxy, a tap that comes while nod is down counts when nod is up again. If
// the settings return to polling, nod removes its webhook.
func TestATapThroughAWebhook(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestATapOnThePhoneDecides taps without one")
	listen := fmt.Sprint("127.0.0.1:", testports.Free(t, 1)[0])
	p := newPhone(t, fmt.Sprintf(`"token_file": "DIR/token", "webhook": {"listen": %q, "public_url": "https://nod.example.com", "secret_file": "DIR/secret"}`, listen))
	p.write("secret", "secretsecretsecretsecret\n")
	p.Proxy("http://" + listen)
	p.StartNod()
	noted := p.shown("tap-hook")
	agent := p.asks("tap-hook")
	m := p.question("tap-hook")
	noted()
	p.Kill()
	p.press(m, "Allow once")
	p.StartNod()
	require.Equal(t, schemas.Allowed, p.hears(agent).Outcome)
	p.settled("tap-hook", "✅ Allowed once · Ann")
	require.Equal(t, "https://nod.example.com/nod/telegram", p.Webhook())
	require.Zero(t, p.Calls("getUpdates"))

	p.Kill()
	p.settings(`"token_file": "DIR/token"`)
	p.StartNod()
	agent = p.asks("tap-poll")
	p.press(p.question("tap-poll"), "Deny")
	require.Equal(t, schemas.Denied, p.hears(agent).Outcome)
	require.Empty(t, p.Webhook())
}

// If a connector process is killed between question and answer, another process delivers the
// answer. The process of nod up does not run the connector in this test, because it has no token.
func TestATapAfterItsWorkerWasKilledArrives(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_env": "NOD_TEST_BOT"`)
	p.StartNod()
	_, errs, code := p.Run(append(rig.Ask("phone", "tap-nobody"), "--async")...)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no connector that reaches an approver is running")

	stop := p.worker()
	noted := p.shown("tap-worker")
	agent := p.asks("tap-worker")
	m := p.question("tap-worker")
	noted()
	stop()
	p.press(m, "Deny")
	p.worker()
	require.Equal(t, schemas.Denied, p.hears(agent).Outcome)
	p.settled("tap-worker", "⛔ Denied · Ann")
}

// worker starts the connector as a separate process. The returned function kills this process.
func (p *phone) worker() (stop func()) {
	return workerProcess(p.Machine, "telegram", "NOD_TEST_BOT="+botToken)
}

// Ann freezes all agents from her phone, and the pending requests are denied. The user of the
// machine is no approver and cannot thaw. Ann can thaw from her phone.
func TestFreezingFromTheTelephone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	open := p.asks("open-1")
	p.question("open-1")
	p.Write(annOnTG, "/freeze too many deletions", 0)
	require.Equal(t, schemas.Denied, p.hears(open).Outcome)
	p.told("Open requests denied: 1")
	stdout, _, code := p.Run("ask", "--session", "phone", "--tool", "Read", "--input", `{"file_path":"/etc/hosts"}`)
	require.Equal(t, 3, code)
	require.Contains(t, stdout, "frozen by Ann: too many deletions")
	_, stderr, code := p.Run("thaw")
	require.Equal(t, 1, code, "the machine's own user is no approver here")
	require.NotEmpty(t, stderr)
	p.Write(annOnTG, "/thaw", 0)
	p.told("Thawed")
	_, _, code = p.Run("ask", "--session", "phone", "--tool", "Read", "--input", `{"file_path":"/etc/hosts"}`)
	require.Zero(t, code)
}

// The method told waits until a message in Ann's chat contains a text.
func (p *phone) told(text string) {
	require.Eventually(p.T, func() bool {
		for _, m := range p.Chat(annOnTG) {
			if strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond)
}

// An approver can revoke a mistaken denial on the phone. The next identical call is then a question.
func TestADenialIsUndoneOnThePhone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.change("remember_denials_seconds", `"remember_denials_seconds": 600`)
	p.StartNod()
	denied := p.asks("undo-1")
	p.press(p.question("undo-1"), "Deny")
	require.Equal(t, schemas.Denied, p.hears(denied).Outcome)
	p.Write(annOnTG, "/grants", 0)
	p.told("Standing answers")
	require.Equal(t, schemas.Denied, p.hears(p.asks("undo-2")).Outcome)
	all := p.Chat(annOnTG)
	p.press(all[len(all)-1], "Forget 1")
	p.toasted("Forgotten: nod asks about the same call again.")
	again := p.asks("undo-3")
	p.press(p.question("undo-3"), "Allow once")
	require.Equal(t, schemas.Allowed, p.hears(again).Outcome)
	p.press(all[len(all)-1], "Forget 1")
	p.toasted("It had already ended (revoked by Ann).")
}

// The method change replaces the setting with the given name, whose value is 0 in settings.json, by the given
// text.
func (p *phone) change(name, text string) {
	path := filepath.Join(p.Dir, "settings.json")
	was, err := os.ReadFile(path)
	require.NoError(p.T, err)
	changed := strings.Replace(string(was), fmt.Sprintf("%q: 0", name), text, 1)
	require.NotEqual(p.T, string(was), changed)
	p.write("settings.json", changed)
}

// toasted waits until Ann sees a toast that contains a text.
func (p *phone) toasted(text string) {
	require.Eventually(p.T, func() bool {
		for _, read := range p.Read(annOnTG) {
			if strings.Contains(read.Toast, text) {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick)
}
