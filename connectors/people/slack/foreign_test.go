package slack_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
)

// Slack's own client libraries work with the in-memory Slack, because its messages have the form of
// Slack's.
func TestSlacksOwnClientWorksWithTheFake(t *testing.T) {
	if os.Getenv("NOD_SLACK_TEST_NPM") == "" {
		t.Skip("it needs npm and the network: NOD_SLACK_TEST_NPM=1 go test ./connectors/people/slack -run OwnClient")
	}
	r := newRig(t)
	person := "U0ANN" + peopletest.Ann
	r.Start(person)
	modules := peopletest.Packages(t, "@slack/socket-mode@3.1.0", "@slack/web-api@8.2.0")
	c := exec.Command("node", "testdata/client.mjs", r.URL(), modules)
	c.Env = append(os.Environ(), "BOT_TOKEN="+slacktest.BotToken, "APP_TOKEN="+slacktest.AppToken, "PERSON="+person)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	waits := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, time.Minute, 10*time.Millisecond, what)
	}
	read := func(text string) func() bool {
		return func() bool {
			for _, read := range r.Server.Read(person) {
				if strings.Contains(read.Text, text) {
					return true
				}
			}
			return false
		}
	}
	waits("a message with a button", func() bool { all := r.Chat(person); return len(all) == 1 && len(all[0].Buttons) == 1 })
	r.Press(person, person, r.Chat(person)[0].TS, "why")
	waits("a dialog", func() bool { d, open := r.Server.Open(person); return open && d.Field })
	r.Submit(person, "because")
	waits("the text of the dialog", read("heard because"))
	r.Command(person, "pending", "")
	waits("the command", read("commanded pending"))
	r.Disconnect("refresh_requested")
	waits("another connection", func() bool { return r.Connected() == 1 })
	r.Command(person, "again", "")
	waits("a command over the other connection", read("commanded again"))
}
